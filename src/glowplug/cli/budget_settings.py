"""Limits that a project keeps in its pyproject.toml, for `glowplug budget` without options.

[tool.glowplug.budget]
max = "30s"
max-start = "10s"
max-first-step = "25s"
max-phase = { import = "5s", trace = "10s" }
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glowplug.core.errors import UsageError

_LIMITS = ("max", "max-start", "max-first-step")


def settings_file(folder: Path) -> Path | None:
    """Return the pyproject.toml of this folder, or of the nearest one above it."""
    return next((path for above in (folder, *folder.parents) if (path := above / "pyproject.toml").is_file()), None)


def read_limits(
    path: Path, duration: Callable[[str], int], phase_limit: Callable[[str], tuple[str, int]]
) -> dict[str, Any]:
    """Return the limits of a file, by the names that the options have; empty where it has no such table."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            "the settings cannot be read", seen=f"{path}: {error}", remedy="see tool.glowplug.budget"
        ) from None
    table = document.get("tool", {}).get("glowplug", {}).get("budget", {})
    unknown = set(table) - {*_LIMITS, "max-phase"}
    if unknown:
        known = ", ".join((*_LIMITS, "max-phase"))
        raise UsageError("a limit that there is not", seen=f"{path}: {min(unknown)}", remedy=f"limits are {known}")
    try:
        limits: dict[str, Any] = {
            name.replace("-", "_"): duration(str(table[name])) for name in _LIMITS if name in table
        }
        limits["max_phase"] = [phase_limit(f"{name}={limit}") for name, limit in table.get("max-phase", {}).items()]
    except argparse.ArgumentTypeError as error:
        raise UsageError("a limit cannot be read", seen=f"{path}: {error}", remedy='write max = "30s"') from None
    return limits
