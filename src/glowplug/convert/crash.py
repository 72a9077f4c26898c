"""What is told of a process that ended without an answer while it converted or tried a model."""

from __future__ import annotations

import os
import signal
from typing import IO

from glowplug.core import errors
from glowplug.runtime import amx

_KEPT_LOG_BYTES = 20_000


class Crash(Exception):  # noqa: N818 - what happened, not yet an error: `auto` goes on
    """A child ended without an answer. `library` is what it ran the model with."""

    def __init__(self, returncode: int, stage: str, log: str, library: str = "TensorFlow") -> None:
        super().__init__(returncode, stage)
        self._returncode, self._stage, self._log, self._library = returncode, stage, log, library
        self.is_illegal_instruction = returncode == -signal.SIGILL

    def as_error(self) -> errors.GlowplugError:
        """Return what a user is told."""
        number = -self._returncode
        name = signal.Signals(number).name if number in set(signal.Signals) else "an error"
        seen = f"{name} at the stage {self._stage!r}" + (f" ({self._log})" if self._log else "")
        if number == signal.SIGKILL:
            return errors.RuntimeFailure("packing was killed", seen=seen, remedy="give it more memory")
        remedy = "set GLOWPLUG_DEBUG=1 to see more"
        if number == signal.SIGILL:
            remedy = f"run `glowplug doctor`; where the processor announces AMX and lacks it, set {'='.join(amx.CURE)}"
        what = f"{self._library} died on this model" if number > 0 else "this model cannot be converted"
        return errors.UnsupportedModelError(what, seen=seen, remedy=remedy)


def last_words(log: IO[bytes]) -> str:
    """Return what a library said last: a failed check says why it aborts."""
    end = log.seek(0, os.SEEK_END)
    log.seek(max(0, end - _KEPT_LOG_BYTES))
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("F") or "Check failed" in line]
    return " ".join((fatal or lines or [""])[-1].split())[:300]
