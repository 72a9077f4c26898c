"""Join everything a run left behind into one `Profile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from glowplug.core.masking import masked, masked_values, masked_words
from glowplug.core.profile import Process, Profile, Series, Span, phase_totals

from . import passes
from .calls import user_calls
from .environment import describe_environment
from .events import Image
from .launch import Launched
from .loops import find_loops
from .rows import Row, nest, rows_of


def merge(
    launched: Launched,
    images: Sequence[Image],
    command: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    page_cache: str = "warm",
    notes: Sequence[str] = (),
) -> Profile:
    """Return the profile of one run."""
    wall_ns = launched.ended_ns - launched.started_ns
    ends = _image_ends(launched, images, wall_ns)
    rows: list[Row] = []
    for image, end_ns in zip(images, ends, strict=True):
        rows.extend(rows_of(image, launched.started_ns, end_ns))
        rows.append(_start_row(image, launched))
    rows.extend(_foreign_rows(launched, images, wall_ns))
    rows = passes.apply(rows, images, launched.started_ns)
    spans = _spans(nest(rows))
    main = [span for span in spans if span.pid == launched.pid and span.thread == launched.pid]
    described = {**describe_environment(launched, images, spans, environment), "page_cache": page_cache}
    return Profile(
        command=masked_words(command),
        exit_code=launched.exit_code,
        wall_ns=wall_ns,
        environment=described,
        spans=tuple(_disclosed(passes.fold_steps(spans))),
        phases=phase_totals(main, wall_ns),
        series=_series(launched, images),
        processes=_processes(launched, images, ends, spans),
        loops=tuple(find_loops(images, launched.started_ns)),
        calls=user_calls(images, main, launched.started_ns),
        notes=tuple(dict.fromkeys([*notes, *_notes(launched, images), *passes.busy_notes(spans, launched.pid)])),
    )


def _disclosed(spans: Iterable[Span]) -> Iterator[Span]:
    """Return the spans without what looks like a secret in their names and texts."""
    for span in spans:
        name, attrs = masked(span.name), masked_values(span.attrs)
        yield span if name == span.name and attrs == span.attrs else replace(span, name=name, attrs=attrs)


def _image_ends(launched: Launched, images: Sequence[Image], wall_ns: int) -> list[int]:
    """When each image ended: at the next image of its process, or when the process was last seen."""
    ends = []
    for index, image in enumerate(images):
        following = next((later for later in images[index + 1 :] if later.pid == image.pid), None)
        if following is not None:
            ends.append(following.start_ns - launched.started_ns)
        elif image.pid == launched.pid:
            ends.append(wall_ns)
        else:
            seen = launched.samples.processes.get(image.pid)
            last = _last_time(image) - launched.started_ns
            ends.append(min(wall_ns, max(last, seen.last_ns if seen else 0)))
    return ends


def _last_time(image: Image) -> int:
    last = image.start_ns
    for event in image.events:
        for position in _TIME_POSITIONS.get(event[0], ()):
            last = max(last, event[position])
    return last


_TIME_POSITIONS = {0: (3,), 1: (2,), 2: (3,), 7: (2,)}


def _start_row(image: Image, launched: Launched) -> Row:
    """The time before the first line of user code: exec and interpreter set-up."""
    begun = image.start_ns
    for event in image.events:
        if event[0] == 0 and (event[6] or {}).get("kind") == "main":
            begun = event[3]
            break
    first = launched.started_ns
    if image.pid != launched.pid or image.fact("process", {}).get("how") == "fork":
        first = image.fact("process", {}).get("start_ns", image.start_ns)
        if image.fact("process", {}).get("how") != "fork":
            first = image.fact("entered_ns", first)
    return Row(
        image.pid,
        image.pid,
        "interpreter",
        "python",
        first - launched.started_ns,
        max(first, begun) - launched.started_ns,
        {"kind": "start"},
        -1,
    )


def _foreign_rows(launched: Launched, images: Sequence[Image], wall_ns: int) -> list[Row]:
    """Processes without a shim are one span each."""
    known = {image.pid for image in images}
    rows = []
    if launched.pid not in known:
        rows.append(_process_row(launched.pid, "target", 0, wall_ns))
    for pid, seen in launched.samples.processes.items():
        if pid not in known and pid != launched.pid:
            name = seen.command[0] if seen.command else str(pid)
            rows.append(_process_row(pid, name, seen.first_ns, seen.last_ns))
    return rows


def _process_row(pid: int, name: str, start_ns: int, end_ns: int) -> Row:
    return Row(pid, pid, "interpreter", name, start_ns, end_ns, {"kind": "process"}, -1)


def _spans(rows: Sequence[Row]) -> list[Span]:
    numbers = {id(row): index for index, row in enumerate(rows, 1)}
    spans = []
    for row in rows:
        parent = None if row.parent is None else numbers[id(row.parent)]
        spans.append(
            Span(
                numbers[id(row)],
                parent,
                row.pid,
                row.thread,
                row.phase,
                row.name,
                row.start_ns,
                row.end_ns,
                row.attrs,
            )
        )
    return spans


def _series(launched: Launched, images: Sequence[Image]) -> tuple[Series, ...]:
    series = {name: list(points) for name, points in launched.samples.series.items()}
    for image in images:
        if image.pid == launched.pid:
            for at_ns, graph_ops, traces in image.facts("sizes"):
                series.setdefault("graph_ops", []).append((at_ns - launched.started_ns, graph_ops))
                series.setdefault("traces", []).append((at_ns - launched.started_ns, traces))
    return tuple(Series(name, tuple(points)) for name, points in series.items())


def _processes(
    launched: Launched, images: Sequence[Image], ends: Sequence[int], spans: Sequence[Span]
) -> tuple[Process, ...]:
    by_pid: dict[int, list[int]] = {}
    for index, image in enumerate(images):
        by_pid.setdefault(image.pid, []).append(index)
    with_tensorflow = {span.pid for span in spans if span.kind == "module" and span.name == "tensorflow"}
    pids = [launched.pid]
    pids += [pid for pid in {**by_pid, **launched.samples.processes} if pid != launched.pid]
    processes = []
    for pid in pids:
        seen = launched.samples.processes.get(pid)
        indices = by_pid.get(pid, [])
        facts: dict[str, Any] = images[indices[0]].fact("process", {}) if indices else {}
        attrs = _process_attrs(launched, pid)
        attrs["tensorflow"] = pid in with_tensorflow
        command = images[indices[-1]].fact("command") if indices else None
        starts = [seen.first_ns] if seen else []
        starts += [images[index].start_ns - launched.started_ns for index in indices[:1]]
        root = pid == launched.pid
        last = max([ends[index] for index in indices] + ([seen.last_ns] if seen else []), default=0)
        processes.append(
            Process(
                pid=pid,
                parent_pid=facts.get("parent", seen.parent if seen else 0),
                command=masked_words(command or (seen.command if seen else ())),
                how="root" if root else facts.get("how", "exec"),
                start_ns=0 if root else min(starts, default=0),
                end_ns=launched.ended_ns - launched.started_ns if root else last,
                exit_code=launched.exit_code if root else None,
                python=bool(indices),
                attrs=attrs,
            )
        )
    return tuple(processes[:1] + sorted(processes[1:], key=lambda process: process.start_ns))


def _process_attrs(launched: Launched, pid: int) -> dict[str, Any]:
    seen = launched.samples.processes.get(pid)
    attrs: dict[str, Any] = {}
    if seen is not None:
        attrs.update(
            peak_rss_bytes=seen.peak_rss_bytes,
            threads=seen.threads,
            major_faults=seen.major_faults,
            minor_faults=seen.minor_faults,
            cpu_ns=seen.cpu_ns,
            read_bytes=seen.read_bytes,
            **seen.memory,
        )
    if pid == launched.pid:
        attrs.update(
            peak_rss_bytes=launched.peak_rss_bytes,
            major_faults=launched.major_faults,
            minor_faults=launched.minor_faults,
            cpu_ns=launched.cpu_ns,
        )
    return attrs


def _notes(launched: Launched, images: Sequence[Image]) -> list[str]:
    notes = [str(note) for image in images for note in image.facts("note")]
    if not any(image.pid == launched.pid for image in images):
        children = len({image.pid for image in images})
        notes.append(
            "the target is not Python, or a Python that ignores PYTHONPATH (-I, -E, -S): profiled as a process"
            + (f"; {children} Python process(es) below it are in the spans" if children else "")
        )
    return notes
