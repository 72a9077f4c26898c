"""The one sentence that a report ends with: what would help most, and by how much."""

from __future__ import annotations

from glowplug.core.clock import human_bytes, human_duration
from glowplug.core.profile import Profile


def closing_text(profile: Profile) -> str:
    """Return it for a profile whose findings its rules have ranked: the first one is the one to look at."""
    if not profile.findings:
        return "Nothing was found that would make this start shorter."
    first = profile.findings[0]
    what = first.remedy.text.partition(". ")[0].rstrip(".")
    gains = [f"{human_duration(first.saves_ns)} of {human_duration(profile.wall_ns)}"] if first.saves_ns > 0 else []
    gains += [human_bytes(first.saves_bytes)] if first.saves_bytes > 0 else []
    gain = f" It would save about {' and '.join(gains)}." if gains else ""
    return f"What would help most ({first.rule}): {what}.{gain}"
