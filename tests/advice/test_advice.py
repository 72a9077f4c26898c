"""Twelve programs as people have them: the advice that each must get, the line that it must name, and none besides."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from glowplug.advise.engine import with_findings
from glowplug.core.profile import Profile
from glowplug.probe.run import profile_target
from glowplug.report.closing import closing_text

SCRIPTS = Path(__file__).with_name("scripts")
pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

# What a busy machine, of which the profile says so, makes of any small model.
BUSY = {"two_traces_on_first_step", "graph_optimization_on_first_step", "slow_initializer", "waiting_before_first_step"}
IMPORT = "import_dominates_start"  # true of any short program beside what else is wrong with it


@dataclass(frozen=True)
class Case:
    """A program, the rules that must speak of it, those that may, and how it ends."""

    script: str
    must: set[str]
    may: set[str] = field(default_factory=set)
    exit_code: int = 0
    arguments: tuple[str, ...] = ()
    module: str = ""

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.script}.py"

    @property
    def line(self) -> str | None:
        """The line that the advice must name: `script.py:7`."""
        lines = self.path.read_text().splitlines()
        numbers = [number for number, text in enumerate(lines, 1) if text.endswith("# the line")]
        return f"{self.path.name}:{numbers[0]}" if numbers else None


CASES = [
    Case("import_only", {"imported_never_used"}),
    Case("cnn", {IMPORT}),
    Case("two_traces", {"two_traces_on_first_step"}, {IMPORT, "graph_optimization_on_first_step"}),
    Case("retraces", {"retrace_by_shape"}, {IMPORT}),
    Case(
        "rebuild_loop",
        {"retrace_for_each_model", "memory_grows_each_build"},
        {IMPORT, "graph_optimization_on_first_step", "two_traces_on_first_step"},
    ),
    Case("session_loop", {"graph_grows_each_round"}, {IMPORT, "initializer_built_each_round"}),
    Case("uvicorn_service", {"predicts_with_stock_tensorflow"}, {IMPORT}, arguments=("{model}",)),
    Case("spawn_pool", {"import_in_each_worker"}),
    Case(
        "weights_overwritten", {"initialized_then_overwritten"}, {IMPORT, "slow_initializer"}, arguments=("{folder}",)
    ),
    Case("crash", set(), exit_code=1),
    Case("check_model", {IMPORT}, module="pytest"),
    Case("nothing_wrong", set()),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("advice")
    code = (
        "import keras, sys;"
        "m = keras.Sequential([keras.Input([8]), keras.layers.Dense(16), keras.layers.Dense(1)]);"
        "m.save(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, made / "model.keras"], check=True, capture_output=True)
    subprocess.run([sys.executable, SCRIPTS / "weights_overwritten.py", made], check=True, capture_output=True)
    return made


def profile_of(case: Case, folder: Path) -> Profile:
    words = ["-m", case.module] if case.module else []
    words += [str(case.path), *(each.format(model=folder / "model.keras", folder=folder) for each in case.arguments)]
    return with_findings(profile_target(words))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_gets_the_advice_it_needs_and_none_besides(case: Case, folder: Path) -> None:
    if case.script == "uvicorn_service":
        pytest.importorskip("uvicorn")
        pytest.importorskip("fastapi")
    profile = profile_of(case, folder)
    assert profile.exit_code == case.exit_code
    found = {finding.rule: finding for finding in profile.findings}
    told = {rule: finding.title for rule, finding in found.items()}
    assert case.must <= set(found), told
    busy = any("the machine was busy" in note for note in profile.notes)
    assert set(found) <= case.must | case.may | (BUSY if busy else set()), told
    if case.line is not None:
        said = [f"{finding.title} {finding.evidence}" for rule, finding in found.items() if rule in case.must]
        assert any(case.line in each for each in said), said
    closing = closing_text(profile)
    assert (profile.findings[0].rule if profile.findings else "Nothing was found") in closing


def test_there_are_twelve():
    assert len(CASES) == 12
    assert {case.script for case in CASES} == {path.stem for path in SCRIPTS.glob("*.py")}
