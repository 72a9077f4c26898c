"""What dies in the process that converts is an answer, and what is interrupted leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import glowplug
from glowplug.convert.child import Child
from glowplug.convert.crash import Crash
from glowplug.core import errors
from glowplug.runtime import amx, fingerprint

pytestmark = pytest.mark.tensorflow

# Python runs this module at the start of every child that finds it; it makes one stage die as TensorFlow would.
FAULT = """
import os, sys
if True:
    class Fault:
        def find_spec(self, name, path=None, target=None):
            if name == os.environ.get("FAULT_AT"):
                limit = os.environ["FAULT_COUNT"]
                with open(limit, "a+") as stream:
                    stream.write("x")
                    stream.seek(0)
                    died = len(stream.read())
                if died <= int(os.environ["FAULT_TIMES"]) and "ONEDNN_MAX_CPU_ISA" not in os.environ:
                    if os.environ["FAULT_SIGNAL"] == "0":
                        raise RuntimeError("something unforeseen")
                    os.kill(os.getpid(), int(os.environ["FAULT_SIGNAL"]))
    sys.meta_path.insert(0, Fault())
"""


def test_it_shares_the_processors_of_its_caller_s_session(tmp_path: Path) -> None:
    """Linux gives a session of its own a share of its own, however low its priority: beside a server, half of all."""
    child = Child(tmp_path, tensorflow=False)
    try:
        pid = child._process.pid
        assert (os.getsid(pid), os.getpgid(pid)) == (os.getsid(0), pid)
    finally:
        child.close()


@pytest.fixture
def fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, int], None]:
    (tmp_path / "fault").mkdir()
    (tmp_path / "fault" / "sitecustomize.py").write_text(FAULT)

    def at(module: str, number: int, times: int) -> None:
        monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fault"))
        monkeypatch.setenv("FAULT_AT", module)
        monkeypatch.setenv("FAULT_SIGNAL", str(int(number)))
        monkeypatch.setenv("FAULT_TIMES", str(times))
        monkeypatch.setenv("FAULT_COUNT", str(tmp_path / "fault" / "count"))

    return at


@pytest.fixture
def honest_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It announces no AMX, whatever this machine's does."""
    monkeypatch.setattr(fingerprint, "cpu_features", lambda: ("avx2",))
    amx.answer.cache_clear()
    yield
    amx.answer.cache_clear()


@pytest.mark.usefixtures("honest_processor")
@pytest.mark.parametrize("number", [signal.SIGILL, signal.SIGABRT, 0])
def test_a_crash_while_converting_is_a_reason_to_fall_back(
    number: int, fault: Callable[[str, int, int], None], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    fault("glowplug.convert.native", number, 1)
    packed = glowplug.pack(saved_model("scalar"), tmp_path / "out" / "m.glow", prefer="any")
    assert packed.manifest.engine == "savedmodel"
    assert (signal.Signals(number).name if number else "something unforeseen") in (packed.reason or "")
    assert "\n" not in (packed.reason or "")


@pytest.mark.usefixtures("honest_processor")
def test_a_model_that_tensorflow_itself_dies_on(
    fault: Callable[[str, int, int], None], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    fault("glowplug.convert.calls.equivalence", signal.SIGILL, 2)
    with pytest.raises(errors.UnsupportedModelError, match=r"SIGILL.*glowplug doctor.*ONEDNN_MAX_CPU_ISA"):
        glowplug.pack(saved_model("scalar"), tmp_path / "out" / "m.glow", prefer="any")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.fixture
def lying_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It announces AMX, and the child that tries it dies."""
    dies = [sys.executable, "-I", "-S", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"]
    monkeypatch.setattr(fingerprint, "cpu_features", lambda: ("amx_bf16", "amx_tile"))
    monkeypatch.setattr(amx, "ask", lambda _, ask=amx.ask: ask(dies))
    amx.answer.cache_clear()
    yield
    amx.answer.cache_clear()


@pytest.mark.usefixtures("lying_processor")
def test_where_the_processor_lies_the_child_is_told(
    fault: Callable[[str, int, int], None], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """The second child has the variable that keeps TensorFlow from AMX, and converts."""
    fault("glowplug.convert.calls.equivalence", signal.SIGILL, 2)
    packed = glowplug.pack(saved_model("scalar"), tmp_path / "m.glow", engine="native")
    assert (packed.manifest.engine, packed.reason) == ("native", None)
    (note,) = packed.notes
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in note
    assert (tmp_path / "fault" / "count").read_text() == "xx"
    assert "ONEDNN_MAX_CPU_ISA" not in os.environ


def test_native_alone_does_not_fall_back(
    fault: Callable[[str, int, int], None], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    fault("glowplug.convert.native", signal.SIGSEGV, 1)
    with pytest.raises(errors.UnsupportedModelError, match="SIGSEGV at the stage"):
        glowplug.pack(saved_model("scalar"), tmp_path / "out" / "m.glow", engine="native")


def test_a_child_that_cannot_start_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from glowplug.convert.job import Order

    monkeypatch.setattr(sys, "executable", "/bin/false")
    with contextlib.closing(Child(tmp_path)) as child, pytest.raises(Crash):
        child.run(Order(tmp_path, tmp_path), lambda stage: None)


@pytest.mark.parametrize(
    ("number", "stage", "engine"),
    [
        (signal.SIGTERM, "compare answers", "auto"),
        (signal.SIGKILL, "compare answers", "auto"),
        (signal.SIGINT, "compare answers", "auto"),
        (signal.SIGTERM, "convert for LiteRT", "litert"),
        (signal.SIGKILL, "compare answers", "litert"),
    ],
)
def test_nothing_is_left_when_the_caller_is_ended(
    number: int, stage: str, engine: str, saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """A program in Python, which has no handler: the child cleans up after it."""
    if engine == "litert":
        pytest.importorskip("ai_edge_litert")
    code = (
        "import sys, glowplug\n"
        "def tell(stage):\n"
        "    if stage == sys.argv[3]:\n"
        "        print('now', flush=True); sys.stdin.readline()\n"
        "glowplug.pack(sys.argv[1], sys.argv[2], progress=tell, prefer='any', engine=sys.argv[4])\n"
    )
    command = [sys.executable, "-c", code, str(saved_model("scalar")), str(tmp_path / "m.glow"), stage, engine]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(number)
    process.wait()
    for child in children:
        _wait_for_end(int(child))
    assert list(tmp_path.iterdir()) == []


def _wait_for_end(pid: int) -> None:
    """Wait for a process that is not ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    assert select.select([descriptor], [], [], 60)[0]
    os.close(descriptor)
