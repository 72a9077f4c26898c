"""An index over one profile, so that each rule reads like its symptom.

A view adds nothing to the profile and changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glowplug.core.profile import Loop, Profile, Span


class View:
    """Spans by kind, by parent and by ancestor, and loops by what they call."""

    __slots__ = ("_by_id", "_by_kind", "_children", "profile")

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._by_id = {span.id: span for span in profile.spans}
        self._by_kind: dict[str, list[Span]] = {}
        self._children: dict[int, list[Span]] = {}
        for span in profile.spans:
            self._by_kind.setdefault(span.kind, []).append(span)
            if span.parent is not None:
                self._children.setdefault(span.parent, []).append(span)

    def of_kind(self, *kinds: str) -> list[Span]:
        """Return the spans of the given kinds in order of start."""
        if len(kinds) == 1:
            return list(self._by_kind.get(kinds[0], ()))
        return sorted((span for kind in kinds for span in self._by_kind.get(kind, ())), key=lambda s: s.start_ns)

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the spans around this one, the nearest first."""
        parent = span.parent
        while parent is not None and parent in self._by_id:
            above = self._by_id[parent]
            yield above
            parent = above.parent

    def enclosing(self, span: Span, *kinds: str) -> Span | None:
        """Return the nearest span of one of the kinds around this one."""
        return next((above for above in self.ancestors(span) if above.kind in kinds), None)

    def inside(self, span: Span, *kinds: str) -> list[Span]:
        """Return the spans of the kinds within this one, at any depth, in order of start."""
        found: list[Span] = []
        waiting = list(self._children.get(span.id, ()))
        while waiting:
            below = waiting.pop()
            if below.kind in kinds:
                found.append(below)
            waiting.extend(self._children.get(below.id, ()))
        return sorted(found, key=lambda each: each.start_ns)

    def outermost(self, spans: Iterable[Span]) -> list[Span]:
        """Leave out spans that lie within another one of the same kind."""
        return [span for span in spans if self.enclosing(span, span.kind) is None]

    def imports_of(self, module: str) -> list[Span]:
        """Return the successful imports of a module: the first in each process."""
        first: dict[int, Span] = {}
        for span in self.of_kind("module"):
            if span.attrs.get("module", span.name) == module and "error" not in span.attrs:
                first.setdefault(span.pid, span)
        return list(first.values())

    def loops(self, *calls: str) -> list[Loop]:
        """Return the loops that make one of these calls."""
        return [loop for loop in self.profile.loops if loop.call in calls]

    def first_step_ns(self, pid: int) -> int | None:
        """Return when a process began its first step of any kind."""
        return next((span.start_ns for span in self.of_kind("step") if span.pid == pid), None)


def total_ns(spans: Iterable[Span]) -> int:
    """Return the summed duration of spans that do not overlap."""
    return sum(span.duration_ns for span in spans)


def ids(spans: Iterable[Span]) -> tuple[int, ...]:
    """Return the ids that a match cites, at most 50 of them."""
    return tuple(span.id for span in spans)[:50]


def covered_ns(spans: Iterable[Span]) -> int:
    """Return the time during which at least one of the spans was open, on whichever thread or process."""
    covered, until = 0, 0
    for span in sorted(spans, key=lambda each: each.start_ns):
        if span.end_ns > until:
            covered += span.end_ns - max(span.start_ns, until)
            until = span.end_ns
    return covered
