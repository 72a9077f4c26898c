"""Which module, once loaded, gets which instruments. Runs in the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .importing import Hook
from .recorder import Recorder

if TYPE_CHECKING:
    from .activate import Run


def hooks(recorder: Recorder, run: Run) -> dict[str, Hook]:
    """Return a hook for each module that is instrumented after its import."""
    return {}
