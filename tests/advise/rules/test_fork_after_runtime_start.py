def test_fires_on_a_fork_of_a_started_runtime(make):
    make.span("fork", 1, 0, runtime_ready=True, child=7, threads=9, how="multiprocessing", site="train.py:5")
    match = make.match("fork_after_runtime_start")
    assert match.evidence["children"] == [7]
    assert match.evidence["threads"] == 9


def test_silent_before_the_first_operation(make):
    make.span("fork", 1, 0, runtime_ready=False, child=7, threads=1)
    assert make.matches("fork_after_runtime_start") == []
