def imported(make, backend):
    make.environment = {"runtime_used": False, "keras_backend": backend}
    make.span("module", 0.2, 3, phase="import", name="tensorflow", module="tensorflow")


def test_fires_under_jax(make):
    imported(make, "jax")
    match = make.match("tensorflow_under_another_backend")
    assert match.saves_ns == 3_000_000_000


def test_silent_under_tensorflow(make):
    imported(make, "tensorflow")
    assert make.matches("tensorflow_under_another_backend") == []
