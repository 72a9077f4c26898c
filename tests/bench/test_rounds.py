"""Rounds: every contestant gets a row, whatever becomes of it."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from glowplug.bench.contestant import Contestant
from glowplug.bench.rounds import THREADS, Plan, measure

pytestmark = pytest.mark.tensorflow


def test_equal_different_and_broken_contestants(bundle_of, faulty, question):
    right = replace(bundle_of("twice"), name="right")
    told: list[str] = []
    contestants = [right, bundle_of("twice"), bundle_of("thrice"), faulty("kill -ILL $$")]
    rows = measure(contestants, question, Plan(2, seconds=0.01, limit_s=120), told.append, reference="right")
    assert [row.outcome for row in rows] == ["measured", "measured", "differs", "failed"]
    assert "SIGILL" in rows[3].reason
    assert "relative difference 0.5" in rows[2].reason
    for row in rows[:3]:
        assert len(row.first_ns) == len(row.loaded_ns) == 2
        assert [one.threads for one in row.steady] == list(THREADS)
        assert all(len(one.latencies_ns) == len(one.rates_per_second) == 2 for one in row.steady)
        assert row.second_pss_bytes is not None
        assert row.peak_rss_bytes is not None
        assert row.cold_first_ns == ()
    assert rows[3].first_ns == ()
    assert rows[1].difference == 0.0
    assert "round 2 of 2" in told


def test_a_contestant_that_fails_later_keeps_what_was_measured(tmp_path, bundle_of, question):
    """It answers three times, which is one try of two processes and one more, and then no more."""
    python = tmp_path / "python"
    left = tmp_path / "left"
    left.write_text("xxx")
    python.write_text(f'#!/bin/sh\n[ -s {left} ] || exit 9\ntruncate -s -1 {left}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    good = bundle_of("twice")
    weak = Contestant("weak", "Weak", good.script, python, good.model)
    (row,) = measure([weak], question, Plan(2, seconds=0.01, limit_s=120))
    assert row.outcome == "failed"
    assert "exit code 9" in row.reason
    assert row.second_pss_bytes is not None
    assert len(row.steady[0].latencies_ns) == 1
