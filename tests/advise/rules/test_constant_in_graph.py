def test_fires_on_a_large_array(make):
    make.span("constant", 1, 0.4, bytes=200 << 20, shape=[1000, 50000], site="train.py:3")
    match = make.match("constant_in_graph")
    assert match.saves_bytes == 200 << 20
    assert match.saves_ns == 400_000_000


def test_counts_the_copies_that_follow(make):
    make.span("constant", 1, 0.4, bytes=200 << 20)
    run = make.span("initialize", 2, 1.5, mode="session_run")
    make.span("graph_optimization", 2, 0.5, within=run)
    assert make.match("constant_in_graph").saves_ns == 1_900_000_000


def test_silent_on_small_ones(make):
    make.span("constant", 1, 0.4, bytes=2 << 20)
    assert make.matches("constant_in_graph") == []
