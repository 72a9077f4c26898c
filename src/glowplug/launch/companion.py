"""What a standby has ready for programs besides the packages it preloads. Runs in the standby, before it forks."""

from __future__ import annotations

import runpy  # noqa: F401 - a program that is a module needs it
from collections.abc import Sequence

from . import child, parts  # noqa: F401 - as every program


def prepare(preload: Sequence[str]) -> None:
    """Find out ahead what the trace cache asks of the installed Keras."""
    if {"tensorflow", "keras"} <= set(preload):
        from glowplug.train import switch

        switch.prepare()
