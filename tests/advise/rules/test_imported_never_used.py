import pytest


def imported(make, **environment):
    make.environment = {"runtime_used": False, "tensorflow_importer": {"module": "lib", "site": "a.py:1"}}
    make.environment.update(environment)
    outer = make.span("module", 0.1, 3.5, phase="import", name="keras", module="keras")
    make.span("module", 0.2, 3, within=outer, phase="import", name="tensorflow", module="tensorflow")
    make.span("exit", 4, 0.5, phase="interpreter")


def test_fires_and_names_who_asked(make):
    imported(make)
    match = make.match("imported_never_used")
    assert match.saves_ns == 4_000_000_000
    assert match.evidence["imported_by"] == "lib"
    assert "a.py:1" in match.title


@pytest.mark.parametrize("environment", [{"runtime_used": True}, {"keras_backend": "jax"}])
def test_silent(make, environment):
    imported(make, **environment)
    assert make.matches("imported_never_used") == []


def test_silent_when_the_program_failed(make):
    imported(make)
    make.exit_code = 1
    assert make.matches("imported_never_used") == []
