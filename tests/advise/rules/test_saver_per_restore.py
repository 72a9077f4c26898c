def rounds(make, *, seconds):
    make.loop("saver", [seconds] * 10, graph_ops=30)
    for index in range(10):
        make.span("saver", index, seconds, site="train.py:7")


def test_fires_on_savers_made_in_a_loop(make):
    rounds(make, seconds=0.1)
    match = make.match("saver_per_restore")
    assert match.saves_ns == 900_000_000


def test_counts_restores_beyond_their_reading(make):
    rounds(make, seconds=0.1)
    make.span("load", 5, 0.3, format="tf1_checkpoint", bytes=100_000_000)
    assert make.match("saver_per_restore").evidence["cold_restores_ns"] == 200_000_000


def test_silent_when_it_costs_next_to_nothing(make):
    rounds(make, seconds=0.001)
    assert make.matches("saver_per_restore") == []
