"""A bundle in words and in JSON, for the verbs that show one.

What the manifest keeps as free JSON (provenance, equivalence) is not believed: it may come from anywhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from glowplug.bundle import schema
from glowplug.core.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the bundle's answers were from its source's, for one output or one dtype."""

    name: str
    dtype: str
    max_abs: float
    max_rel: float


def as_json(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as `bundle.json` has it."""
    document: dict[str, Any] = json.loads(schema.dump(manifest))["manifest"]
    return document


def total_bytes(manifest: Manifest) -> int:
    """Return the size of all files but the manifest itself."""
    return sum(entry.size for entry in manifest.files.values())


def plain(value: Any) -> str:
    """Return a value of free JSON as text that is safe on a terminal."""
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def output_differences(manifest: Manifest) -> list[Difference]:
    """Return the recorded difference of each output, or nothing where the record is not one of ours."""
    outputs = manifest.equivalence.get("outputs")
    try:
        return [
            Difference(plain(name), plain(one["dtype"]), float(one["max_abs"]), float(one["max_rel"]))
            for name, one in sorted(outputs.items())  # type: ignore[union-attr]
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def equality(manifest: Manifest) -> str:
    """Return one line about how the bundle was proven equal to its source."""
    calls, random = manifest.equivalence.get("calls"), manifest.equivalence.get("random")
    differences = output_differences(manifest)
    if not differences or not isinstance(calls, dict) or not all(type(n) is int for n in calls.values()):
        return "there is no record of a comparison with its source"
    worst: dict[str, Difference] = {}
    for one in differences:
        worst[one.dtype] = max(one, worst.get(one.dtype, one), key=lambda seen: seen.max_rel)
    parts = [
        f"{dtype} differs by at most {one.max_rel:.2g} of its largest value" if one.max_abs else f"{dtype} identical"
        for dtype, one in sorted(worst.items())
    ]
    drawn = f"; only dtype and shape of {plain(random)}, which draws random numbers" if random else ""
    return f"equal to its source in {sum(calls.values())} calls: {', '.join(parts)}{drawn}"


def measured_lines(manifest: Manifest) -> list[str]:
    """Return a table of the engines among which `auto` chose, or nothing where the record is not one of ours."""
    from glowplug.cli.output import table
    from glowplug.core.clock import human_bytes, human_duration

    rows: list[tuple[str, ...]] = [("", "first", "steady", "another", "size")]
    failed = []
    try:
        prefer = plain(manifest.measured["prefer"])
        for engine, one in manifest.measured["engines"].items():
            if "failed" in one:
                failed.append(f"  {plain(engine)}: {plain(one['failed'])}")
                continue
            figures = [human_duration(int(one[key])) for key in ("first_ns", "steady_ns")]
            figures += [human_bytes(int(one[key])) for key in ("another_bytes", "disk_bytes")]
            mark = "*" if engine == manifest.engine else ""
            rows.append((plain(engine) + mark, *figures))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return []
    lines = ["engines"]
    if len(rows) > 1:
        lines = [f"engines, measured in fresh processes (prefer {prefer})", table(rows)]
    return [*lines, *failed] if len(rows) > 1 or failed else []
