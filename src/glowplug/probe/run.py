"""Profile a target: the public entry of the probe."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from glowplug.core.errors import UsageError
from glowplug.core.profile import PHASES, Profile, Runs
from glowplug.core.target import SCRIPT, Target, target_from_words

from .entry_files import run_directory
from .events import read_images
from .launch import launch
from .merge import merge
from .page_cache import Cooled, cool


def profile_target(
    words: Sequence[str],
    *,
    repeat: int = 1,
    cold_cache: bool = False,
    calls: bool = False,
    environment: Mapping[str, str] | None = None,
    python: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Profile:
    """Run a script, `-m module`, `-c code` or `-- command` in a fresh process and return where its time went.

    With `repeat`, the profile is the run of median wall time, and its `runs` hold the figures of all of them. A run
    that fails ends the repetition: its profile is returned as it is. With `calls`, the profile has the call tree of
    the program's own code; a further thread in the program looks for it.
    """
    if repeat < 1:
        raise UsageError("a target runs at least once", seen=f"--repeat {repeat}", remedy="give 1 or more")
    target = profilable_target(words)
    command = target.command(python or sys.executable)
    variables = dict(os.environ if environment is None else environment)
    profiles: list[Profile] = []
    for number in range(1, repeat + 1):
        if progress is not None and repeat > 1:
            progress(f"run {number} of {repeat}")
        cooled = cool(command) if cold_cache else Cooled("warm", "")
        profiles.append(_profile_once(target, command, variables, cooled, calls=calls))
        if profiles[-1].exit_code != 0:
            break
    return _median(profiles, repeat)


def profilable_target(words: Sequence[str]) -> Target:
    """Turn `script.py ARGS`, `-m module ARGS`, `-c CODE ARGS` or `-- COMMAND ARGS` into a target."""
    target = target_from_words(words, verb="profile", commands=True)
    if target.kind == SCRIPT and Path(target.name).is_dir() and not Path(target.name, "__main__.py").is_file():
        raise UsageError("the target is a directory without __main__.py", seen=target.name, remedy="name a script")
    return target


def _profile_once(
    target: Target, command: tuple[str, ...], environment: Mapping[str, str], cooled: Cooled, *, calls: bool
) -> Profile:
    with run_directory(calls=calls) as directory:
        launched = launch(command, directory, environment)
        images = read_images(directory / "events")
    notes = (cooled.note,) if cooled.note else ()
    return merge(launched, images, target.words(), environment, page_cache=cooled.state, notes=notes)


def _median(profiles: Sequence[Profile], wanted: int) -> Profile:
    last = profiles[-1]
    if wanted == 1:
        return last
    if last.exit_code != 0:
        note = f"run {len(profiles)} of {wanted} ended with exit code {last.exit_code}: not repeated further"
        return dataclasses.replace(last, notes=(*last.notes, note))
    ordered = sorted(profiles, key=lambda profile: profile.wall_ns)
    runs = Runs(
        wall_ns=tuple(profile.wall_ns for profile in profiles),
        phases={phase: tuple(profile.phases[phase] for profile in profiles) for phase in PHASES},
        cpu_ns=tuple(int(profile.environment["cpu_ns"]) for profile in profiles),
    )
    return dataclasses.replace(ordered[(len(ordered) - 1) // 2], runs=runs)
