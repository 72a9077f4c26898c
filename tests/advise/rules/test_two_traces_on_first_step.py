def traces(make, *, reason="variables_created", first=7.0, second=6.0):
    step = make.step(10, 20, 1)
    attrs = {"phase": "trace", "function": "train", "function_id": 4}
    outer = make.span("trace", 10, first, within=step, reason="first", **attrs)
    make.span("variable", 11, first / 4, within=outer, phase="initializers")
    make.span("trace", 10 + first + 0.1, second, within=step, reason=reason, **attrs)


def test_fires_and_counts_all_up_to_the_second_trace(make):
    traces(make)
    match = make.match("two_traces_on_first_step")
    assert match.saves_ns == 7_100_000_000 - 175_000_000  # less a tenth of what the variables took
    assert match.evidence["first_trace_ns"] == 7_000_000_000
    assert match.evidence["second_trace_ns"] == 6_000_000_000
    assert match.remedy.command == "glowplug run train.py"
    assert len(match.spans) == 2


def test_silent_on_another_reason(make):
    traces(make, reason="shape")
    assert make.matches("two_traces_on_first_step") == []


def test_silent_on_a_small_model(make):
    traces(make, first=0.4)
    assert make.matches("two_traces_on_first_step") == []


def test_speaks_whenever_the_second_trace_costs_more_than_a_second(make):
    make.phases["import"] = 9.0
    traces(make, first=1.5, second=1.1)
    assert make.match("two_traces_on_first_step").evidence["second_trace_ns"] == 1_100_000_000


def test_silent_where_the_second_trace_is_short(make):
    traces(make, first=3.0, second=0.4)
    assert make.matches("two_traces_on_first_step") == []
