"""The HTML file itself: one file, escaped, and honest about what it leaves out."""

from __future__ import annotations

import dataclasses
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.errors import UsageError
from glowplug.core.profile import Profile, Series, Span
from glowplug.report import document
from glowplug.report.html import render_html

from . import profiles


def embedded(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="profile">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found.group(1)))


def test_one_file_without_references() -> None:
    page = render_html(profiles.training()).decode()
    assert not re.search(r"<(link|img|iframe|object|embed)\b", page)
    assert not re.search(r"\bsrc\s*=", page.split("<script")[0])
    assert "@import" not in page
    assert "url(http" not in page
    assert page.count("<script") == 2


def test_hostile_names_are_escaped_everywhere() -> None:
    page = render_html(profiles.hostile()).decode()
    assert "<img src=x" not in page
    assert "window.pwned=1</script>" not in page
    assert page.count("</script>") == 2
    assert "javascript:" not in "".join(re.findall(r'href="[^"]*"', page))
    assert embedded(page)["wall"] == 100_000_000


def test_names_survive_packing() -> None:
    data = document.page_data(profiles.hostile())
    shared, rest = data["strings"]
    table, before = [], ""
    for count, tail in zip(shared, rest, strict=True):
        before = before[:count] + tail
        table.append(before)
    names = [table[number] for number in data["spans"]["name"]]
    assert names == [span.name for span in profiles.hostile().spans]


def test_values_json_cannot_hold_become_text() -> None:
    assert document.plain_value({"a": float("nan"), "b": (1, {2})}) == {"a": "nan", "b": [1, "{2}"]}


def test_too_many_spans_lose_the_shortest_and_say_so() -> None:
    profile = profiles.large(modules=300, spans=2_000)
    data = document.page_data(profile, maximum_spans=500)
    assert data["left_out"] == len(profile.spans) - 500
    kept = document.longest_spans(profile.spans, 500)
    ids = {span.id for span in kept}
    assert all(span.parent is None or span.parent in ids for span in kept)
    shortest = min(span.duration_ns for span in kept)
    assert all(span.duration_ns <= shortest for span in profile.spans if span.id not in ids)


def test_long_series_keep_their_peaks() -> None:
    points = tuple((index, 7 if index != 31_337 else 9_000) for index in range(50_000))
    times, values = document.thin_points(Series("rss_bytes", points))
    assert len(times) <= document.MAXIMUM_POINTS + 2
    assert values[times.index(31_337)] == 9_000
    assert times == sorted(times)


def test_a_cycle_of_parents_does_not_hang() -> None:
    spans = (
        Span(1, 2, 5, 5, "build", "a", 0, 10, {"kind": "layer"}),
        Span(2, 1, 5, 5, "build", "b", 0, 10, {"kind": "layer"}),
    )
    assert document.page_data(dataclasses.replace(profiles.training(), spans=spans))["spans"]["parent"] == [-1, 0]


def test_missing_jinja_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=r"pip install 'glowplug\[report\]'"):
        render_html(profiles.training())


def test_empty_profile_renders() -> None:
    page = render_html(Profile((), 0, 0, {}, (), {}))
    assert b"Where the time went" in page
    assert b"None found." in page
    assert b"Nothing was found that would make this start shorter." in page


def test_says_how_long_the_start_took_and_what_would_help_most() -> None:
    page = render_html(profiles.training()).decode()
    assert "<strong>23.5 s</strong>" in page
    assert "from launch to the end of the first step; 32.6 s in all" in page
    assert "What would help most (two_traces_on_first_step)" in page


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_name_is_inert(name: str) -> None:
    span = Span(1, None, 5, 5, "build", name, 0, 10, {"kind": "layer", name: name})
    page = render_html(dataclasses.replace(profiles.training(), command=(name,), spans=(span,))).decode()
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    assert embedded(page)["spans"]
