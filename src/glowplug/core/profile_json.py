"""The JSON form of a profile, schema version 1: encode, decode, read, write.

Decoding refuses what is not a profile with one line that names the place; fields it does not know are
ignored, so a profile written by a later release of the same schema version still reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .disk.files import write_file
from .disk.regular_files import read_regular
from .errors import NewerSchemaError, ProfileDamagedError, ProfileError, StorageError
from .profile import (
    PHASES,
    SCHEMA_VERSION,
    Finding,
    Loop,
    Process,
    Profile,
    Remedy,
    Round,
    Runs,
    Series,
    Span,
    UserCall,
)

T = TypeVar("T")

_MAX_BYTES = 1 << 30  # more spans than a browser or a terminal could show


def encode(profile: Profile) -> dict[str, Any]:
    """Return the profile as JSON-ready values."""
    document: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "command": list(profile.command),
        "exit_code": profile.exit_code,
        "wall_ns": profile.wall_ns,
        "environment": dict(profile.environment),
        "spans": [_encode_span(span) for span in profile.spans],
        "phases": dict(profile.phases),
        "series": {series.name: [list(point) for point in series.points] for series in profile.series},
        "processes": [_encode_slots(process) for process in profile.processes],
        "loops": [
            {**_encode_slots(loop), "rounds": [_encode_slots(entry) for entry in loop.rounds]} for loop in profile.loops
        ],
        "calls": [_encode_slots(call) for call in profile.calls],
        "notes": list(profile.notes),
        "findings": [encode_finding(finding) for finding in profile.findings],
    }
    if profile.runs is not None:
        document["runs"] = {
            "wall_ns": list(profile.runs.wall_ns),
            "cpu_ns": list(profile.runs.cpu_ns),
            "phases": {phase: list(values) for phase, values in profile.runs.phases.items()},
        }
    return document


def encode_finding(finding: Finding) -> dict[str, Any]:
    """Return one finding as JSON-ready values."""
    return {**_encode_slots(finding), "remedy": _encode_slots(finding.remedy)}


def decode(document: object) -> Profile:
    """Return the profile that `encode` made, or raise `ProfileDamagedError` or `NewerSchemaError`."""
    root = _mapping(document, "profile")
    schema = root.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise _damaged("schema", schema)
    if schema > SCHEMA_VERSION:
        raise NewerSchemaError(
            "the profile was written by a newer Glowplug",
            seen=f"schema {schema}, this one reads up to {SCHEMA_VERSION}",
            remedy="upgrade Glowplug, or profile again",
        )
    phases = {name: _integer(ns, f"phases.{name}") for name, ns in _mapping(root.get("phases"), "phases").items()}
    runs = root.get("runs")
    return Profile(
        command=_strings(root.get("command"), "command"),
        exit_code=_integer(root.get("exit_code"), "exit_code"),
        wall_ns=_integer(root.get("wall_ns"), "wall_ns"),
        environment=_mapping(root.get("environment"), "environment"),
        spans=_each(root.get("spans"), "spans", _decode_span),
        phases={**dict.fromkeys(PHASES, 0), **{name: _integer(ns, "phases") for name, ns in phases.items()}},
        series=tuple(
            Series(name, _each(points, f"series.{name}", _decode_point))
            for name, points in _mapping(root.get("series", {}), "series").items()
        ),
        processes=_each(root.get("processes", []), "processes", _decode_process),
        loops=_each(root.get("loops", []), "loops", _decode_loop),
        calls=_each(root.get("calls", []), "calls", _decode_call),
        notes=_strings(root.get("notes", []), "notes"),
        findings=_each(root.get("findings", []), "findings", _decode_finding),
        runs=None if runs is None else _decode_runs(_mapping(runs, "runs")),
    )


def read_profile(path: Path) -> Profile:
    """Read a profile from a file."""
    try:
        data = read_regular(path, _MAX_BYTES)
    except OSError as error:
        raise StorageError(
            "cannot read the profile",
            seen=f"{path} ({error.strerror})",
            remedy="check the path; `glowplug profile -o` writes one",
        ) from error
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProfileDamagedError(
            "the profile is not JSON", seen=f"{path} ({error})", remedy="profile again"
        ) from error
    try:
        return decode(document)
    except ProfileError as error:  # say which file: `compare` reads two
        raise type(error)(error.what, seen=f"{path} ({error.seen})", remedy=error.remedy) from error


def write_profile(profile: Profile, path: Path, *, force: bool = False) -> None:
    """Write a profile to a file of this user's alone, which appears whole or not at all."""
    # ASCII only: file names that are not UTF-8 reach us as lone surrogates, which survive as escapes.
    text = json.dumps(encode(profile), separators=(",", ":"), allow_nan=False)
    write_file(path, text.encode() + b"\n", force=force, mode=0o600)


def _encode_span(span: Span) -> dict[str, Any]:
    return {
        "id": span.id,
        "parent": span.parent,
        "pid": span.pid,
        "thread": span.thread,
        "phase": span.phase,
        "name": span.name,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "attrs": dict(span.attrs),
    }


def _encode_slots(value: Any) -> dict[str, Any]:
    """Turn a flat dataclass into a dict: tuples become lists, mappings dicts."""
    encoded: dict[str, Any] = {}
    for name in value.__slots__:
        item = getattr(value, name)
        if isinstance(item, tuple):
            item = list(item)
        elif isinstance(item, Mapping):
            item = dict(item)
        encoded[name] = item
    return encoded


