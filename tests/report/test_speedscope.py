"""The file for speedscope.app: frames that open and close in order, for every thread."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.profile import Profile, Span
from glowplug.report.speedscope import render_speedscope

from . import profiles


def check(document: dict) -> None:
    """What speedscope refuses: times that run back, frames that close in another order, or never."""
    frames = document["shared"]["frames"]
    for profile in document["profiles"]:
        opened, at = [], profile["startValue"]
        for event in profile["events"]:
            assert event["at"] >= at
            at = event["at"]
            assert frames[event["frame"]]["name"]
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert opened.pop() == event["frame"]
        assert opened == []
        assert at <= profile["endValue"]


@pytest.mark.parametrize("make", [profiles.training, profiles.large, profiles.hostile])
def test_frames_nest(make) -> None:
    check(json.loads(render_speedscope(make())))


def test_the_main_thread_comes_first_and_has_its_spans() -> None:
    document = json.loads(render_speedscope(profiles.training()))
    main = document["profiles"][0]
    assert main["name"] == f"process {profiles.ROOT}"
    assert main["endValue"] == profiles.training().wall_ns
    names = {frame["name"] for frame in document["shared"]["frames"]}
    assert "import: keras" in names


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_any_spans_nest(pairs: list[tuple[int, int]]) -> None:
    spans = tuple(Span(n, None, 1, 1, "build", "x", min(pair), max(pair)) for n, pair in enumerate(pairs))
    check(json.loads(render_speedscope(Profile(("x",), 0, 50, {}, spans, {}))))
