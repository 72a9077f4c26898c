def rounds(make, *, seconds):
    make.loop("variables_initializer", [seconds] * 20, graph_ops=1)
    for index in range(20):
        make.span("variables_initializer", index, seconds, site="train.py:7")


def test_fires_on_initialisers_built_in_a_loop(make):
    rounds(make, seconds=0.1)
    match = make.match("initializer_built_each_round")
    assert match.saves_ns == 19 * 100_000_000
    assert match.evidence["rounds"] == 20


def test_counts_the_runs_of_new_initialisers(make):
    rounds(make, seconds=0.1)
    make.span("variable", 0.1, 0.1, bytes=1000)
    for index in range(20):
        make.span("initialize", 1 + index * 0.1, 0.05, mode="session_run")
    match = make.match("initializer_built_each_round")
    assert match.evidence["cold_runs_ns"] == 19 * (50_000_000 - 4_000)
    assert match.saves_ns == 19 * 100_000_000 + match.evidence["cold_runs_ns"]


def test_silent_when_it_costs_next_to_nothing(make):
    rounds(make, seconds=0.001)
    assert make.matches("initializer_built_each_round") == []
