"""Fixtures that every layer's tests share. Models are built once for a test run, in a folder of its own."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from glowplug.runtime import amx

pytest_plugins = ("tests.scheduling", "tests.components.fixtures")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

if amx.needs_cure():  # before a test or one of its processes loads TensorFlow, which would die
    os.environ.update([amx.CURE])

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; processes under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # the same under `nohup`
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def leave_the_terminal() -> None:
    """Give a controlling terminal up: processes under test would inherit it, and none of them has it as a stream."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # whoever leads a session is told of its loss
    fcntl.ioctl(terminal, termios.TIOCNOTTY)
    signal.signal(signal.SIGHUP, before)
    os.close(terminal)


leave_the_terminal()

# How long an example takes says more about what else runs on the machine than about the code.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

SHARED_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"


@pytest.fixture(scope="session")
def zoo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture(scope="session")
def saved_model(zoo_folder: Path) -> Callable[[str], Path]:
    """Return the SavedModel of a model of the zoo."""

    def build(name: str) -> Path:
        directory = zoo_folder / name
        if not directory.exists():
            from tests import zoo

            if name in zoo.APPLICATIONS:
                zoo.build_application(name, directory)
            else:
                zoo.BUILDERS[name](directory)
        return directory

    return build


@pytest.fixture(scope="session")
def bundle(zoo_folder: Path, saved_model: Callable[[str], Path]) -> Callable[[str], Path]:
    """Return the bundle of a model of the zoo, packed with `--engine auto`."""

    def packed(name: str) -> Path:
        directory = zoo_folder / f"{name}.glow"
        if not directory.exists():
            from glowplug.convert.job import Job, Order
            from glowplug.core.disk.files import new_directory

            with new_directory(directory) as unfinished:  # in this process, which has imported TensorFlow already
                Job(Order(unfinished, saved_model(name)), lambda stage: None).run()
        return directory

    return packed


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder for unix sockets, whose paths must be short, wherever temporary files are kept."""
    with tempfile.TemporaryDirectory(prefix="glow-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True, scope="session")
def private_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the seal's key and the cache of the person who runs the tests out of it."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
