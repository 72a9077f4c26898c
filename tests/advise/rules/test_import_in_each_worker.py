def workers(make, *, count, life):
    for index in range(count):
        pid = 200 + index
        make.process(pid, 5 * index, life)
        make.span("module", 5 * index, 3, pid=pid, phase="import", name="tensorflow", module="tensorflow")


def test_fires_on_short_lives(make):
    workers(make, count=3, life=4)
    match = make.match("import_in_each_worker")
    assert match.saves_ns == 6_000_000_000  # one import remains
    assert match.remedy.command == "glowplug run train.py"
    assert match.evidence["with_run_saves_ns"] == 4_500_000_000
    assert "4.5 s less here" in match.remedy.text


def test_counts_imports_at_the_same_time_once(make):
    for pid in (200, 201):
        make.process(pid, 0, 4)
        make.span("module", 0, 3, pid=pid, phase="import", name="tensorflow", module="tensorflow")
    assert make.match("import_in_each_worker").saves_ns == 1_500_000_000


def test_silent_on_long_lives(make):
    workers(make, count=3, life=600)
    assert make.matches("import_in_each_worker") == []


def test_silent_on_one_worker(make):
    workers(make, count=1, life=4)
    assert make.matches("import_in_each_worker") == []
