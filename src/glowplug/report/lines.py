"""Lines of styled text, the common form of everything the terminal shows.

A section is a list of lines, a line a tuple of fragments. With rich a fragment's style becomes colour; without it
the same lines are printed as they stand, so both look alike and every word is there either way.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from .wording import cell_width, pad, visible


class Fragment(NamedTuple):
    """A stretch of text and its style: "" or a rich style such as `bold` or `#7fb2f0`."""

    text: str
    style: str = ""


Line = tuple[Fragment, ...]

BLANK: Line = ()
DIM = "dim"
BOLD = "bold"

_UNBROKEN = "\N{NO-BREAK SPACE}"  # where textwrap breaks no line
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:ns|us|ms|s|B|kB|MB|GB)\b|%)")


def plain(text: str, style: str = "") -> Line:
    """Return a line of one fragment."""
    return (Fragment(text, style),)


def line_text(line: Line) -> str:
    """Return a line as text, without trailing blanks."""
    return "".join(fragment.text for fragment in line).rstrip()


def wrap(text: str, width: int, *, indent: str = "", style: str = "") -> list[Line]:
    """Break prose into lines of at most `width` cells; a number stays with its unit."""
    lines: list[Line] = []
    for paragraph in text.split("\n"):
        shown = _BEFORE_UNIT.sub(_UNBROKEN, visible(paragraph))
        # textwrap counts characters; where some take two cells, half the width is always enough.
        room = width if cell_width(shown) <= len(shown) else width // 2
        broken = textwrap.wrap(shown, room, initial_indent=indent, subsequent_indent=indent)
        lines.extend(plain(part.replace(_UNBROKEN, " "), style) for part in broken)
    return lines


class Column(NamedTuple):
    """A column of a table: heading, width in cells, and whether it is flushed right or keeps its tail."""

    heading: str
    width: int
    right: bool = False
    keep: str = "start"


def table(columns: tuple[Column, ...], rows: Sequence[tuple[str, ...]]) -> list[Line]:
    """Lay out rows under dim headings, columns two blanks apart."""
    heading = "  ".join(pad(column.heading, column.width, right=column.right) for column in columns)
    lines: list[Line] = [plain(heading, DIM)]
    for row in rows:
        cells = zip(row, columns, strict=True)
        lines.append(plain("  ".join(pad(cell, col.width, right=col.right, keep=col.keep) for cell, col in cells)))
    return lines
