def wait(make, start, **attrs):
    make.span("io", start, 0.5, phase="io_wait", **{"io": "socket", "target": "db:5432", "calls": 1, **attrs})


def test_fires_on_waits_before_the_step(make):
    wait(make, 1)
    wait(make, 2, io="sleep", target="sleep")
    make.step(5, 1, 1)
    match = make.match("waiting_before_first_step")
    assert match.saves_ns == 1_000_000_000
    assert len(match.evidence["waits"]) == 2


def test_silent_on_waits_after_it(make):
    make.step(1, 1, 1)
    wait(make, 5)
    assert make.matches("waiting_before_first_step") == []


def test_silent_on_another_thread(make):
    wait(make, 1, thread=999)
    make.step(5, 1, 1)
    assert make.matches("waiting_before_first_step") == []
