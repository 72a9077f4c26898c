def test_fires_when_threads_stay_behind(make):
    make.loop("Session", [0.1] * 12, threads=4)
    match = make.match("threads_grow_each_round")
    assert match.evidence["threads_per_round"] == 4
    assert match.evidence["threads_last"] == 49


def test_silent_when_they_do_not(make):
    make.loop("Session", [0.1] * 12, threads=0)
    assert make.matches("threads_grow_each_round") == []
