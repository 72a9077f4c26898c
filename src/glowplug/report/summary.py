"""Group the spans of a profile into the few rows a page has room for. Pure passes: nothing here formats or prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glowplug.core.profile import Profile, Span, exclusive_ns


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the main thread during which one phase was the innermost."""

    phase: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ImportRow:
    """One imported module: with all it brought in, and alone. `site` says who asked, where that is known."""

    module: str
    total_ns: int
    self_ns: int
    modules: int
    site: str


@dataclass(frozen=True, slots=True)
class TraceRow:
    """All traces of one function object: how many, how long together, and why the later ones happened."""

    function: str
    traces: int
    total_ns: int
    graph_ops: int
    reasons: tuple[str, ...]
    site: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """The steps of one function: the first three, and the mean of the later ones (0 when there were none)."""

    function: str
    mode: str
    first_ns: tuple[int, ...]
    steady_ns: int
    steps: int


def segments(profile: Profile) -> Iterator[Segment]:
    """Yield the main thread's time from 0 to the end, each moment given to its innermost span or `unaccounted`.

    Overlaps that a well-formed profile cannot have are cut, so that the segments never run backwards.
    """
    now = 0
    stack: list[Span] = []
    for span in sorted(filter(profile.on_main_thread, profile.spans), key=lambda span: (span.start_ns, -span.end_ns)):
        while stack and stack[-1].end_ns <= span.start_ns:
            closed = stack.pop()
            yield from _segment(closed.phase, now, closed.end_ns)
            now = max(now, closed.end_ns)
        yield from _segment(stack[-1].phase if stack else "unaccounted", now, span.start_ns)
        now = max(now, span.start_ns)
        stack.append(span)
    while stack:
        closed = stack.pop()
        yield from _segment(closed.phase, now, closed.end_ns)
        now = max(now, closed.end_ns)
    yield from _segment("unaccounted", now, profile.wall_ns)


def _segment(phase: str, start_ns: int, end_ns: int) -> Iterator[Segment]:
    if end_ns > start_ns:
        yield Segment(phase, start_ns, end_ns)


def density(profile: Profile, columns: int) -> dict[str, list[float]]:
    """Return, by phase, the share of each of `columns` equal slices of the run that the phase filled."""
    shares: dict[str, list[float]] = {}
    slice_ns = profile.wall_ns / columns if profile.wall_ns > 0 else 0.0
    if not slice_ns:
        return shares
    for segment in segments(profile):
        row = shares.setdefault(segment.phase, [0.0] * columns)
        first = min(columns - 1, int(segment.start_ns / slice_ns))
        last = min(columns - 1, int(segment.end_ns / slice_ns))
        for column in range(first, last + 1):
            low = max(segment.start_ns, column * slice_ns)
            high = min(segment.end_ns, (column + 1) * slice_ns)
            row[column] += max(0.0, high - low) / slice_ns
    return shares


def outermost_imports(profile: Profile, limit: int) -> list[ImportRow]:
    """Return the imports that no other import asked for, the longest first."""
    modules = {span.id for span in profile.of_kind("module")}
    outer = [span for span in profile.of_kind("module") if span.parent not in modules]
    return [_import_row(span) for span in sorted(outer, key=lambda span: -span.duration_ns)[:limit]]


def slowest_modules(profile: Profile, limit: int) -> list[ImportRow]:
    """Return the modules with the most time of their own."""
    rows = [_import_row(span) for span in profile.of_kind("module")]
    return sorted(rows, key=lambda row: -row.self_ns)[:limit]


def importer_chain(importer: Mapping[str, Any], longest: int = 6) -> list[str]:
    """Return the modules from the program down to the import, with the middle of a long chain as a count."""
    chain = [str(name) for name in importer.get("chain") or [importer.get("module", "?")]]
    if len(chain) <= longest:
        return chain
    half = longest // 2
    return [*chain[:half], f"{len(chain) - 2 * half} more", *chain[-half:]]


def _import_row(span: Span) -> ImportRow:
    attrs = span.attrs
    asked = attrs.get("site") or attrs.get("importer") or ""
    return ImportRow(
        span.name, span.duration_ns, int(attrs.get("self_ns", 0)), int(attrs.get("modules", 0)), str(asked)
    )


def trace_rows(profile: Profile, limit: int) -> list[TraceRow]:
    """Return the traced functions, the costliest first. A function traced inside another counts there too."""
    groups: dict[tuple[object, ...], list[Span]] = {}
    for span in profile.of_kind("trace"):
        key = (span.pid, span.attrs.get("function", span.name), span.attrs.get("function_id"))
        groups.setdefault(key, []).append(span)
    rows = [_trace_row(spans) for spans in groups.values()]
    return sorted(rows, key=lambda row: -row.total_ns)[:limit]


def _trace_row(spans: Sequence[Span]) -> TraceRow:
    last = spans[-1].attrs
    reasons = dict.fromkeys(str(span.attrs.get("reason", "unknown")) for span in spans)
    where = f"{last['file']}:{last.get('line', 0)}" if last.get("file") else ""
    return TraceRow(
        str(last.get("function", spans[-1].name)),
        len(spans),
        sum(span.duration_ns for span in spans),
        max(int(span.attrs.get("graph_ops", 0)) for span in spans),
        tuple(reason for reason in reasons if reason != "first"),
        str(last.get("site") or where),
    )


def step_rows(profile: Profile, limit: int) -> list[StepRow]:
    """Return what steps one, two and three cost and what a later one costs, by function."""
    groups: dict[tuple[object, ...], list[Span]] = {}
    for span in profile.of_kind("step", "steps"):
        key = (span.pid, span.attrs.get("function", span.name), span.attrs.get("function_id"))
        groups.setdefault(key, []).append(span)
    rows = [_step_row(spans) for spans in groups.values()]
    return sorted(rows, key=lambda row: -sum(row.first_ns))[:limit]


def _step_row(spans: Sequence[Span]) -> StepRow:
    first = {int(span.attrs.get("index", 0)): span.duration_ns for span in spans if span.kind == "step"}
    folded = [span.attrs for span in spans if span.kind == "steps"]
    busy_ns = sum(int(attrs.get("busy_ns", 0)) for attrs in folded)
    busy_ns += sum(duration_ns for index, duration_ns in first.items() if index > 3)
    later = sum(int(attrs.get("count", 0)) for attrs in folded) + sum(1 for index in first if index > 3)
    return StepRow(
        str(spans[0].attrs.get("function", spans[0].name)),
        str(spans[0].attrs.get("mode", "")),
        tuple(first[index] for index in (1, 2, 3) if index in first),
        busy_ns // later if later else 0,
        len(first) + sum(int(attrs.get("count", 0)) for attrs in folded),
    )


def load_rows(profile: Profile, limit: int) -> list[tuple[Span, dict[str, int]]]:
    """Return the longest model and weight loads, each with the exclusive time of every phase inside it."""
    loads = sorted(profile.of_kind("load"), key=lambda span: -span.duration_ns)[:limit]
    if not loads:
        return []
    own = exclusive_ns(profile.spans)
    parts: dict[int, dict[str, int]] = {span.id: {} for span in loads}
    # Parents come before their children in a profile, so one pass knows which loads enclose a span.
    enclosing: dict[int, tuple[int, ...]] = {}
    for span in profile.spans:
        around = enclosing.get(span.parent, ()) if span.parent is not None else ()
        enclosing[span.id] = (*around, span.id) if span.id in parts else around
        for load in enclosing[span.id]:
            parts[load][span.phase] = parts[load].get(span.phase, 0) + own[span.id]
    return [(span, parts[span.id]) for span in loads]
