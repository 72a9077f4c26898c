"""Turn names and numbers of a profile into text that is safe to show anywhere.

Names come from the target: they may hold control characters, terminal escapes, lone surrogates or wide characters.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from glowplug.core.clock import human_bytes, human_duration

ELLIPSIS = "…"
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def visible(text: str) -> str:
    """Return `text` with everything that is not printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(_escape(char) if unicodedata.category(char) in _UNSAFE else char for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cell_width(text: str) -> int:
    """Return how many terminal cells printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def clip(text: str, width: int, *, keep: str = "start") -> str:
    """Shorten text to `width` cells. `keep="end"` keeps its tail, `keep="ends"` drops its middle, as names need it."""
    text = visible(text)
    if cell_width(text) <= width:
        return text
    if width < 1:
        return ""
    if keep == "ends":
        head = clip(text, (width - 1) // 2 + 1)
        return head + clip(text, width - cell_width(head) + 1, keep="end").removeprefix(ELLIPSIS)
    chars = reversed(text) if keep == "end" else iter(text)
    kept: list[str] = []
    room = width - 1
    for char in chars:
        room -= _char_width(char)
        if room < 0:
            break
        kept.append(char)
    return ELLIPSIS + "".join(reversed(kept)) if keep == "end" else "".join(kept) + ELLIPSIS


def pad(text: str, width: int, *, right: bool = False, keep: str = "start") -> str:
    """Clip and fill text to exactly `width` cells."""
    shown = clip(text, width, keep=keep)
    fill = " " * (width - cell_width(shown))
    return fill + shown if right else shown + fill


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 module`, `2,843 modules`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(part: int, whole: int) -> str:
    """Return a share such as `34.5 %`; empty where there is no whole."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else ""


def signed(text: str, value: float) -> str:
    """Put a plus before what is positive."""
    return f"+{text}" if value > 0 else text


def quantity(name: str, value: object) -> str:
    """Write a value by the unit its name ends in: `_ns` and `_bytes` (also before `_per_round`) get units."""
    if isinstance(value, Mapping) and name.endswith(("_ns", "_bytes")):
        # The unit of a table is that of all its entries: `slowest_passes_ns`.
        return ", ".join(f"{visible(str(key))}: {quantity(name, item)}" for key, item in value.items())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _plain_text(value)
    if not math.isfinite(value):
        return str(value)
    unit = name.removesuffix("_per_round")
    if unit.endswith("_ns") or unit == "ns":
        return human_duration(round(value))
    if unit.endswith("_bytes") or unit == "bytes":
        return human_bytes(round(value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}"


def quantity_label(name: str) -> str:
    """Return the name of a figure without its unit: `second_trace_ns` becomes `second trace`."""
    rate = name.endswith("_per_round")
    words = name.removesuffix("_per_round").removesuffix("_ns").removesuffix("_bytes").replace("_", " ")
    words = {"ns": "time", "bytes": "size"}.get(words, words)
    return f"{words} per round" if rate else words


def evidence_items(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each figure of a finding as (label, text); what could not be seen is left out."""
    return [
        (quantity_label(visible(str(name))), quantity(str(name), value))
        for name, value in evidence.items()
        if value is not None
    ]


def _plain_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(str(key))}: {quantity(str(key), item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain_text(item) for item in value)
    return visible(str(value))
