def test_fires_on_a_large_array(make):
    make.span("constant", 1, 0.4, bytes=200 << 20, shape=[1000, 50000], site="train.py:3")
    match = make.match("constant_in_graph")
    assert match.saves_bytes == 200 << 20
    assert match.saves_ns == 400_000_000


def test_silent_on_small_ones(make):
    make.span("constant", 1, 0.4, bytes=2 << 20)
    assert make.matches("constant_in_graph") == []
