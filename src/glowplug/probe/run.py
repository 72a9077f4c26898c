"""Profile a target: the public entry of the probe."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from glowplug.core.profile import Profile

from .entry_files import run_directory
from .events import read_images
from .launch import launch
from .merge import merge
from .target import Target, resolve_target


def profile_target(
    words: Sequence[str],
    *,
    repeat: int = 1,
    cold_cache: bool = False,
    environment: Mapping[str, str] | None = None,
    python: str | None = None,
) -> Profile:
    """Run a script, `-m module` or `-- command` and return where its time went."""
    target = resolve_target(words, python=python)
    return _profile_once(target, os.environ if environment is None else environment)


def _profile_once(target: Target, environment: Mapping[str, str]) -> Profile:
    with run_directory() as directory:
        launched = launch(target.arguments, directory, environment)
        images = read_images(directory / "events")
    return merge(launched, images, target.shown, environment)
