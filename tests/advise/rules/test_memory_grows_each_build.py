def test_fires_on_a_slope(make):
    make.loop("model", [2.0] * 12, rss=18e6)
    match = make.match("memory_grows_each_build")
    assert match.saves_bytes == 11 * 18_000_000
    assert match.evidence["rss_bytes_per_round"] == 18_000_000


def test_reports_a_process_once_and_prefers_the_build(make):
    make.loop("fit", [2.0] * 12, rss=19e6, site="train.py:9")
    make.loop("model", [2.0] * 12, rss=18e6, site="train.py:8")
    assert make.match("memory_grows_each_build").evidence["site"] == "train.py:8"


def test_silent_on_a_level(make):
    make.loop("model", [2.0] * 12, rss=0)
    assert make.matches("memory_grows_each_build") == []


def test_silent_on_a_slope_of_few_bytes(make):
    make.loop("model", [2.0] * 12, rss=1e5)
    assert make.matches("memory_grows_each_build") == []
