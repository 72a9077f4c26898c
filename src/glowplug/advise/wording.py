"""How findings speak: seconds, sizes, sites and command lines as text."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from glowplug.core.clock import human_bytes
from glowplug.core.profile import Profile


def seconds(ns: float) -> str:
    """Return a duration for a sentence: `0.03 s`, `4.1 s`, `120 s`."""
    value = ns / 1e9
    if value < 0.1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def size(count: float) -> str:
    """Return a number of bytes as reports write them: `12.0 kB`, `3.40 MB`, `1.20 GB`."""
    return human_bytes(round(count))


def times(count: int) -> str:
    """Return how often: `once`, `twice`, `7 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def at(site: object) -> str:
    """Return ` at train.py:12` for a site, and nothing where there is none."""
    if not site:
        return ""
    path, _, line = str(site).rpartition(":")
    return f" at {PurePosixPath(path).name}:{line}" if path else f" at {site}"


def short(function: object) -> str:
    """Return a qualified function name without what it is nested in: `make.<locals>.step` is `step`."""
    return str(function).rpartition("<locals>.")[2]


def bundle_name(path: str) -> str:
    """Return the name of the bundle that `pack_command` makes of a model."""
    name = PurePosixPath(path.rstrip("/")).name or "model"
    return f"{name.removesuffix('.keras').removesuffix('.h5')}.glow"


def pack_command(path: str) -> str:
    """Return the command line that packs a model into a bundle beside the working directory."""
    return f"glowplug pack {shlex.quote(path)} -o {shlex.quote(bundle_name(path))}"


def run_command(profile: Profile, *options: str) -> str:
    """Return the command that runs the profiled program under `glowplug run`; empty if it is no Python, or runs so."""
    command = profile.command
    if not command or command[0] == "--" or command[:2] == ("-m", "glowplug") or command[0].endswith("/glowplug"):
        return ""
    return shlex.join(["glowplug", "run", *options, *profile.command])
