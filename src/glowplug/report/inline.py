"""The page of a profile inside of another page: for notebooks."""

from __future__ import annotations

import html

from glowplug.core.errors import UsageError
from glowplug.core.profile import Profile

HEIGHT_PX = 720


def render_inline(profile: Profile) -> str | None:
    """Return the whole report in a frame of its own, which can touch nothing outside; None where jinja2 is missing."""
    from .html import render_html

    try:
        page = render_html(profile).decode()
    except UsageError:
        return None
    title = html.escape(f"Profile of {' '.join(profile.command)}".encode("ascii", "backslashreplace").decode())
    style = f"width:100%;height:{HEIGHT_PX}px;border:1px solid #d3cec5;border-radius:8px"
    return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
