def rounds(make, *, seconds):
    make.loop("variables_initializer", [seconds] * 20, graph_ops=1)
    for index in range(20):
        make.span("variables_initializer", index, seconds, site="train.py:7")


def test_fires_on_initialisers_built_in_a_loop(make):
    rounds(make, seconds=0.1)
    match = make.match("initializer_built_each_round")
    assert match.saves_ns == 19 * 100_000_000
    assert match.evidence["rounds"] == 20


def test_silent_when_it_costs_next_to_nothing(make):
    rounds(make, seconds=0.001)
    assert make.matches("initializer_built_each_round") == []
