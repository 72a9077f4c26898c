"""Each rule fires on the script that shows its symptom, and is silent on the fixed twin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.advise.engine import advise
from glowplug.core.profile import Finding, Profile
from glowplug.probe.run import profile_target

SCRIPTS = Path(__file__).with_name("scripts")

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a function that gives a rule's working folder, filled by its `prepare.py` where there is one."""
    made: dict[str, Path] = {}

    def of(rule_id: str) -> Path:
        if rule_id not in made:
            made[rule_id] = tmp_path_factory.mktemp(rule_id)
            prepare = SCRIPTS / rule_id / "prepare.py"
            if prepare.exists():
                subprocess.run([sys.executable, str(prepare), str(made[rule_id])], check=True)
        return made[rule_id]

    return of


def findings_of(script: Path, folder: Path) -> tuple[Finding, ...]:
    return advise(profile_of(script, folder))


def profile_of(script: Path, folder: Path) -> Profile:
    environment = dict(os.environ)
    extra = script.with_name("environment.json")
    if extra.exists():
        settings = json.loads(extra.read_text()).get(script.stem, {})
        environment |= {name: value.format(folder=folder) for name, value in settings.items()}
    profile = profile_target([str(script), str(folder)], environment=environment)
    assert profile.exit_code == 0
    return profile


def test_fires_on_the_symptom(rule_id, folder):
    found = findings_of(SCRIPTS / rule_id / "symptom.py", folder(rule_id))
    mine = [finding for finding in found if finding.rule == rule_id]
    assert len(mine) == 1, [finding.title for finding in found]
    assert mine[0].remedy.doc == f"reference/rules/{rule_id}.md"


def test_silent_on_the_fixed_twin(rule_id, folder):
    found = findings_of(SCRIPTS / rule_id / "fixed.py", folder(rule_id))
    assert [finding.title for finding in found if finding.rule == rule_id] == []


@pytest.mark.parametrize("script", sorted(path.stem for path in (SCRIPTS / "tidy").glob("*.py")))
def test_has_nothing_to_say_of_a_tidy_script_but_its_import(script, tmp_path):
    """They are over within a second of TensorFlow's import, and that can be shortened."""
    profile = profile_of(SCRIPTS / "tidy" / f"{script}.py", tmp_path)
    found = advise(profile)
    expected = {"import_dominates_start"}
    if any("the machine was busy" in note for note in profile.notes):
        expected.add("two_traces_on_first_step")  # which costs a second there
    assert {finding.rule for finding in found} <= expected, [finding.title for finding in found]
