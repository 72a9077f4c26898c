"""The data behind the HTML page, packed for size: columns instead of records, every string once.

15,000 spans with their attributes take well under 2 MB this way. `assets/data.js` is the reader of this form; both
change together, and no other program should rely on it (the profile's JSON is the published form).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from glowplug.core.profile import Loop, Process, Profile, Series, Span, exclusive_ns

from .phases import PHASE_STYLES
from .summary import importer_chain

MAXIMUM_SPANS = 60_000
MAXIMUM_POINTS = 1_200
MAXIMUM_LOOPS = 40


class Strings:
    """Gives each distinct string a number, in sorted order so that each shares a prefix with the one before it."""

    def __init__(self, texts: Iterable[str]) -> None:
        # By code points: names may hold lone surrogates, which have no other order.
        self._table = sorted(set(texts))
        self._numbers = {text: number for number, text in enumerate(self._table)}

    def number(self, text: str) -> int:
        """Return the number of a string that was given to the constructor."""
        return self._numbers[text]

    def packed(self) -> list[Any]:
        """Return `[shared, rest]`: how many characters each string takes from the one before, and what follows."""
        shared, rest = [], []
        before = ""
        for text in self._table:
            same = len(os.path.commonprefix((before, text)))  # noqa: RUF071 - characters it is
            shared.append(same)
            rest.append(text[same:])
            before = text
        return [shared, rest]


def page_data(profile: Profile, *, maximum_spans: int = MAXIMUM_SPANS) -> dict[str, Any]:
    """Return what the page's scripts need, as JSON-ready values."""
    kept = longest_spans(profile.spans, maximum_spans)
    strings = Strings(_texts(kept))
    return {
        "wall": profile.wall_ns,
        "root": profile.root_pid,
        "phases": [[style.name, style.label, style.color] for style in PHASE_STYLES],
        "spans": _columns(profile, kept, strings),
        "left_out": len(profile.spans) - len(kept),
        "series": {series.name: thin_points(series) for series in profile.series if series.points},
        "loops": [_loop(loop) for loop in profile.loops[:MAXIMUM_LOOPS]],
        "importers": [*_importers(profile)],
        "processes": [_process(process) for process in profile.processes],
        "findings": [list(finding.spans) for finding in profile.findings],
        "strings": strings.packed(),
    }


def longest_spans(spans: Sequence[Span], maximum: int) -> list[Span]:
    """Return at most `maximum` spans, in order, without the shortest; a kept span's parent is kept, being longer."""
    if len(spans) <= maximum:
        return list(spans)
    order = sorted(range(len(spans)), key=lambda index: (-spans[index].duration_ns, index))
    return [spans[index] for index in sorted(order[:maximum])]


def thin_points(series: Series) -> list[list[int]]:
    """Return times and values of a series, thinned evenly while keeping the lowest and highest of each stretch."""
    points = series.points
    if len(points) > MAXIMUM_POINTS:
        stretches = MAXIMUM_POINTS // 2
        chosen: set[int] = {0, len(points) - 1}
        for stretch in range(stretches):
            first, last = stretch * len(points) // stretches, (stretch + 1) * len(points) // stretches
            chosen.add(min(range(first, last), key=lambda index: points[index][1]))
            chosen.add(max(range(first, last), key=lambda index: points[index][1]))
        points = tuple(points[index] for index in sorted(chosen))
    return [[at_ns for at_ns, _ in points], [value for _, value in points]]


def plain_value(value: object) -> Any:
    """Return a value as JSON can hold it; what JSON cannot (NaN, other objects) becomes text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    return str(value)


def _texts(spans: Iterable[Span]) -> Iterator[str]:
    for span in spans:
        yield span.name
        yield span.kind
        for key, value in span.attrs.items():
            yield str(key)
            plain = plain_value(value)
            if isinstance(plain, str):
                yield plain


def _columns(profile: Profile, spans: Iterable[Span], strings: Strings) -> dict[str, Any]:
    own = exclusive_ns(profile.spans)
    phase_numbers = {style.name: number for number, style in enumerate(PHASE_STYLES)}
    positions: dict[int, int] = {}
    lanes: dict[tuple[int, int], int] = {}
    shapes: dict[tuple[tuple[str, bool], ...], int] = {}
    names = ("id", "parent", "lane", "phase", "kind", "name", "start", "duration", "covered", "attrs")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    before_ns = 0
    for position, span in enumerate(spans):
        positions[span.id] = position
        row = (
            span.id,
            # A parent that is not among the spans before this one is no parent: the tree stays free of cycles.
            positions.get(span.parent, -1) if span.parent is not None else -1,
            lanes.setdefault((span.pid, span.thread), len(lanes)),
            phase_numbers[span.phase],
            strings.number(span.kind),
            strings.number(span.name),
            span.start_ns - before_ns,
            span.duration_ns,
            span.duration_ns - own[span.id],
            _attributes(span, strings, shapes),
        )
        before_ns = span.start_ns
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    return {
        **columns,
        "lanes": [list(lane) for lane in lanes],
        "shapes": [[[strings.number(key), int(text)] for key, text in shape] for shape in shapes],
    }


def _attributes(span: Span, strings: Strings, shapes: dict[tuple[tuple[str, bool], ...], int]) -> Any:
    """Return `[shape, value, ...]`, a shape being the keys and which values are strings; 0 for no attributes."""
    items = [
        (str(key), plain_value(value))
        for key, value in span.attrs.items()
        if key != "kind" and not (key in ("module", "name") and value == span.name)
    ]
    if not items:
        return 0
    shape = tuple((key, isinstance(value, str)) for key, value in items)
    number = shapes.setdefault(shape, len(shapes))
    return [number, *(strings.number(value) if isinstance(value, str) else value for _, value in items)]


def _loop(loop: Loop) -> dict[str, Any]:
    return {
        "site": loop.site,
        "function": loop.function,
        "call": loop.call,
        "pid": loop.pid,
        "rounds": {
            name: [getattr(entry, name) for entry in loop.rounds]
            for name in ("duration_ns", "rss_bytes", "threads", "graph_ops", "traces")
        },
        "slopes": plain_value(loop.slopes),
        "adders": list(loop.adders.items()),
    }


def _importers(profile: Profile) -> Iterator[tuple[str, str, str]]:
    """Yield who asked for TensorFlow and Keras first: (what, the chain of modules, the line)."""
    for what, key in (("TensorFlow", "tensorflow_importer"), ("Keras", "keras_importer")):
        importer = profile.environment.get(key)
        if isinstance(importer, Mapping):
            yield what, " > ".join(importer_chain(importer)), str(importer.get("site", ""))


def _process(process: Process) -> dict[str, Any]:
    return {"pid": process.pid, "command": " ".join(process.command), "how": process.how}
