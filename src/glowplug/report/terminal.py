"""A profile on the terminal: the waterfall, the findings and the tables, in colour with rich, as plain text without.

Everything fits the width of the terminal (80 columns when there is none) and reads the same without colour.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TextIO

from glowplug.core.clock import human_bytes, human_duration
from glowplug.core.profile import Finding, Profile

from . import sections
from .closing import closing_text
from .lines import BLANK, BOLD, DIM, Fragment, Line, line_text, plain, wrap
from .waterfall import waterfall_lines
from .wording import cell_width, clip, evidence_items, visible

_NARROWEST, _WIDEST = 60, 110
_HINT = "For colour and the HTML report: pip install 'glowplug[report]'"


def print_profile(profile: Profile, stream: TextIO, *, width: int | None = None, color: bool | None = None) -> None:
    """Write the whole report to `stream`. `width` and `color` are those of the terminal unless given."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    ascii_only = not encoding.lower().replace("-", "").startswith("utf")
    wide = min(_WIDEST, max(_NARROWEST, width or shown_width(stream)))
    print_lines(profile_lines(profile, wide, ascii_only=ascii_only), stream, color=color)


def print_lines(lines: Sequence[Line], stream: TextIO, *, color: bool | None = None) -> None:
    """Print lines in colour where the terminal and rich allow it. `color=None` asks the terminal."""
    if find_spec("rich") is None:
        _print_plain([*lines, BLANK, plain(_HINT)], stream)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=color, no_color=None if color is None else not color, width=1000)
    if not console.is_terminal:
        _print_plain(lines, stream)
        return
    for line in lines:
        text = Text(no_wrap=True, overflow="ignore", end="\n")
        for fragment in line:
            text.append(fragment.text, style=fragment.style or None)
        text.rstrip()
        console.print(text, soft_wrap=True)


def _print_plain(lines: Sequence[Line], stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    text = "".join(f"{line_text(line)}\n" for line in lines)
    stream.write(text.encode(encoding, "replace").decode(encoding))


def shown_width(stream: TextIO) -> int:
    """Return the columns of a terminal, or of what stands for one."""
    if not stream.isatty():
        return int(os.environ.get("COLUMNS", "80")) if os.environ.get("COLUMNS", "").isdigit() else 80
    return shutil.get_terminal_size((80, 24)).columns


def profile_lines(profile: Profile, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Return every line of the report for a terminal of `width` columns."""
    parts: list[tuple[str, list[Line]]] = [
        ("Where the time went (main thread)", waterfall_lines(profile, width, ascii_only=ascii_only)),
        ("Findings", finding_lines(profile.findings, width) or [plain("none found")]),
        ("Your code", sections.call_lines(profile, width)),
        ("Imports", sections.import_lines(profile, width)),
        ("Loads", sections.load_lines(profile, width)),
        ("Traces", sections.trace_lines(profile, width)),
        ("Steps", sections.step_lines(profile, width)),
        ("Loops", sections.loop_lines(profile, width, ascii_only=ascii_only)),
        ("Processes", sections.process_lines(profile, width)),
        ("Notes", [line for note in profile.notes for line in wrap(note, width)]),
    ]
    lines = header_lines(profile, width)
    for title, body in parts:
        if body:
            lines += [BLANK, plain(title, BOLD), *body]
    return [*lines, BLANK, *wrap(closing_text(profile), width, style=BOLD)]


def header_lines(profile: Profile, width: int) -> list[Line]:
    """What ran, how long its start took, how it ended, on what."""
    ended = f"exit {profile.exit_code}" if profile.exit_code >= 0 else f"killed by signal {-profile.exit_code}"
    start = profile.cold_start
    right = f"{human_duration(start.ns)} to {start.until}"
    command = clip(" ".join(profile.command), width - len(right) - 2)
    gap = " " * max(2, width - cell_width(command) - len(right))
    lines: list[Line] = [(Fragment(command, BOLD), Fragment(gap), Fragment(right))]
    whole = f"{human_duration(profile.wall_ns)} in all, {ended}"
    lines += wrap(", ".join([whole, *_facts(profile)]), width, style=DIM)
    if profile.runs is not None and len(profile.runs.wall_ns) > 1:
        walls = profile.runs.wall_ns
        text = f"median of {len(walls)} runs, {human_duration(min(walls))} to {human_duration(max(walls))}"
        lines.append(plain(text, DIM))
    return lines


def _facts(profile: Profile) -> list[str]:
    environment = profile.environment
    versions = environment.get("versions")
    names = {"tensorflow": "TensorFlow", "keras": "Keras", "tf_keras": "tf_keras", "numpy": "NumPy"}
    facts = [f"{names[name]} {version}" for name, version in (versions or {}).items() if name in names]
    if environment.get("python"):
        facts.append(f"Python {environment['python']}")
    if environment.get("cpu_count"):
        facts.append(f"{environment['cpu_count']} CPUs")
    if environment.get("page_cache"):
        facts.append(f"page cache {environment['page_cache']}")
    if isinstance(environment.get("peak_rss_bytes"), int):
        facts.append(f"peak memory {human_bytes(environment['peak_rss_bytes'])}")
    return [visible(fact) for fact in facts]


def finding_lines(findings: Sequence[Finding], width: int) -> list[Line]:
    """The findings as ranked by their rules: what was seen, what it would save, what to do."""
    lines: list[Line] = []
    for number, finding in enumerate(findings, 1):
        saves = _saves(finding)
        head = f"{number:>2}. "
        room = max(20, width - len(head) - len(saves) - 2)
        # Titles end with the line of code to look at: they are broken, not cut, unless they go on and on.
        title, *rest = [line_text(line) for line in wrap(clip(finding.title, 4 * room), room)] or [""]
        gap = " " * max(2, width - len(head) - cell_width(title) - len(saves))
        lines.append((Fragment(head), Fragment(title, BOLD), Fragment(gap), Fragment(saves, BOLD)))
        lines += [plain(" " * len(head) + text, BOLD) for text in rest]
        seen = ", ".join(f"{label} {text}" for label, text in evidence_items(finding.evidence))
        lines += wrap(seen, width, indent="    ", style=DIM)
        lines += wrap(finding.remedy.text, width, indent="    ")
        # Code and commands stay whole, however long: a clipped one cannot be used.
        lines += [plain(f"      {visible(code)}") for code in finding.remedy.code.split("\n") if code]
        if finding.remedy.command:
            lines.append(plain(f"    $ {visible(finding.remedy.command)}"))
        lines.append(plain(clip(f"    more: glowplug explain {finding.rule}", width), DIM))
    return lines


def _saves(finding: Finding) -> str:
    parts = [human_duration(finding.saves_ns)] if finding.saves_ns > 0 else []
    parts += [human_bytes(finding.saves_bytes)] if finding.saves_bytes > 0 else []
    return f"saves {' and '.join(parts)}" if parts else ""
