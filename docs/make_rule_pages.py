"""Copies docs/reference/rules into the package, for `glowplug explain`: make_rule_pages.py [--check]

Links of the pages that lead elsewhere in `docs` are written out, since the copies have no such neighbours.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "reference" / "rules"
TARGET = ROOT / "src" / "glowplug" / "advise" / "pages"


def copied(text: str) -> str:
    """Return a page with its links to other rules as the names that `explain` takes."""
    return re.sub(r"\[(`\w+`)\]\(\w+\.md\)", r"\1", text)


def main() -> int:
    pages = {path.name: copied(path.read_text(encoding="utf-8")) for path in SOURCE.glob("*.md")}
    del pages["index.md"]
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.md")}
    if "--check" in sys.argv[1:]:
        if there != pages:
            sys.exit(f"{TARGET.relative_to(ROOT)} is out of date: run `make docs`")
        return 0
    TARGET.mkdir(exist_ok=True)
    for name in there.keys() - pages.keys():
        (TARGET / name).unlink()
    for name, text in pages.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
