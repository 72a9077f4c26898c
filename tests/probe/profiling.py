"""Profile the targets of this folder. TensorFlow targets run once for a test run and are shared."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from glowplug.core.profile import PHASES, Profile, Span
from glowplug.probe.run import profile_target

TARGETS = Path(__file__).parent / "targets"


@functools.cache
def profile_of(name: str, *arguments: str) -> Profile:
    """Profile one of the targets; the same call gives the same profile."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    profile = profile_target([str(TARGETS / name), *arguments], environment=environment)
    check(profile)
    return profile


def check(profile: Profile) -> None:
    """Assert what is true of every profile."""
    assert set(profile.phases) == set(PHASES)
    assert sum(profile.phases.values()) == profile.wall_ns
    assert all(value >= 0 for value in profile.phases.values()), profile.phases
    by_id = {span.id: span for span in profile.spans}
    assert len(by_id) == len(profile.spans)
    ends: dict[int | None, int] = {}
    for span in profile.spans:
        assert span.start_ns <= span.end_ns
        assert span.kind
        if span.parent is None:
            continue
        parent = by_id[span.parent]
        assert (parent.pid, parent.thread) == (span.pid, span.thread)
        assert parent.start_ns <= span.start_ns <= span.end_ns <= parent.end_ns
        assert ends.get(span.parent, 0) <= span.start_ns, "siblings overlap"
        ends[span.parent] = span.end_ns


def line_of(name: str, text: str) -> str:
    """Return `path:line` of the line of a target that holds `text`."""
    path = TARGETS / name
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if text in line:
            return f"{path}:{number}"
    raise AssertionError(f"{name} has no line with {text!r}")


def named(profile: Profile, kind: str, name: str) -> Span:
    """Return the first span of a kind and name."""
    return next(span for span in profile.of_kind(kind) if span.name == name)
