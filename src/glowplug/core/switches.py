"""Variables of the environment that switch a part of Glowplug off."""

from __future__ import annotations

import os

_OFF = ("0", "false", "no", "off")


def is_on(variable: str) -> bool:
    """Whether a part is on: it is, unless the variable says otherwise."""
    return os.environ.get(variable, "").strip().lower() not in _OFF
