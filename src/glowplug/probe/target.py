"""What to run: a script, a module or a command, checked before anything starts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """A program to profile: its argument vector as the operating system gets it, and as the user wrote it."""

    arguments: tuple[str, ...]
    shown: tuple[str, ...]


def resolve_target(words: Sequence[str], *, python: str | None = None) -> Target:
    """Turn `script.py ARGS`, `-m module ARGS`, `-c CODE ARGS` or `-- COMMAND ARGS` into a target."""
    if not words:
        raise UsageError("nothing to profile", remedy="name a script, -m MODULE, or a command after --")
    interpreter = python or sys.executable
    first, rest = words[0], words[1:]
    if first in ("-m", "-c"):
        if not rest:
            raise UsageError(f"{first} needs a value", remedy=f"write {first} VALUE after the options")
        return Target((interpreter, *words), tuple(words))
    if first == "--":
        return _resolve_command(rest)
    if first.startswith("-"):
        raise UsageError("no such option", seen=first, remedy="see glowplug profile --help")
    path = Path(first)
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise UsageError("the target is a directory without __main__.py", seen=first, remedy="name a script")
    if not path.exists():
        raise UsageError("the target does not exist", seen=first, remedy=_suggest(first))
    return Target((interpreter, *words), tuple(words))


def _resolve_command(words: Sequence[str]) -> Target:
    if not words:
        raise UsageError("no command after --", remedy="write glowplug profile -- COMMAND ARGS")
    found = shutil.which(words[0])
    if found is None:
        raise UsageError("the command does not exist", seen=words[0], remedy="check the name and PATH")
    if not os.access(found, os.X_OK):
        raise UsageError("the command cannot be executed", seen=found, remedy="make it executable")
    return Target(tuple(words), ("--", *words))


def _suggest(name: str) -> str:
    if shutil.which(name):
        return f"to profile the command write: glowplug profile -- {name}"
    return "check the path; a module is profiled with -m MODULE"
