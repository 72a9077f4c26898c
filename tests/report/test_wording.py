"""Names and numbers as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.report import wording


def test_names_lose_their_middle() -> None:
    assert wording.clip("tensorflow.python.ops.math_ops", 15, keep="ends") == "tensorf…ath_ops"
    assert wording.clip("short", 15, keep="ends") == "short"


@given(st.text(st.characters(codec=None)), st.integers(0, 40), st.sampled_from(["start", "end", "ends"]))
def test_clip_and_pad_give_exact_widths(text: str, width: int, keep: str) -> None:
    assert wording.cell_width(wording.clip(text, width, keep=keep)) <= width
    assert wording.cell_width(wording.pad(text, width, keep=keep)) == width


def test_clip_keeps_the_end_that_is_asked_for() -> None:
    assert wording.clip("project/models/encoder.py:118", 12) == "project/mod…"
    assert wording.clip("project/models/encoder.py:118", 12, keep="end") == "…oder.py:118"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("second_trace_ns", 7_300_000_000, "7.30 s"),
        ("ns_per_round", 3_000_000.0, "3.00 ms"),
        ("rss_bytes_per_round", 18_000_000.0, "18.0 MB"),
        ("bytes", 102_000_000, "102 MB"),
        ("modules", 2843, "2,843"),
        ("ratio", 0.123456, "0.123"),
        ("ratio", float("nan"), "nan"),
        ("used", True, "yes"),
        ("sites", ["a.py:1", "b.py:2"], "a.py:1, b.py:2"),
        ("adders", {"a.py:1": 880}, "a.py:1: 880"),
        ("name", "a\x1bb", "a\\x1bb"),
    ],
)
def test_quantities(name: str, value: object, text: str) -> None:
    assert wording.quantity(name, value) == text


def test_labels() -> None:
    assert wording.quantity("slowest_passes_ns", {"remapper": 1_200_000_000}) == "remapper: 1.20 s"
    assert wording.quantity("added_at", {"loop.py:3": 1200}) == "loop.py:3: 1,200"
    assert wording.quantity_label("second_trace_ns") == "second trace"
    assert wording.quantity_label("rss_bytes_per_round") == "rss per round"
    assert wording.quantity_label("ns_per_round") == "time per round"
    assert wording.count(1, "module") == "1 module"
    assert wording.count(2843, "entry", "entries") == "2,843 entries"


def test_what_was_not_seen_is_not_said() -> None:
    assert wording.evidence_items({"server": None, "load_ns": 2_500_000_000}) == [("load", "2.50 s")]
