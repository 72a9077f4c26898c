"""The rule by which `auto` chooses, and the measuring behind it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from glowplug.bench.contestant import Contestant, Question
from glowplug.bench.contestants.start import write_arrays
from glowplug.convert.choice import MOST_ROUNDS, Figures, as_record, best, contestant_for, measure

MS = 1_000_000


def row(engine: str, first_ms: float, steady_ms: float = 1.0, another_mb: int = 50) -> Figures:
    return Figures(engine, round(first_ms * MS), round(steady_ms * MS), another_mb * 1_000_000, 1_000)


@pytest.mark.parametrize(
    ("rows", "prefer", "chosen"),
    [
        ([row("a", 300), row("b", 100)], "start", "b"),
        ([row("a", 300, steady_ms=1), row("b", 100, steady_ms=1.9)], "start", "b"),  # less than a millisecond slower
        ([row("a", 300, steady_ms=50), row("b", 100, steady_ms=80)], "start", "a"),  # sooner, but slower for ever
        ([row("a", 300, steady_ms=50), row("b", 100, steady_ms=54)], "start", "b"),
        ([row("a", 100, steady_ms=9), row("b", 103, steady_ms=5)], "steady", "b"),
        ([row("a", 101, steady_ms=3), row("b", 100, steady_ms=2)], "start", "b"),  # as soon, and faster
        ([row("a", 100, another_mb=90), row("b", 400, another_mb=20)], "memory", "b"),
        ([row("a", 100), Figures("b", failed="crashed with SIGILL")], "start", "a"),
        ([Figures("a", failed="crashed with SIGILL")], "start", ""),
        ([], "start", ""),
    ],
)
def test_the_rule(rows, prefer, chosen):
    assert best(rows, prefer) == chosen


def test_the_record_keeps_every_figure_and_every_failure():
    record = as_record([row("a", 100), Figures("b", failed="no")], "start")
    assert record["prefer"] == "start"
    assert record["engines"]["b"] == {"failed": "no"}
    assert record["engines"]["a"] == {
        "first_ns": 100 * MS,
        "steady_ns": MS,
        "another_bytes": 50_000_000,
        "disk_bytes": 1_000,
    }


@pytest.mark.tensorflow
def test_candidates_are_measured_in_turn_until_it_is_clear(bundle, tmp_path):
    directory = bundle("dense")
    from glowplug.bundle.reader import read_manifest

    name, signature = next(iter(read_manifest(directory).signatures.items()))
    shapes = {key: [size or 1 for size in port.spec.shape or ()] for key, port in signature.inputs.items()}
    inputs = {key: np.ones(shape, np.float32) for key, shape in shapes.items()}
    question = Question(name, tuple(write_arrays(str(tmp_path), inputs)))
    starts = tmp_path / "starts"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho x >> {starts}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nkill -ILL $$\n")
    broken.chmod(0o755)
    counted = Contestant("counted", "", "glowplug_bundle", python, directory)
    candidates = [
        contestant_for("native", directory, sys.path, ()),
        counted,
        Contestant("broken", "", "glowplug_bundle", broken, directory),
    ]
    rows = measure(candidates, question, "memory")
    assert [row.engine for row in rows] == ["native", "counted", "broken"]
    assert rows[2].failed == "crashed with SIGILL"
    assert all(row.first_ns and row.steady_ns and row.another_bytes and row.disk_bytes for row in rows[:2])
    assert best(rows, "memory") in ("native", "counted")
    started = len(starts.read_text().splitlines())
    assert 3 <= started <= MOST_ROUNDS + 1
    (alone,) = measure(candidates[:1], question, "start")
    assert alone.first_ns > 0
