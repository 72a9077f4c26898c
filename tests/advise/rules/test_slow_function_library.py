def load(make, *, functions):
    load = make.span("load", 1, 4, format="saved_model", path="exported/1")
    make.span("saved_model_functions", 1, functions, within=load, count=420)
    make.span("saved_model_objects", 1 + functions, 0.2, within=load, count=900)


def test_fires_when_functions_dominate_the_load(make):
    load(make, functions=2.5)
    match = make.match("slow_function_library")
    assert match.saves_ns == 2_700_000_000
    assert match.evidence["functions"] == 420
    assert match.remedy.command == "glowplug pack exported/1 -o 1.glow"


def test_silent_when_weights_dominate(make):
    load(make, functions=0.4)
    assert make.matches("slow_function_library") == []
