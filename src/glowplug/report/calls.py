"""What is said of the call tree of a program's own code: its rows for a page, and how to get one."""

from __future__ import annotations

from typing import Any

from glowplug.core.clock import human_duration
from glowplug.core.profile import Profile

from .wording import percent, visible

MOST_ROWS = 200
DEEPEST = 12  # levels that are set in further; what is deeper stands below one another
LONG_NS, LONG_SHARE = 1_000_000_000, 0.2


def calls_hint(profile: Profile) -> str:
    """Say how to see which functions the program's own time went to, where that is worth a look; else nothing."""
    own_ns = profile.phases.get("user_code", 0)
    if profile.calls or own_ns < LONG_NS or own_ns < LONG_SHARE * profile.wall_ns:
        return ""
    took = human_duration(own_ns)
    return f"{took} went to the program's own code: `glowplug profile --calls` shows which functions took it."


def call_rows(profile: Profile) -> list[dict[str, Any]]:
    """Return the rows of the page's table."""
    total_ns = max((call.ns for call in profile.calls), default=0)
    return [
        {
            "depth": min(call.depth, DEEPEST),
            "function": visible(call.function),
            "site": visible(call.site),
            "total": human_duration(call.ns),
            "own": human_duration(call.own_ns),
            "share": percent(call.ns, total_ns),
        }
        for call in profile.calls[:MOST_ROWS]
    ]
