def calls(make, *, count, reason="python_value"):
    make.step(1, 1, 1, mode="call")
    for index in range(count):
        step = make.step(2 + index, 0.5, index + 2, mode="call")
        attrs = {"function": "step", "function_id": 1, "reason": reason, "differs": f"x: {index}"}
        make.span("trace", 2 + index, 0.3, within=step, phase="trace", **attrs)
    make.step(50, 0.1, count + 2, mode="call")


def test_fires_on_repeated_traces_and_counts_their_steps(make):
    calls(make, count=4)
    match = make.match("retrace_by_python_value")
    assert match.evidence["retraces"] == 4
    assert match.evidence["differs"] == ["x: 0", "x: 1", "x: 2", "x: 3"]
    assert match.saves_ns == 4 * 400_000_000  # a step with a trace takes 0.5 s, one without 0.1 s


def test_silent_on_one_retrace(make):
    calls(make, count=1)
    assert make.matches("retrace_by_python_value") == []


def test_silent_on_other_reasons(make):
    calls(make, count=4, reason="dtype")
    assert make.matches("retrace_by_python_value") == []
