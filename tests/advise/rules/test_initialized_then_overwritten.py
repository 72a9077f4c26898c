def variables(make, *, overwritten):
    for index in range(3):
        attrs = {"name": f"v{index}", "initializer": "GlorotUniform", "bytes": 1 << 20}
        spent = {"initializer_ns": 200_000_000, "overwritten": overwritten}
        make.span("variable", index, 0.3, phase="initializers", **attrs, **spent)


def test_fires_on_values_that_a_load_replaced(make):
    variables(make, overwritten=True)
    match = make.match("initialized_then_overwritten")
    assert match.saves_ns == 600_000_000
    assert match.evidence["variables"] == 3
    assert "skip_init" in match.remedy.code


def test_silent_when_the_values_were_kept(make):
    variables(make, overwritten=False)
    assert make.matches("initialized_then_overwritten") == []
