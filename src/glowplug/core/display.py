"""How a profile is shown where a notebook asks it to show itself: by what a higher layer has put here.

Core renders nothing itself, and knows nobody who does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .profile import Profile

_renderers: list[Callable[[Profile], str | None]] = []


def show_with(render: Callable[[Profile], str | None]) -> None:
    """Have profiles shown as what `render` returns: a piece of HTML, or None where it cannot."""
    _renderers[:] = [render]


def shown(profile: Profile) -> str | None:
    """Return a profile as HTML, or None where nobody renders it: a notebook then shows its text."""
    return next((render(profile) for render in _renderers), None)
