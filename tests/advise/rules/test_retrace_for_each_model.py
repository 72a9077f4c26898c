def models(make, *, count, keras=True):
    for index in range(count):
        attrs = {"function": "train", "owner": "Sequential", "owner_object": index, "function_id": index}
        make.span("trace", index, 0.5, phase="trace", keras=keras, reason="first", **attrs)


def test_fires_on_three_models_of_a_class(make):
    models(make, count=5)
    match = make.match("retrace_for_each_model")
    assert match.evidence["models"] == 5
    assert match.saves_ns == 4 * 500_000_000


def test_silent_on_two_models(make):
    models(make, count=2)
    assert make.matches("retrace_for_each_model") == []


def test_silent_on_functions_that_are_not_keras(make):
    models(make, count=5, keras=False)
    assert make.matches("retrace_for_each_model") == []
