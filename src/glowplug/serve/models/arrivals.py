"""Which versions have arrived: all of their files are there, and none has changed for a moment.

A version may be copied in any order, file by file. One that is loaded too soon fails, or works with half its weights.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .completeness import what_is_missing
from .sources import Source

SETTLE_S = 1.0  # how long a version's files must have been left alone
STILL_CHANGING = "its files are still changing"


@dataclass(slots=True)
class _Sighting:
    stamp: str
    since: float
    missing: str


class Arrivals:
    """Remembers what was seen of each version, so that files are looked into once and not at every look."""

    def __init__(self) -> None:
        self._seen: dict[Path, _Sighting] = {}

    def why_not_yet(self, source: Source) -> str:
        """Say why a version cannot be loaded yet; an empty text where it can."""
        now = time.monotonic()
        seen = self._seen.get(source.path)
        if seen is None or seen.stamp != source.stamp:
            seen = self._seen[source.path] = _Sighting(source.stamp, now, what_is_missing(source))
        if seen.missing:
            return seen.missing
        # The clock of a network file system may be another one than ours: what we saw counts too.
        if source.age_s() < SETTLE_S and now - seen.since < SETTLE_S:
            return STILL_CHANGING
        return ""

    def forget_all_but(self, paths: Iterable[Path]) -> None:
        """Keep what is known about these paths alone."""
        kept = set(paths)
        self._seen = {path: seen for path, seen in self._seen.items() if path in kept}
