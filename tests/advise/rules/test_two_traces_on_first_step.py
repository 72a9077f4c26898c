def traces(make, *, reason="variables_created", seconds=6.0):
    step = make.step(10, 20, 1)
    make.span("trace", 10, 7, within=step, phase="trace", function="train", function_id=4, reason="first")
    make.span("trace", 17, seconds, within=step, phase="trace", function="train", function_id=4, reason=reason)


def test_fires_on_a_second_trace_after_variables_were_made(make):
    traces(make)
    match = make.match("two_traces_on_first_step")
    assert match.saves_ns == 6_000_000_000
    assert match.evidence["first_trace_ns"] == 7_000_000_000
    assert match.remedy.command == "glowplug run train.py"
    assert len(match.spans) == 2


def test_silent_on_another_reason(make):
    traces(make, reason="shape")
    assert make.matches("two_traces_on_first_step") == []


def test_silent_when_the_trace_is_short(make):
    traces(make, seconds=0.05)
    assert make.matches("two_traces_on_first_step") == []
