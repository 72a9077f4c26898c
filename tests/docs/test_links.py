"""Every link of the documentation leads somewhere: to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .blocks import ROOT, pages

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGES = [
    *pages(),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    ROOT / "SECURITY.md",
    ROOT / "CODE_OF_CONDUCT.md",
]


def anchors(path: Path) -> set[str]:
    """Return the anchors that a page's headings have on GitHub."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in _LINK.findall(text):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: there is no such heading"
