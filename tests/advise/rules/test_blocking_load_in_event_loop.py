def test_fires_inside_a_coroutine(make):
    make.span("load", 1, 2, path="m.keras", in_event_loop=True, site="app.py:3")
    match = make.match("blocking_load_in_event_loop")
    assert match.saves_ns == 2_000_000_000
    assert "load_async" in match.remedy.code


def test_silent_in_a_thread(make):
    make.span("load", 1, 2, path="m.keras", in_event_loop=False)
    assert make.matches("blocking_load_in_event_loop") == []
