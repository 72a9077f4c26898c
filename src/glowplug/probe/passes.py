"""What can be said of a span only once the whole run is known. Each pass takes rows and returns rows."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.profile import Span
from .events import Image
from .rows import Row, nest


def apply(rows: list[Row], images: Sequence[Image], origin_ns: int) -> list[Row]:
    """Run every pass."""
    rows = nest(rows)
    add_import_self_times(rows)
    return rows


def add_import_self_times(rows: list[Row]) -> None:
    """Give each module the time that was its own: without the modules it imported in turn."""
    for row in rows:
        if row.kind == "module":
            nested = sum(child.duration_ns for child in row.children if child.kind == "module")
            row.attrs["self_ns"] = row.duration_ns - nested


def fold_steps(spans: Sequence[Span]) -> list[Span]:
    """Return the spans as they are."""
    return list(spans)
