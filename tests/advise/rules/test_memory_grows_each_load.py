def test_fires_on_a_slope(make):
    make.loop("load", [0.5] * 12, rss=9e6)
    assert make.match("memory_grows_each_load").saves_bytes == 11 * 9_000_000


def test_silent_on_a_level(make):
    make.loop("load", [0.5] * 12, rss=0)
    assert make.matches("memory_grows_each_load") == []
