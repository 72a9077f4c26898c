def imported(make, *, cpu, faults, read):
    attrs = {"module": "tensorflow", "cpu_ns": round(cpu * 1e9), "major_faults": faults, "read_bytes": read}
    make.span("module", 0.2, 9, phase="import", name="tensorflow", **attrs)


def test_fires_when_the_import_read_the_disk(make):
    imported(make, cpu=3, faults=2000, read=900 << 20)
    match = make.match("cold_page_cache")
    assert match.saves_ns == 6_000_000_000


def test_silent_when_it_waited_for_a_cpu(make):
    imported(make, cpu=3, faults=0, read=0)
    assert make.matches("cold_page_cache") == []


def test_silent_when_it_computed(make):
    imported(make, cpu=8.9, faults=2000, read=900 << 20)
    assert make.matches("cold_page_cache") == []
