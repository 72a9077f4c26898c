"""The groupings: the main thread adds up, and rows hold what they say."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.profile import Profile, Span
from glowplug.report import summary

from . import profiles


def test_segments_cover_the_run_and_agree_with_the_phases() -> None:
    profile = profiles.training()
    totals: dict[str, int] = {}
    now = 0
    for segment in summary.segments(profile):
        assert segment.start_ns == now
        now = segment.end_ns
        totals[segment.phase] = totals.get(segment.phase, 0) + segment.end_ns - segment.start_ns
    assert now == profile.wall_ns
    assert totals == {name: ns for name, ns in profile.phases.items() if ns}


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=12))
def test_segments_never_run_backwards(ranges: list[tuple[int, int]]) -> None:
    spans = tuple(
        Span(number, None, 5, 5, "build", "x", min(pair), max(pair), {"kind": "layer"})
        for number, pair in enumerate(ranges)
    )
    profile = dataclasses.replace(profiles.training(), spans=spans, wall_ns=100)
    profile = dataclasses.replace(profile, processes=(dataclasses.replace(profile.processes[0], pid=5),))
    now = 0
    for segment in summary.segments(profile):
        assert segment.start_ns == now < segment.end_ns
        now = segment.end_ns
    assert now == 100


def test_each_column_of_the_waterfall_adds_up_to_one() -> None:
    shares = summary.density(profiles.training(), 41)
    for column in range(41):
        assert abs(sum(row[column] for row in shares.values()) - 1) < 1e-9


def test_nothing_to_divide() -> None:
    assert summary.density(Profile((), 0, 0, {}, (), {}), 10) == {}


def test_traces_are_grouped_by_function_object() -> None:
    rows = summary.trace_rows(profiles.training(), 10)
    assert [(row.function, row.traces, row.reasons) for row in rows] == [
        ("one_step_on_data", 2, ("variables_created",)),
        ("call", 2, ()),
    ]


def test_steps() -> None:
    (row,) = summary.step_rows(profiles.training(), 10)
    assert row.steps == 5
    assert row.steady_ns == 2_090_000_000
    assert row.first_ns[1:] == (2_150_000_000, 2_150_000_000)


def test_loads_are_split_by_phase() -> None:
    ((span, parts),) = summary.load_rows(profiles.training(), 10)
    assert parts == {
        "build": 30_000_000,
        "weights_read": 140_000_000,
        "weights_decode": 90_000_000,
        "weights_assign": 60_000_000,
    }
    assert sum(parts.values()) == span.duration_ns


def test_imports() -> None:
    profile = profiles.training()
    assert [row.module for row in summary.outermost_imports(profile, 5)] == ["keras"]
    assert summary.slowest_modules(profile, 1)[0].module == "tensorflow.python.ops.math_ops"


def test_long_chains_of_importers_are_counted() -> None:
    chain = [f"m{number}" for number in range(20)]
    assert summary.importer_chain({"chain": chain}) == ["m0", "m1", "m2", "14 more", "m17", "m18", "m19"]
    assert summary.importer_chain({"module": "keras"}) == ["keras"]
