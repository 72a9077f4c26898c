def run(make, *, steps):
    first = make.step(1, 6, 1)
    make.span("xla_compile", 1, 5, within=first, phase="xla", compilations=1)
    make.span(
        "steps", 7, steps * 0.1, phase="steady_steps", function_id=1, first_index=2, count=steps,
        busy_ns=steps * 100_000_000, mode="train",
    )  # fmt: skip


def test_fires_on_a_short_run(make):
    run(make, steps=10)
    match = make.match("xla_compile_not_repaid")
    assert match.saves_ns == 4_000_000_000
    assert match.evidence["steps"] == 11


def test_silent_on_a_long_run(make):
    run(make, steps=1000)
    assert make.matches("xla_compile_not_repaid") == []
