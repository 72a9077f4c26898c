"""Scripts give the same output under `glowplug run`, with and without a standby, as under Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
STARTUP, TUNING, BASELINE = (
    ROOT / "examples" / "startup",
    ROOT / "examples" / "tuning",
    ROOT.parent / "shared" / "baseline",
)
WAYS = {
    "stock": (),
    "plain": ("-m", "glowplug", "run", "--no-standby"),
    "standby": ("-m", "glowplug", "run", "--standby"),
}
# What may differ from one process to the next, wherever it is printed: lines of TensorFlow's native log, of which a
# standby has printed those of the import; durations and memory; addresses; the folder that a run writes to. What the
# trace cache says about a step that it does not restore is no output of the script.
LOGGED = re.compile(
    r"^(WARNING: All log messages before absl|To enable the following instructions: |glowplug: the \w+ step of "
    r"|[IWEF]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IWEF] ).*\n",
    re.M,
)
MEASURED = re.compile(r'("\w+_s": (?:\{[^}]*\}|[\d.e-]+)|"\w+_mb": \d+|\b\d+\.\d+ s\b|\b\d+ MB\b| at 0x[0-9a-f]+)')


class Script(NamedTuple):
    """A script with its arguments; words in braces are folders that are made for it."""

    path: Path
    arguments: tuple[str, ...] = ()


ORDINARY = (
    Script(STARTUP / "encoder.py"),
    Script(STARTUP / "import_only.py"),
    Script(STARTUP / "one_session.py"),
    Script(STARTUP / "one_trace.py"),
    Script(TUNING / "optuna.py", ("--trials", "1")),
    Script(BASELINE / "make_models.py", ("{out}", "dense")),
    Script(BASELINE / "stock.py", ("keras", "{dense}/dense.keras", "1,784", "float32")),
    Script(BASELINE / "stock.py", ("saved_model", "{dense}/dense_saved_model", "1,784", "float32")),
)
# Not here: make_answers.py rewrites a page of the documentation; peers.py imports no TensorFlow; train_stock.py prints
# losses for resnet50 that differ between two runs of stock TensorFlow.
SLOW = (
    Script(STARTUP / "first_step_built_before.py"),
    Script(STARTUP / "load_h5.py", ("{network}",)),
    Script(STARTUP / "load_in_background.py", ("{network}",)),
    Script(STARTUP / "load_saved_model.py", ("{network}",)),
    Script(STARTUP / "make_models.py", ("{out}",)),
    Script(STARTUP / "remote_copied_first.py", ("{network}",)),
    Script(STARTUP / "remote_in_pieces.py", ("{network}",)),
    Script(STARTUP / "remote_storage.py"),
    Script(STARTUP / "retracing_function.py"),
    Script(STARTUP / "session_per_round.py"),
    Script(STARTUP / "slow_first_step.py"),
    Script(STARTUP / "slow_initializer.py"),
    Script(STARTUP / "zeros_initializer.py"),
    Script(TUNING / "keras_tuner.py", ("--trials", "1")),
    Script(TUNING / "optuna.py", ("--rebuild", "--trials", "1")),
    Script(BASELINE / "train_stock.py", ("encoder",)),
)

Launch = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Run a script one of the ways, with an archive, a record and a standby that are there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GLOWPLUG_", "TF_"))}
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        Path(directory).chmod(0o700)
        environment = {
            **kept,
            "PYTHONPATH": str(ROOT / "src"),
            "GLOWPLUG_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
            "GLOWPLUG_STANDBY_DIR": directory,
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(way: str, *words: object) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, *WAYS[way], *map(str, words)]
            return subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500
            )

        for way in WAYS:
            run(way, "-c", "import tensorflow, keras")
        yield run
        subprocess.run(
            [sys.executable, "-m", "glowplug", "standby", "stop", "--all"], env=environment, capture_output=True
        )


@pytest.fixture(scope="module")
def made(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a folder with models, made by the script that belongs to them."""
    folders: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            words = {"dense": (BASELINE / "make_models.py", folders[name], "dense")}
            done = launch("stock", *words.get(name, (STARTUP / "make_models.py", folders[name])))
            assert done.returncode == 0, done.stderr
        return folders[name]

    return make


def named(script: Script) -> str:
    return "-".join((script.path.stem, *(word for word in script.arguments[:1] if word.isalpha())))


@pytest.mark.parametrize("script", [*ORDINARY, *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)], ids=named)
def test_a_script_gives_the_same_output(launch, made, tmp_path, script):
    if not script.path.exists():
        pytest.skip(f"{script.path.name} is in a folder beside the project, which is not here")
    outcomes = {}
    for way in WAYS:
        out = tmp_path / way
        out.mkdir()
        words = [fill(word, out, made) for word in script.arguments]
        done = launch(way, script.path, *words)
        outcomes[way] = (done.returncode, mask(done.stdout, out), mask(done.stderr, out), files_in(out))
    assert outcomes["stock"][0] == 0, outcomes["stock"]
    assert outcomes["plain"] == outcomes["stock"]
    assert outcomes["standby"] == outcomes["stock"]


def fill(word: str, out: Path, made: Callable[[str], Path]) -> str:
    found = re.match(r"\{(\w+)\}", word)
    return word if found is None else word.replace(found[0], str(out if found[1] == "out" else made(found[1])))


def mask(text: str, out: Path) -> str:
    return MEASURED.sub("…", LOGGED.sub("", text)).replace(str(out), "OUT")


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_is_masked_is_what_differs_anyway():
    shown = '{"to_first_s": 1.5, "spans_s": {"a": 1}, "max_rss_mb": 7, "head": [0.5]} trial: 1.25 s, 300 MB best: 0.5\n'
    log = "I0000 00:00:1 2 port.cc:153] x\n2026-01-01 10:00:00.5: I tensorflow/core/x.cc:1] y\nWARNING: kept\n"
    assert mask(log + shown, Path("nowhere")) == 'WARNING: kept\n{…, …, …, "head": [0.5]} trial: …, … best: 0.5\n'
