"""Counts how often an entry was restored, and says when a restore is to be traced as well.

The first restore of an entry is on probation, and so is one in twenty after that. The counts are in a small file beside
the entry, `<name>.restores`, replaced as a whole. A file that is lost or damaged counts as none: the next restore is
looked at again. In a folder that is only read, as in a container image, the counts stay as they came, and chance
decides which one in twenty it is. `GLOWPLUG_TRACE_VERIFY` is `probation` (what is said above), `always` or `off`.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from glowplug.train.trace.entry_store import COUNTS_SUFFIX

VARIABLE = "GLOWPLUG_TRACE_VERIFY"
MODES = ("probation", "always", "off")
EVERY = 20


def mode() -> str:
    """Return what the environment asks for; anything unknown means what is usual."""
    asked = os.environ.get(VARIABLE, "")
    return asked if asked in MODES else MODES[0]


@dataclass(frozen=True, slots=True)
class Restores:
    """How often an entry was restored, and at which of these it was last found to be right (0: never)."""

    count: int = 0
    verified_at: int = 0

    @property
    def due(self) -> bool:
        """Whether the latest restore should be traced as well."""
        return self.verified_at == 0 or self.count - self.verified_at >= EVERY


class Probation:
    """The counts of one entry. Without a folder they last as long as this process."""

    def __init__(self, folder: Path | None, name: str, *, read_only: bool = False) -> None:
        self._place = None if folder is None else folder / f"{name}{COUNTS_SUFFIX}"
        self._read_only = read_only
        self._restores = self._read()

    @property
    def verified(self) -> bool:
        """Whether the entry was ever found to be right."""
        return self._restores.verified_at > 0

    def restored(self) -> bool:
        """Count a restore, and say whether it should be traced as well."""
        self._write(Restores(self._restores.count + 1, self._restores.verified_at))
        asked = mode()
        by_chance = self._read_only and is_chosen()
        return asked == "always" or (asked == "probation" and (self._restores.due or by_chance))

    def found_right(self) -> None:
        """A fresh trace was the same."""
        self._write(Restores(self._restores.count, max(1, self._restores.count)))

    def forget(self) -> None:
        """The entry is gone."""
        if self._place is not None and not self._read_only:
            with contextlib.suppress(OSError):
                self._place.unlink()

    def _read(self) -> Restores:
        if self._place is None:
            return Restores()
        try:
            found = json.loads(self._place.read_text())
            return Restores(int(found["count"]), int(found["verified_at"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Restores()

    def _write(self, restores: Restores) -> None:
        self._restores = restores
        if self._place is None or self._read_only:
            return
        temporary = self._place.with_name(f".{self._place.name}.{os.getpid()}")
        try:
            temporary.write_text(json.dumps(asdict(restores)))
            temporary.replace(self._place)
        except OSError:  # a folder that can only be read still serves what it has
            with contextlib.suppress(OSError):
                temporary.unlink()


def is_chosen() -> bool:
    """Draw one in twenty, from the kernel: the program's own random numbers are not touched."""
    return int.from_bytes(os.urandom(4), "little") % EVERY == 0
