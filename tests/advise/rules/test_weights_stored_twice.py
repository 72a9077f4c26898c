def load(make, *, duplicate):
    load = make.span("load", 1, 3, path="m", stored_bytes=200 << 20, duplicate_bytes=duplicate)
    make.span("read", 1, 1, within=load, phase="weights_read")
    make.span("assign", 2, 1, within=load, phase="weights_assign")


def test_fires_on_duplicates(make):
    load(make, duplicate=100 << 20)
    match = make.match("weights_stored_twice")
    assert match.saves_bytes == 100 << 20
    assert match.saves_ns == 1_000_000_000
    assert match.remedy.command == "glowplug pack m -o m.glow"


def test_silent_on_a_shared_bias(make):
    load(make, duplicate=4096)
    assert make.matches("weights_stored_twice") == []
