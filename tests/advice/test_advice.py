"""Twelve programs as people have them: the advice that each must get, the line that it must name, and none besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowplug.advise.engine import with_findings
from glowplug.probe.run import profile_target
from glowplug.report.closing import closing_text
from tests.advice.programs import CASES, IMPORT, SCRIPTS, Case, prepare

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

# What a busy machine, of which the profile says so, makes of any small model.
BUSY = {"two_traces_on_first_step", "graph_optimization_on_first_step", "slow_initializer", "waiting_before_first_step"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("advice")
    prepare(made)
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_gets_the_advice_it_needs_and_none_besides(case: Case, folder: Path) -> None:
    if case.script == "uvicorn_service":
        pytest.importorskip("uvicorn")
        pytest.importorskip("fastapi")
    profile = with_findings(profile_target(case.words(folder)))
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


def test_a_twin_that_follows_the_advice_belongs_to_a_program():
    """Where there is none, the advice is `glowplug run`; `bench/advice_savings.py` measures what each saves."""
    fixed = {path.stem for path in SCRIPTS.with_name("fixed").glob("*.py")}
    assert fixed == {case.script for case in CASES if case.must - {IMPORT}}
