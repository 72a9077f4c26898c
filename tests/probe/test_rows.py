"""Nesting, folding, slopes: pure functions over what was recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.profile import PHASES, Span, phase_totals
from glowplug.probe.events import ASSIGNED, BEGIN, END, ROUND, SPAN, Image
from glowplug.probe.loops import MAXIMUM_ROUNDS, find_loops, least_squares
from glowplug.probe.passes import KEPT_STEPS, busy_notes, find_xla, fold_steps, mark_overwritten
from glowplug.probe.rows import Row, nest, rows_of


def row(start: int, end: int, kind: str = "layer", **attrs: object) -> Row:
    return Row(1, 1, "build", kind, start, end, {"kind": kind, **attrs}, start)


def test_rows_nest_by_time() -> None:
    outer, inner, deepest, later = row(0, 10), row(2, 8), row(3, 4), row(8, 9)
    assert nest([later, deepest, inner, outer]) == [outer, inner, deepest, later]
    assert (inner.parent, deepest.parent, later.parent) == (outer, inner, outer)
    assert outer.own_ns() == 3
    assert list(deepest.ancestors()) == [inner, outer]


def test_what_reaches_past_its_parent_is_clipped() -> None:
    outer, inner = row(0, 10), row(5, 15)
    nest([outer, inner])
    assert (inner.parent, inner.end_ns) == (outer, 10)


def test_threads_do_not_nest_in_each_other() -> None:
    mine, other = row(0, 10), row(2, 3)
    other.thread = 2
    nest([mine, other])
    assert other.parent is None


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=40), st.integers(1000, 2000))
def test_phases_always_sum_to_wall_time(pairs: list[tuple[int, int]], wall_ns: int) -> None:
    rows = nest([row(min(pair), max(pair)) for pair in pairs])
    numbers = {id(entry): index for index, entry in enumerate(rows)}
    spans = [
        Span(
            numbers[id(entry)],
            None if entry.parent is None else numbers[id(entry.parent)],
            1,
            1,
            PHASES[numbers[id(entry)] % len(PHASES)],
            "x",
            entry.start_ns,
            entry.end_ns,
        )
        for entry in rows
    ]
    totals = phase_totals(spans, wall_ns)
    assert sum(totals.values()) == wall_ns
    assert all(value >= 0 for value in totals.values())


def test_spans_that_were_never_closed_last_until_the_end() -> None:
    events = (
        (BEGIN, 1, 7, 100, "user_code", "__main__", {"kind": "main"}),
        (BEGIN, 2, 7, 110, "import", "a", None),
        (END, 2, 120, {"kind": "module"}),
        (BEGIN, 3, 7, 130, "trace", "f", {"kind": "trace"}),
        (END, 99, 140, None),
        (SPAN, 7, 132, 135, "build", "x", {"kind": "layer", "_name": "dense"}),
    )
    main, module, trace, layer = rows_of(Image(7, 0, events), 100, 500)
    assert (main.start_ns, main.end_ns, main.attrs["unfinished"]) == (0, 500, True)
    assert (module.end_ns, module.attrs) == (20, {"kind": "module"})
    assert (trace.end_ns, trace.attrs["unfinished"]) == (500, True)
    assert (layer.name, layer.attrs) == ("dense", {"kind": "layer"})


def test_what_outlives_the_run_is_cut_at_its_end() -> None:
    events = (
        (BEGIN, 1, 7, 100, "user_code", "__main__", {"kind": "main"}),
        (BEGIN, 2, 7, 450, "import", "a", {"kind": "module"}),
        (END, 2, 650, None),
        (SPAN, 7, 610, 640, "build", "late", {"kind": "layer"}),
        (END, 1, 700, None),
    )
    main, module = rows_of(Image(7, 0, events), 100, 500)
    assert (main.end_ns, module.start_ns, module.end_ns) == (500, 350, 500)


def step(number: int, start: int, end: int, index: int, function: int = 1, parent: int | None = None) -> Span:
    attrs = {"kind": "step", "index": index, "function_id": function, "mode": "call"}
    return Span(number, parent, 1, 1, "steady_steps", "f", start, end, attrs)


def test_later_steps_fold_until_something_comes_between() -> None:
    steps = [step(number, number * 10, number * 10 + 4, number) for number in range(1, 101)]
    other = Span(500, None, 1, 1, "build", "layer", 705, 706, {"kind": "layer"})
    folded = fold_steps(sorted([*steps, other], key=lambda span: span.start_ns))
    runs = [span for span in folded if span.kind == "steps"]
    assert [(span.attrs["first_index"], span.attrs["count"]) for span in runs] == [(KEPT_STEPS + 1, 38), (71, 30)]
    assert runs[0].attrs["busy_ns"] == 38 * 4
    assert len(folded) == KEPT_STEPS + 3
    assert folded == sorted(folded, key=lambda span: span.start_ns)


def test_a_step_with_something_inside_stays() -> None:
    steps = [step(number, number * 10, number * 10 + 4, number) for number in range(1, 50)]
    inside = Span(400, 45, 1, 1, "trace", "f", 451, 452, {"kind": "trace"})
    folded = fold_steps(sorted([*steps, inside], key=lambda span: span.start_ns))
    assert any(span.id == 45 and span.kind == "step" for span in folded)


def test_xla_is_the_difference_from_later_steps() -> None:
    first = row(0, 1000, "step", function_id=1, jit_compile=True)
    trace = row(10, 210, "trace")
    later = [row(2000 + number * 100, 2050 + number * 100, "step", function_id=1) for number in range(3)]
    (added,) = find_xla(nest([first, trace, *later]))
    assert (added.start_ns, added.end_ns) == (210, 210 + (800 - 50))
    assert added.attrs["measured"] == "difference"
    (alone,) = find_xla(nest([row(0, 1000, "step", function_id=2, jit_compile=True)]))
    assert alone.attrs["measured"] == "upper_bound"


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(2, 100))
def test_slopes_of_lines(slope: float, offset: float, count: int) -> None:
    values = [offset + slope * index for index in range(count)]
    assert least_squares(values) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def rounds(count: int, call: str = "fit") -> Image:
    events = tuple(
        (ROUND, call, "a.py:3", "main", index * 100, index * 100 + 50, 1000 + 10 * index, 2, 16 * index, index)
        for index in range(count)
    )
    return Image(1, 0, events)


def test_a_loop_needs_three_rounds() -> None:
    assert find_loops([rounds(2)], 0) == []
    (loop,) = find_loops([rounds(4)], 0)
    assert loop.slopes["graph_ops_per_round"] == pytest.approx(16)
    assert loop.slopes["rss_bytes_per_round"] == pytest.approx(10)
    assert loop.slopes["ns_per_round"] == pytest.approx(0)
    assert [entry.duration_ns for entry in loop.rounds] == [100, 100, 100, 50]


def test_long_loops_are_thinned() -> None:
    (loop,) = find_loops([rounds(5 * MAXIMUM_ROUNDS)], 0)
    assert len(loop.rounds) == MAXIMUM_ROUNDS
    assert loop.slopes["graph_ops_per_round"] == pytest.approx(16)


def test_only_what_a_load_assigns_is_overwritten() -> None:
    """Keras resets metrics by assigning zeros, before the first step too."""
    weight, metric = row(0, 5, "variable", object=1), row(5, 6, "variable", object=2)
    load, step = row(10, 20, "load"), row(30, 40, "step")
    image = Image(1, 0, ((ASSIGNED, 1, 15), (ASSIGNED, 2, 25)))
    mark_overwritten([weight, metric, load, step], [image], 0)
    assert weight.attrs["overwritten"] is True
    assert metric.attrs["overwritten"] is False


@pytest.mark.parametrize(
    ("cpu_s", "read_bytes", "said"), [(2, 0, True), (2, 100 << 20, False), (5, 0, False)], ids=["busy", "disk", "idle"]
)
def test_a_busy_machine_is_said(cpu_s: int, read_bytes: int, said: bool) -> None:
    attrs = {"kind": "module", "cpu_ns": cpu_s * 10**9, "read_bytes": read_bytes}
    span = Span(1, None, 1, 1, "import", "tensorflow", 0, 6 * 10**9, attrs)
    notes = busy_notes([span], 1)
    assert len(notes) == said
    assert all("6.0 s for 2.0 s of computing" in note for note in notes)
