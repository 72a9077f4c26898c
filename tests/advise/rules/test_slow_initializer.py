def variable(make, *, initializer="Orthogonal", spent=2.0, size=4 << 20, overwritten=False):
    attrs = {
        "name": "kernel",
        "initializer": initializer,
        "initializer_ns": round(spent * 1e9),
        "bytes": size,
    }
    make.span("variable", 1, spent, phase="initializers", overwritten=overwritten, **attrs)


def test_fires_on_few_bytes_in_a_long_time(make):
    variable(make)
    match = make.match("slow_initializer")
    assert match.evidence["initializer"] == "Orthogonal"
    assert 1_900_000_000 < match.saves_ns < 2_000_000_000


def test_silent_on_many_bytes_in_the_time_they_need(make):
    variable(make, initializer="RandomUniform", spent=2.0, size=1 << 30)
    assert make.matches("slow_initializer") == []


def test_silent_on_values_that_were_overwritten(make):
    variable(make, overwritten=True)  # initialized_then_overwritten reports those
    assert make.matches("slow_initializer") == []


def test_silent_on_many_small_variables(make):
    for _ in range(100):
        variable(make, initializer="Zeros", spent=0.01, size=64)
    assert make.matches("slow_initializer") == []
