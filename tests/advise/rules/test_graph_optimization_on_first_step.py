def optimise(make, *, seconds, index=1, mode="train"):
    step = make.step(10, 9, index, mode=mode)
    work = make.span("graph_optimization", 11, seconds, within=step, phase="graph_optimization", runs=2)
    make.span("pass", 11, seconds / 2, within=work, phase="graph_optimization", **{"pass": "layout"})


def test_fires_on_long_optimisation_in_step_one(make):
    optimise(make, seconds=3)
    match = make.match("graph_optimization_on_first_step")
    assert match.saves_ns == 3_000_000_000
    assert match.evidence["slowest_passes_ns"] == {"layout": 1_500_000_000}
    assert match.remedy.command == "glowplug run train.py"


def test_advises_packing_for_a_loaded_model_that_predicts(make):
    make.span("load", 1, 2, path="models/my model", format="saved_model")
    optimise(make, seconds=3, mode="call")
    match = make.match("graph_optimization_on_first_step")
    assert match.remedy.command == "glowplug pack 'models/my model' -o 'my model.glow'"


def test_silent_on_a_small_graph(make):
    optimise(make, seconds=0.1)
    assert make.matches("graph_optimization_on_first_step") == []


def test_silent_in_later_steps(make):
    optimise(make, seconds=3, index=2)
    assert make.matches("graph_optimization_on_first_step") == []
