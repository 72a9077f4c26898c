"""Answers of two programs: equal, different, or under other names."""

from __future__ import annotations

import numpy as np
import pytest

from glowplug.bench.equality import compare

ONES = np.ones((2, 3), np.float32)


def test_equal_answers_differ_by_nothing() -> None:
    assert compare({"y": ONES}, {"y": ONES.copy()}) == (0.0, "")


def test_rounding_is_told_and_allowed() -> None:
    difference, reason = compare({"y": ONES}, {"y": ONES * np.float32(1 + 2e-6)})
    assert 1e-6 < difference < 3e-6
    assert reason == ""


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"y": ONES * 2}, "relative difference"),
        ({"y": ONES[:1]}, "instead of"),
        ({"y": ONES.astype(np.float64)}, "float64"),
        ({"y": np.where(np.eye(2, 3) > 0, np.float32(np.nan), ONES)}, "NaN"),
        ({"y": ONES, "z": ONES}, "2 outputs instead of 1"),
        ({}, "0 outputs instead of 1"),
    ],
)
def test_what_differs_is_named(seen: dict[str, np.ndarray], words: str) -> None:
    assert words in compare({"y": ONES}, seen)[1]


def test_integers_and_strings_must_agree_exactly() -> None:
    text = np.array([b"a", b"b"], object)
    assert compare({"t": text}, {"t": text.copy()})[1] == ""
    assert "1 of 2" in compare({"t": text}, {"t": np.array([b"a", b"c"], object)})[1]
    assert "1 of 2" in compare({"n": np.array([1, 2])}, {"n": np.array([1, 3])})[1]


def test_outputs_under_other_names_are_told_by_their_kind() -> None:
    label = np.array([3], np.int64)
    assert compare({"scores": ONES, "label": label}, {"0": label, "1": ONES}) == (0.0, "")
    assert compare({"a": ONES, "b": ONES * 2}, {"a": ONES, "other": ONES * 2}) == (0.0, "")


def test_infinities_in_the_same_places_are_equal() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert compare({"y": values}, {"y": values.copy()}) == (0.0, "")
