def requests(make, *, count):
    for index in range(count):
        make.span("io", index, 0.05, phase="io_wait", io="socket", target="store:80", calls=1, bytes=1000)


def test_fires_on_many_waits_for_one_address(make):
    requests(make, count=40)
    match = make.match("connection_per_read")
    assert match.evidence["waits"] == 40
    assert match.saves_ns == 39 * 50_000_000


def test_silent_on_a_few(make):
    requests(make, count=5)
    assert make.matches("connection_per_read") == []