def _decode_span(item: object, where: str) -> Span:
    value = _mapping(item, where)
    parent = value.get("parent")
    phase = _string(value.get("phase"), f"{where}.phase")
    if phase not in PHASES:
        raise _damaged(f"{where}.phase", phase)
    return Span(
        id=_integer(value.get("id"), f"{where}.id"),
        parent=None if parent is None else _integer(parent, f"{where}.parent"),
        pid=_integer(value.get("pid"), f"{where}.pid"),
        thread=_integer(value.get("thread"), f"{where}.thread"),
        phase=phase,
        name=_string(value.get("name"), f"{where}.name"),
        start_ns=_integer(value.get("start_ns"), f"{where}.start_ns"),
        end_ns=_integer(value.get("end_ns"), f"{where}.end_ns"),
        attrs=_mapping(value.get("attrs", {}), f"{where}.attrs"),
    )


def _decode_point(item: object, where: str) -> tuple[int, int]:
    if not isinstance(item, list) or len(item) != 2:
        raise _damaged(where, item)
    return _integer(item[0], where), _integer(item[1], where)


def _decode_process(item: object, where: str) -> Process:
    value = _mapping(item, where)
    exit_code = value.get("exit_code")
    return Process(
        pid=_integer(value.get("pid"), f"{where}.pid"),
        parent_pid=_integer(value.get("parent_pid"), f"{where}.parent_pid"),
        command=_strings(value.get("command"), f"{where}.command"),
        how=_string(value.get("how"), f"{where}.how"),
        start_ns=_integer(value.get("start_ns"), f"{where}.start_ns"),
        end_ns=_integer(value.get("end_ns"), f"{where}.end_ns"),
        exit_code=None if exit_code is None else _integer(exit_code, f"{where}.exit_code"),
        python=value.get("python") is True,
        attrs=_mapping(value.get("attrs", {}), f"{where}.attrs"),
    )


def _decode_loop(item: object, where: str) -> Loop:
    value = _mapping(item, where)
    slopes = _mapping(value.get("slopes"), f"{where}.slopes")
    adders = _mapping(value.get("adders", {}), f"{where}.adders")
    return Loop(
        site=_string(value.get("site"), f"{where}.site"),
        function=_string(value.get("function"), f"{where}.function"),
        call=_string(value.get("call"), f"{where}.call"),
        pid=_integer(value.get("pid"), f"{where}.pid"),
        rounds=_each(value.get("rounds"), f"{where}.rounds", _decode_round),
        slopes={name: _number(slope, f"{where}.slopes.{name}") for name, slope in slopes.items()},
        adders={site: _integer(count, f"{where}.adders") for site, count in adders.items()},
    )


def _decode_round(item: object, where: str) -> Round:
    value = _mapping(item, where)
    return Round(**{name: _integer(value.get(name), f"{where}.{name}") for name in Round.__slots__})


def _decode_call(item: object, where: str) -> UserCall:
    value = _mapping(item, where)
    depth = _integer(value.get("depth"), f"{where}.depth")
    if depth < 0:
        raise _damaged(f"{where}.depth", depth)
    return UserCall(
        depth=depth,
        function=_string(value.get("function"), f"{where}.function"),
        site=_string(value.get("site"), f"{where}.site"),
        ns=_integer(value.get("ns"), f"{where}.ns"),
        own_ns=_integer(value.get("own_ns"), f"{where}.own_ns"),
    )


def _decode_finding(item: object, where: str) -> Finding:
    value = _mapping(item, where)
    remedy = _mapping(value.get("remedy"), f"{where}.remedy")
    return Finding(
        rule=_string(value.get("rule"), f"{where}.rule"),
        title=_string(value.get("title"), f"{where}.title"),
        evidence=_mapping(value.get("evidence"), f"{where}.evidence"),
        saves_ns=_integer(value.get("saves_ns"), f"{where}.saves_ns"),
        remedy=Remedy(**{name: _string(remedy.get(name, ""), f"{where}.remedy.{name}") for name in Remedy.__slots__}),
        saves_bytes=_integer(value.get("saves_bytes", 0), f"{where}.saves_bytes"),
        spans=_each(value.get("spans", []), f"{where}.spans", _integer),
    )


def _decode_runs(value: Mapping[str, Any]) -> Runs:
    phases = _mapping(value.get("phases"), "runs.phases")
    return Runs(
        wall_ns=_each(value.get("wall_ns"), "runs.wall_ns", _integer),
        phases={name: _each(values, f"runs.phases.{name}", _integer) for name, values in phases.items()},
        cpu_ns=_each(value.get("cpu_ns", []), "runs.cpu_ns", _integer),
    )


def _damaged(where: str, seen: object) -> ProfileDamagedError:
    shown = repr(seen)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return ProfileDamagedError(f"the profile is damaged at {where}", seen=shown, remedy="profile again")


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _damaged(where, value)
    return value


def _integer(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _damaged(where, value)
    return value


def _number(value: object, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _damaged(where, value)
    return float(value)


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _damaged(where, value)
    return value


def _strings(value: object, where: str) -> tuple[str, ...]:
    return _each(value, where, _string)


def _each(value: object, where: str, decode_item: Callable[[object, str], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise _damaged(where, value)
    return tuple(decode_item(item, f"{where}[{index}]") for index, item in enumerate(value))
