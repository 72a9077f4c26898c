import pytest


def program(make, *, imported=3.0, first_step=5.0, **environment):
    """A program whose first step ends after some seconds, of which the import is a part."""
    make.environment.update(environment)
    outer = make.span(
        "module", 0.2, imported, phase="import", name="keras", module="keras", site="train.py:2", modules=9
    )
    make.span("module", 0.3, imported / 2, within=outer, phase="import", name="tensorflow", module="tensorflow")
    make.step(first_step - 0.5, 0.5, 1)
    make.span("steps", first_step, 600, phase="steady_steps", count=9000)


def test_fires_and_says_what_run_and_a_standby_would_give(make):
    program(make)
    match = make.match("import_dominates_start")
    assert match.saves_ns == 1_500_000_000
    assert match.evidence["with_standby_saves_ns"] == 2_850_000_000
    assert match.remedy.command == "glowplug run train.py"
    assert "3.0 s of the first 5.0 s" in match.title
    assert "train.py:2" in match.title
    assert "1.5 s less" in match.remedy.text


def test_counts_two_imports_once_each(make):
    program(make)
    make.span("module", 3.3, 0.4, phase="import", name="tensorflow", module="tensorflow")
    assert make.match("import_dominates_start").evidence["import_ns"] == 3_400_000_000


@pytest.mark.parametrize(
    "seen", [{"imported": 0.8, "first_step": 1.5}, {"first_step": 9.0}, {"runtime_used": False}], ids=str
)
def test_silent(make, seen):
    program(make, **seen)
    assert make.matches("import_dominates_start") == []


@pytest.mark.parametrize("command", ["-- gunicorn app:app", "-m glowplug run train.py"])
def test_silent_on_what_run_cannot_help(make, command):
    make.command = tuple(command.split())
    program(make)
    assert make.matches("import_dominates_start") == []
