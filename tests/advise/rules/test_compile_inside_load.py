def load(make):
    load = make.span("load", 1, 3, format="keras", path="m.keras")
    make.span("compile", 2, 0.3, within=load, in_load=True, object=5, optimizer="Adam")
    make.span("optimizer_build", 2.5, 0.2, within=load, variables=40)


def test_fires_when_nothing_was_trained(make):
    load(make)
    make.step(5, 1, 1, mode="predict", object=5)
    match = make.match("compile_inside_load")
    assert match.saves_ns == 500_000_000
    assert match.evidence["optimizer_variables"] == 40


def test_silent_when_the_model_was_trained(make):
    load(make)
    make.step(5, 1, 1, mode="train", object=5)
    assert make.matches("compile_inside_load") == []
