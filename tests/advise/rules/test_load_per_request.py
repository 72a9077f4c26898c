def loads(make, *, count, kind="keras", path="m.keras"):
    for index in range(count):
        make.span("load", index, 0.5, format=kind, path=path, site="app.py:4")


def test_fires_on_the_third_load_of_a_path(make):
    loads(make, count=3)
    match = make.match("load_per_request")
    assert match.saves_ns == 1_000_000_000
    assert match.remedy.command == "glowplug pack m.keras -o m.glow"


def test_silent_on_two_loads(make):
    loads(make, count=2)
    assert make.matches("load_per_request") == []


def test_silent_on_checkpoints(make):
    loads(make, count=5, kind="checkpoint")
    assert make.matches("load_per_request") == []
