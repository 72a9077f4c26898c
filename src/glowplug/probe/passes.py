"""What can be said of a span only once the whole run is known. Each pass is a function over rows."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from glowplug.core.checkpoint_index import measure_duplicates, read_index
from glowplug.core.profile import Span

from .events import ASSIGNED, Image
from .rows import Row, nest

META_OPTIMIZER_LIMIT_NS = 300_000_000_000  # RewriterConfig.meta_optimizer_timeout_ms: 0, the default, is 5 minutes
BUSY_RATIO, BUSY_NS, BUSY_READ_BYTES = 1.5, 1_000_000_000, 50 << 20
KEPT_STEPS = 32  # steps of one function that stay spans of their own


def apply(rows: list[Row], images: Sequence[Image], origin_ns: int) -> list[Row]:
    """Run every pass, and return the rows with those that were added, nested."""
    rows = nest(rows)
    add_import_self_times(rows)
    mark_overwritten(rows, images, origin_ns)
    describe_stored_variables(rows)
    match_forks(rows, images, origin_ns)
    mark_initializer_constants(rows)
    mark_deadlines(rows)
    added = find_xla(rows)
    return nest([*rows, *added]) if added else rows


def add_import_self_times(rows: Sequence[Row]) -> None:
    """Give each module the time that was its own: without the modules it imported in turn."""
    for row in rows:
        if row.kind == "module":
            nested = sum(child.duration_ns for child in row.children if child.kind == "module")
            row.attrs["self_ns"] = row.duration_ns - nested


def mark_overwritten(rows: Sequence[Row], images: Sequence[Image], origin_ns: int) -> None:
    """Say of each variable whether a load assigned something else to it before any step could read it."""
    assigned: dict[tuple[int, int], list[int]] = {}
    for image in images:
        for event in image.events:
            if event[0] == ASSIGNED:
                assigned.setdefault((image.pid, event[1]), []).append(event[2] - origin_ns)
    steps: dict[int, list[int]] = {}
    for row in rows:
        if row.kind in ("step", "steps"):
            steps.setdefault(row.pid, []).append(row.start_ns)
    loads: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        if row.kind == "load":
            loads.setdefault(row.pid, []).append((row.start_ns, row.end_ns))
    for row in rows:
        if row.kind != "variable":
            continue
        row.attrs["initializer_ns"] = max(0, row.own_ns())
        inside = loads.get(row.pid, ())  # metrics are reset by assignments too, and nothing was wasted there
        later = [
            at_ns
            for at_ns in assigned.get((row.pid, row.attrs.get("object", 0)), ())
            if at_ns > row.end_ns and any(start_ns <= at_ns <= end_ns for start_ns, end_ns in inside)
        ]
        before = steps.get(row.pid, [])
        following = bisect_left(before, row.end_ns)
        limit = before[following] if following < len(before) else None
        row.attrs["overwritten"] = bool(later) and (limit is None or later[0] < limit)


def busy_notes(spans: Sequence[Span], pid: int) -> list[str]:
    """Say so where the machine was busy: the import of TensorFlow computes, and waited for a processor instead.

    Where it read from the disk it waited for that, which is a finding of its own.
    """
    for span in spans:
        known = span.pid == pid and span.kind == "module" and span.name == "tensorflow" and "cpu_ns" in span.attrs
        if not known or int(span.attrs.get("read_bytes", 0)) > BUSY_READ_BYTES:
            continue
        cpu_ns = int(span.attrs["cpu_ns"])
        if span.duration_ns - cpu_ns >= BUSY_NS and span.duration_ns >= BUSY_RATIO * cpu_ns:
            return [
                f"the machine was busy: importing TensorFlow took {span.duration_ns / 1e9:.1f} s for"
                f" {cpu_ns / 1e9:.1f} s of computing, so all times here are longer than on an idle one"
            ]
    return []


def match_forks(rows: Sequence[Row], images: Sequence[Image], origin_ns: int) -> None:
    """Give each fork the process that came of it: the next one that was forked from the same parent."""
    children: dict[int, list[tuple[int, int]]] = {}
    for image in images:
        facts = image.fact("process", {})
        if facts.get("how") == "fork":
            children.setdefault(facts["parent"], []).append((facts["start_ns"] - origin_ns, image.pid))
    for row in rows:
        if row.kind == "fork":
            waiting = children.get(row.pid, [])
            born = next((entry for entry in sorted(waiting) if entry[0] >= row.start_ns), None)
            if born is not None:
                waiting.remove(born)
                row.attrs["child"] = born[1]


def mark_initializer_constants(rows: Sequence[Row]) -> None:
    """Say of each big constant whether it was made to be a variable's first value."""
    for row in rows:
        if row.kind == "constant":
            row.attrs["feeds_initializer"] = any(above.kind == "variable" for above in row.ancestors())


