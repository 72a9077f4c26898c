"""Limits that a project keeps in its pyproject.toml: for `glowplug budget` alone, and `pytest --glowplug-budget`.

[tool.glowplug.budget]
program = "train.py --epochs 1"
repeat = 3
max = "30s"
max-start = "10s"
max-first-step = "25s"
max-phase = { import = "5s", trace = "10s" }
"""

from __future__ import annotations

import argparse
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glowplug.core.errors import UsageError

from .limits import Limits, duration, phase_limit

_LIMITS = ("max", "max-start", "max-first-step")
_NAMES = (*_LIMITS, "max-phase", "program", "repeat")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the table of a project says: the limits, the program that pytest profiles for them, and how often."""

    limits: Limits = field(default_factory=Limits)
    program: tuple[str, ...] = ()
    repeat: int = 1


def settings_file(folder: Path) -> Path | None:
    """Return the pyproject.toml of this folder, or of the nearest one above it."""
    return next((path for above in (folder, *folder.parents) if (path := above / "pyproject.toml").is_file()), None)


def read_settings(path: Path) -> Settings:
    """Return what a file says; nothing where it has no such table."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            "the settings cannot be read", seen=f"{path}: {error}", remedy="see tool.glowplug.budget"
        ) from None
    table = _table(document, path)
    unknown = set(table) - set(_NAMES)
    if unknown:
        raise UsageError(
            "a limit that there is not", seen=f"{path}: {min(unknown)}", remedy=f"limits are {', '.join(_NAMES)}"
        )
    repeat, program, phases = table.get("repeat", 1), table.get("program", ""), table.get("max-phase", {})
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise UsageError("a program is profiled once or more", seen=f"{path}: repeat = {repeat!r}", remedy="repeat = 3")
    if not isinstance(phases, Mapping):
        raise UsageError(
            "a limit cannot be read", seen=f"{path}: max-phase = {phases!r}", remedy='write { import = "5s" }'
        )
    try:
        return Settings(limits_from(table), _words(program), repeat)
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise UsageError("a limit cannot be read", seen=f"{path}: {error}", remedy='write max = "30s"') from None


def limits_from(given: Mapping[str, Any]) -> Limits:
    """Return limits from what they are called in a file, as texts or numbers of seconds."""
    whole, start, first_step = (duration(str(given[name])) if name in given else None for name in _LIMITS)
    phases = tuple(phase_limit(f"{name}={limit}") for name, limit in given.get("max-phase", {}).items())
    return Limits(whole, start, first_step, phases)


def _table(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    table = document
    for name in ("tool", "glowplug", "budget"):
        found = table.get(name, {})
        if not isinstance(found, Mapping):
            raise UsageError("the settings are no table", seen=f"{path}: {name}", remedy="write [tool.glowplug.budget]")
        table = found
    return table


def _words(program: object) -> tuple[str, ...]:
    if isinstance(program, str):
        return tuple(shlex.split(program))
    if isinstance(program, list) and all(isinstance(word, str) for word in program):
        return tuple(program)
    raise ValueError(f"program = {program!r} is neither a text nor a list of texts")
