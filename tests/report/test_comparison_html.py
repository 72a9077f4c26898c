"""Before and after as a page: what stands out is called, and nothing in a profile becomes markup."""

from __future__ import annotations

import dataclasses
import re

import pytest

from glowplug.core.profile import Finding, Profile, Remedy
from glowplug.report.compare import compare

from . import profiles
from .test_compare import repeated

pytest.importorskip("jinja2")
from glowplug.report.comparison_html import render_comparison

SLOW, QUICK = [3000, 3040, 2980, 3010, 3020], [1500, 1520, 1490, 1510, 1500]


def page(before: Profile, after: Profile) -> str:
    return render_comparison(compare(before, after), before, after).decode()


def finding(rule: str, title: str) -> Finding:
    return Finding(rule, title, {}, 2_000_000_000, Remedy("do it"))


def test_says_what_became_of_it() -> None:
    text = page(repeated(SLOW), repeated(QUICK))
    assert '<strong class="faster">1.51 s faster</strong>' in text
    assert "4.01 s before, 2.50 s after; 5 runs and 5 runs, medians" in text
    rows = re.findall(r'<th scope="row">(.+?)</th>', text)
    assert rows == ["import", "first step", "total"]
    assert "1.51 s slower" in page(repeated(QUICK), repeated(SLOW))
    assert "about the same" in page(repeated(QUICK), repeated(QUICK))


def test_findings_that_went_came_and_stayed() -> None:
    before = dataclasses.replace(repeated(SLOW), findings=(finding("a", "first"), finding("b", "second")))
    after = dataclasses.replace(repeated(QUICK), findings=(finding("b", "second"), finding("c", "third")))
    found = re.findall(r"<h3>(.+?)</h3>|<li>(.+?) <span", page(before, after))
    said = ["".join(pair) for pair in found]
    assert said == ["Gone", "first", "New", "third", "Still there", "second"]
    assert "None on either side." in page(repeated(SLOW), repeated(QUICK))


def test_a_hostile_profile_stays_text() -> None:
    hostile = profiles.hostile()
    text = page(hostile, hostile)
    assert "<script" not in text
    assert "onerror=" not in re.sub(r"&lt;[^<]*", "", text)
    assert "default-src 'none'; style-src 'sha256-" in text
