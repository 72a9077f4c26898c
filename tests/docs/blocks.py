"""Every fenced block of the documentation, and every snippet and command that a rule prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
_ASSIGNED = re.compile(r'^_\w*CODE = """\\\n(?P<text>.*?)"""$', re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: `page` is a path below the repository, `line` that of its first line."""

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The command lines of a `console` block: what follows `$ `. Its other lines are output."""
        return [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]


def pages() -> list[Path]:
    """Return every page that has words for users or contributors."""
    listed = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    copies = ROOT / "src" / "glowplug" / "advise" / "pages"
    listed += sorted(path for path in (ROOT / "src").rglob("*.md") if not path.is_relative_to(copies))
    return [path for path in listed if not path.is_relative_to(ROOT / "docs" / "decisions")]


def blocks_of(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of one page, in order."""
    text = path.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(str(path.relative_to(ROOT)), line, found["language"].strip(), found["text"])


def all_blocks() -> list[Block]:
    """Return the blocks of all pages."""
    return [block for path in pages() for block in blocks_of(path)]


def rule_snippets() -> list[Block]:
    """Return the code that rules print, which is kept in constants named `_CODE`, `_TRAIN_CODE` and the like."""
    found = []
    for path in sorted((ROOT / "src/glowplug/advise/rules").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for code in _ASSIGNED.finditer(text):
            line = text.count("\n", 0, code.start("text")) + 1
            found.append(Block(str(path.relative_to(ROOT)), line, "python", code["text"] + "\n"))
    return found


def python_blocks() -> list[Block]:
    """Return all Python: of pages and of rules."""
    return [block for block in all_blocks() if block.language == "python"] + rule_snippets()
