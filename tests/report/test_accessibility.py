"""The pages that are files, for people who see little, use no mouse, or hold a telephone: axe-core in Chromium."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glowplug.core.profile import Profile, UserCall
from glowplug.report.benchmark import render_benchmark
from glowplug.report.compare import compare
from glowplug.report.comparison_html import render_comparison
from glowplug.report.html import render_html
from tests.accessibility import hidden_columns, violations

from . import profiles
from .test_benchmark import benchmark_document  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser
NARROW = 420

CALLS = tuple(UserCall(depth, f"function_{depth}" * 4, f"train.py:{depth}", 10**9, 10**8) for depth in range(16))


def with_calls() -> Profile:
    return dataclasses.replace(profiles.training(), calls=CALLS)


def report() -> bytes:
    return render_html(with_calls())


def comparison() -> bytes:
    before, after = profiles.training(), dataclasses.replace(profiles.training(), findings=())
    return render_comparison(compare(before, after), before, after)


PAGES: dict[str, Callable[[], bytes]] = {
    "report": report,
    "report of a crowd": lambda: render_html(profiles.large(400, 2_000)),
    "report of a hostile program": lambda: render_html(profiles.hostile()),
    "comparison": comparison,
}


def opened(chromium: Any, tmp_path: Path, page: bytes, scheme: str, width: int) -> Any:
    path = tmp_path / "page.html"
    path.write_bytes(page)
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    shown = context.new_page()
    shown.goto(path.as_uri())
    if b"data-ready" in page or b"dataset.ready" in page:
        shown.wait_for_selector("html[data-ready]", timeout=20_000)
    return shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(chromium: Any, tmp_path: Path, name: str, scheme: str) -> None:
    page = opened(chromium, tmp_path, PAGES[name](), scheme, 1280)
    assert violations(page) == []
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_fits_a_telephone(chromium: Any, tmp_path: Path, name: str) -> None:
    page = opened(chromium, tmp_path, PAGES[name](), "light", NARROW)
    assert hidden_columns(page) == 0
    assert violations(page) == []
    page.context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", NARROW)])
def test_the_page_of_a_benchmark(
    chromium: Any,
    tmp_path: Path,
    benchmark_document: Any,  # noqa: F811
    scheme: str,
    width: int,
) -> None:
    page = opened(chromium, tmp_path, render_benchmark(benchmark_document), scheme, width)
    assert violations(page) == []
    assert hidden_columns(page) == 0
    page.context.close()
