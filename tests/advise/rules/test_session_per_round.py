def sessions(make, *, opening):
    make.loop("Session", [1.0] * 4)
    for index in range(4):
        make.span("session", 1 + index, opening, phase="session", site="train.py:7", object=index, graph_ops=50)
        run = make.step(1.5 + index, 0.4, 1, mode="session_run", object=index, function_id=index)
        make.span("graph_optimization", 1.5 + index, 0.01, within=run, phase="graph_optimization")


def test_fires_on_sessions_that_cost(make):
    sessions(make, opening=0.2)
    match = make.match("session_per_round")
    assert match.saves_ns == 3 * 210_000_000
    assert match.evidence["first_run_overhead_ns"] == 30_000_000


def test_silent_on_cheap_sessions(make):
    sessions(make, opening=0.001)
    assert make.matches("session_per_round") == []
