"""A real Chromium for the HTML report. Pages are opened from disk, as users open them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from glowplug.core.profile import Profile
from glowplug.report.html import render_html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Opened:
    """A page and all it complained about or asked the network for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def view(self) -> tuple[int, int]:
        """The range of time the timeline shows, once it has painted."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found = self.page.evaluate(
            "() => { const d = document.getElementById('timeline').dataset; return [d.from, d.to]; }"
        )
        return int(found[0]), int(found[1])

    def box(self, selector: str) -> dict[str, float]:
        """Scroll the timeline to the top of the window and say where an element lies in it."""
        self.page.evaluate("() => document.getElementById('timeline').scrollIntoView({behavior: 'instant'})")
        found = self.page.locator(selector).bounding_box()
        assert found is not None
        return dict(found)

    def painted(self) -> int:
        """How many spans the timeline painted last."""
        self.view()
        return int(self.page.evaluate("() => document.getElementById('timeline').dataset.painted"))


@pytest.fixture(scope="module")  # no longer than needed: while Playwright is there, an event loop runs
def chromium() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip("the Debian package chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_report(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Render a profile, open the file, wait until it is ready. Everything it logs or requests is kept."""
    contexts = []

    def open_it(profile: Profile, *, color_scheme: str = "light") -> Opened:
        path = tmp_path / "report.html"
        path.write_bytes(render_html(profile))
        context = chromium.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme=color_scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        opened = Opened(page)
        page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return opened

    yield open_it
    for context in contexts:
        context.close()
