"""Turn the events of one process image into rows: finished stretches of time, nested by thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .events import BEGIN, END, EVENT, SPAN, Image


@dataclass(slots=True, eq=False)
class Row:
    """A span in the making. `parent` is set by `nest`."""

    pid: int
    thread: int
    phase: str
    name: str
    start_ns: int
    end_ns: int
    attrs: dict[str, Any]
    order: int
    parent: Row | None = None
    children: list[Row] = field(default_factory=list)

    @property
    def duration_ns(self) -> int:
        """Time from start to end."""
        return self.end_ns - self.start_ns

    @property
    def kind(self) -> str:
        """The kind of the span that this row becomes."""
        return str(self.attrs.get("kind", ""))

    def own_ns(self) -> int:
        """Return the time that no child covers."""
        return self.duration_ns - sum(child.duration_ns for child in self.children)

    def ancestors(self) -> Iterable[Row]:
        """Yield the enclosing rows, innermost first."""
        row = self.parent
        while row is not None:
            yield row
            row = row.parent


def rows_of(image: Image, origin_ns: int, end_ns: int) -> list[Row]:
    """Return the rows of an image, unnested, up to `end_ns`. Spans left open by a killed process last until then."""
    rows: list[Row] = []
    open_rows: dict[int, Row] = {}
    for order, event in enumerate(image.events):
        code = event[0]
        if code == BEGIN:
            _, number, thread, at_ns, phase, name, attrs = event
            row = Row(image.pid, thread, phase, name, at_ns - origin_ns, end_ns, dict(attrs or {}), order)
            open_rows[number] = row
            rows.append(row)
        elif code == END:
            _, number, at_ns, attrs = event
            ended = open_rows.pop(number, None)
            if ended is not None:
                ended.end_ns = at_ns - origin_ns
                ended.attrs.update(attrs or {})
        elif code == SPAN:
            _, thread, start_ns, until_ns, phase, name, attrs = event
            start_ns, until_ns = start_ns - origin_ns, until_ns - origin_ns
            rows.append(Row(image.pid, thread, phase, name, start_ns, until_ns, dict(attrs), order))
        elif code == EVENT:
            _, thread, at_ns, phase, name, attrs = event
            at_ns -= origin_ns
            rows.append(Row(image.pid, thread, phase, name, at_ns, at_ns, dict(attrs), order))
    for row in open_rows.values():
        row.attrs.setdefault("unfinished", True)
    # A child may outlive the target: what it does after the end of the run is not part of the run.
    rows = [row for row in rows if row.start_ns <= end_ns]
    for row in rows:
        row.name = str(row.attrs.pop("_name", row.name))
        row.end_ns = min(row.end_ns, end_ns)
    return rows


def nest(rows: Iterable[Row]) -> list[Row]:
    """Give each row its parent, and return all in order of start.

    Rows of one thread enclose each other by construction. Times that come from TensorFlow's own counters are
    estimates of position: where they reach past their parent they are clipped.
    """
    ordered = sorted(rows, key=lambda row: (row.start_ns, -row.end_ns, row.order))
    stacks: dict[tuple[int, int], list[Row]] = {}
    for row in ordered:
        row.parent = None
        row.children.clear()
    for row in ordered:
        stack = stacks.setdefault((row.pid, row.thread), [])
        while stack and stack[-1].end_ns <= row.start_ns and (stack[-1].end_ns < row.start_ns or not _event(row)):
            stack.pop()
        if stack:
            row.parent = stack[-1]
            row.end_ns = min(row.end_ns, row.parent.end_ns)
            row.parent.children.append(row)
        stack.append(row)
    return ordered


def _event(row: Row) -> bool:
    return row.start_ns == row.end_ns