def mark_deadlines(rows: Sequence[Row]) -> None:
    """Say of each optimisation whether it ran into the limit of the meta optimiser."""
    for row in rows:
        if row.kind == "graph_optimization" and row.duration_ns >= META_OPTIMIZER_LIMIT_NS:
            row.attrs["deadline_exceeded"] = True


def describe_stored_variables(rows: Sequence[Row]) -> None:
    """Read the checkpoint index of each SavedModel that was loaded: how much it stores, and how much of it twice."""
    known: dict[str, tuple[int, int, int] | None] = {}
    for row in rows:
        if row.kind != "load" or row.attrs.get("format") not in ("saved_model", "checkpoint", "tf1_checkpoint"):
            continue
        path = str(row.attrs.get("path", ""))
        if path not in known:
            known[path] = _measure_index(path)
        measured = known[path]
        if measured is not None:
            row.attrs["variables"], row.attrs["stored_bytes"], row.attrs["duplicate_bytes"] = measured


def _measure_index(path: str) -> tuple[int, int, int] | None:
    for candidate in (Path(path, "variables", "variables.index"), Path(f"{path}.index")):
        try:
            entries = read_index(candidate)
        except (OSError, ValueError):
            continue
        stored, duplicates = measure_duplicates(entries)
        return len(entries), stored, duplicates
    return None


def find_xla(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each XLA compilation: what a compiled function's first step took beyond its later ones.

    XLA compiles inside the first execution and reports to nobody, so this is a difference. Without a later step to
    compare with, the whole rest of the first step is taken, and the row says so.
    """
    groups: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row.kind == "step":
            groups.setdefault((row.pid, row.attrs.get("function_id", 0)), []).append(row)
    added = []
    for steps in groups.values():
        for index, row in enumerate(steps):
            if not row.attrs.get("jit_compile"):
                continue
            later = [step.duration_ns for step in steps[index + 1 :] if not step.attrs.get("jit_compile")]
            usual_ns = round(statistics.median(later)) if later else 0
            start_ns = max([row.start_ns, *(child.end_ns for child in row.children)])
            end_ns = min(row.end_ns, start_ns + max(0, row.own_ns() - usual_ns))
            if end_ns > start_ns:
                attrs = {
                    "kind": "xla_compile",
                    "function": row.name,
                    "compilations": 1,
                    "measured": "difference" if later else "upper_bound",
                }
                added.append(Row(row.pid, row.thread, "xla", row.name, start_ns, end_ns, attrs, row.order))
    return added


def fold_steps(spans: Sequence[Span]) -> list[Span]:
    """Fold runs of later steps without children into one span each, so that a long training stays readable."""
    parents = {span.parent for span in spans}
    folded: list[Span] = []
    runs: dict[tuple[int, int, int | None], tuple[list[Span], int]] = {}
    siblings: dict[tuple[int, int, int | None], Span] = {}
    for span in spans:
        key = (span.pid, span.thread, span.parent)
        previous = siblings.get(key)
        siblings[key] = span
        small = (
            span.kind == "step"
            and int(span.attrs.get("index", 0)) > KEPT_STEPS
            and span.id not in parents
            and "error" not in span.attrs
        )
        run = runs.get(key)
        if small and run is not None and run[0][-1] is previous and _same(run[0][0], span):
            run[0].append(span)
            continue
        if run is not None:
            folded[run[1]] = _fold(run[0])
            del runs[key]
        if small:
            runs[key] = ([span], len(folded))
        folded.append(span)
    for members, position in runs.values():
        folded[position] = _fold(members)
    return folded


def _same(one: Span, other: Span) -> bool:
    return one.attrs.get("function_id") == other.attrs.get("function_id")


def _fold(members: Sequence[Span]) -> Span:
    if len(members) < 2:
        return members[0]
    first, last = members[0], members[-1]
    attrs = {name: value for name, value in first.attrs.items() if name not in ("index", "site")}
    attrs["kind"] = "steps"
    attrs["first_index"] = first.attrs["index"]
    attrs["count"] = len(members)
    attrs["busy_ns"] = sum(span.duration_ns for span in members)
    return Span(
        first.id,
        first.parent,
        first.pid,
        first.thread,
        first.phase,
        first.name,
        first.start_ns,
        last.end_ns,
        attrs,
    )
