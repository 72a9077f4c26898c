"""What people wait for: up to a mark, a connection, the first step, or to the end of the program."""

from __future__ import annotations

from glowplug.core.profile import Process, Profile, Span, phase_totals


def span(number: int, kind: str, start: int, end: int, *, name: str = "", pid: int = 9, **attrs: object) -> Span:
    phase = {"exit": "exit", "step": "first_step"}.get(kind, "user_code")
    return Span(number, None, pid, pid, phase, name or kind, start, end, {"kind": kind, **attrs})


def profile(*spans: Span) -> Profile:
    root = Process(9, 1, ("python",), "root", 0, 100, 0, True)
    return Profile(("x.py",), 0, 100, {}, spans, phase_totals(spans, 100), processes=(root,))


STEP, EXIT = span(1, "step", 20, 40, index=1), span(2, "exit", 90, 100)


def test_ends_with_the_first_step() -> None:
    later = span(3, "step", 50, 60, index=1)
    found = profile(STEP, later, EXIT).cold_start
    assert (found.until, found.ns) == ("the end of the first step", 40)


def test_a_mark_has_the_last_word() -> None:
    found = profile(STEP, span(3, "mark", 70, 70, name="ready"), EXIT).cold_start
    assert (found.until, found.ns) == ("ready", 70)
    assert profile(STEP, span(3, "mark", 70, 70, name="loaded"), EXIT).cold_start.ns == 40


def test_a_program_without_steps_ends_where_its_exit_begins() -> None:
    assert profile(EXIT).cold_start.ns == 90
    assert profile().cold_start.ns == 100
    assert profile(span(3, "step", 20, 40, index=1, pid=7), EXIT).cold_start.ns == 90  # of a child


def test_a_connection_counts_unless_the_program_says_when_it_is_ready() -> None:
    accepted = span(3, "connection", 60, 60, pid=7)  # by a worker
    found = profile(STEP, accepted, span(4, "connection", 65, 65), EXIT).cold_start
    assert (found.until, found.ns) == ("the first accepted connection", 60)
    assert profile(accepted, span(5, "mark", 70, 70, name="ready"), EXIT).cold_start.until == "ready"
