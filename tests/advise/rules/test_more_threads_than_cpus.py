def test_fires_far_above_the_cpus(make):
    make.environment = {"threads_after_import": 64, "cpu_count": 2, "env": {"OMP_NUM_THREADS": "64"}}
    match = make.match("more_threads_than_cpus")
    assert match.evidence["settings"]["OMP_NUM_THREADS"] == "64"


def test_silent_near_the_cpus(make):
    make.environment = {"threads_after_import": 9, "cpu_count": 8}
    assert make.matches("more_threads_than_cpus") == []
