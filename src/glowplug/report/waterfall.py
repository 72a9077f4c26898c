"""The waterfall of the terminal: one row a phase, its seconds, its share, and when in the run it happened.

The height of each cell is the share of that slice of time the phase filled, so the rows of a column add up to one.
"""

from __future__ import annotations

from glowplug.core.clock import human_duration
from glowplug.core.profile import PHASES, Profile

from .lines import BOLD, DIM, Fragment, Line, plain
from .phases import phase_style
from .summary import density
from .wording import pad, percent

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = " .:-=+*%#"

_LABEL = 18
_TIME = 8
_SHARE = 7
_GAPS = 5
_LAST = ("user_code", "unaccounted")  # what no span explains stands apart, below the rest


def waterfall_lines(profile: Profile, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Return the phases that took time, in order of the run, then what is not explained, then the sum."""
    columns = max(10, width - _LABEL - _TIME - _SHARE - _GAPS)
    shares = density(profile, columns)
    shown = [phase for phase in PHASES if phase not in _LAST and profile.phases.get(phase, 0) > 0]
    shown.sort(key=lambda phase: _first_column(shares.get(phase, [])))
    lines: list[Line] = [_axis(profile.wall_ns, columns, ascii_only=ascii_only)]
    for phase in (*shown, *_LAST):
        style = phase_style(phase)
        strip = _strip(shares.get(phase, []), columns, ASCII_BLOCKS if ascii_only else BLOCKS)
        lines.append(
            (
                Fragment(pad(style.label, _LABEL) + "  "),
                Fragment(strip, style.color),
                Fragment("  " + pad(human_duration(profile.phases.get(phase, 0)), _TIME, right=True)),
                Fragment(" " + pad(percent(profile.phases.get(phase, 0), profile.wall_ns), _SHARE, right=True), DIM),
            )
        )
    total = sum(profile.phases.get(phase, 0) for phase in PHASES)
    gap = " " * columns
    lines.append(
        (
            Fragment(pad("sum = wall time" if total == profile.wall_ns else "sum", _LABEL) + "  " + gap, BOLD),
            Fragment("  " + pad(human_duration(total), _TIME, right=True), BOLD),
            Fragment(" " + pad(percent(total, profile.wall_ns), _SHARE, right=True), DIM),
        )
    )
    return lines


def _first_column(row: list[float]) -> int:
    """Where a phase begins in earnest: the slice in which a fiftieth of its time has passed."""
    if not row:
        return 1 << 30
    passed, enough = 0.0, sum(row) / 50
    for column, share in enumerate(row):
        passed += share
        if passed >= enough and share > 0:
            return column
    return len(row)


def _strip(row: list[float], columns: int, blocks: str) -> str:
    if not row:
        return " " * columns
    top = len(blocks) - 1
    # Any time at all is worth the lowest mark: a phase that ran must be seen to have run.
    return "".join(blocks[0 if share <= 0 else max(1, min(top, round(share * top)))] for share in row)


def _axis(wall_ns: int, columns: int, *, ascii_only: bool) -> Line:
    """Return tick labels at the quarters of the run, where they fit."""
    tick = "|" if ascii_only else "╵"
    cells = [" "] * (columns + 1)
    for quarter in range(0, 4 if columns >= 36 else 1):
        label = f"{tick}{human_duration(wall_ns * quarter // 4)}" if quarter else f"{tick}0"
        at = columns * quarter // 4
        for offset, char in enumerate(label[: columns - at]):
            cells[at + offset] = char
    return plain(" " * (_LABEL + 2) + "".join(cells).rstrip(), DIM)
