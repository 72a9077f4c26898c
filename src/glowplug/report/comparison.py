"""A comparison on the terminal."""

from __future__ import annotations

from glowplug.core.clock import human_bytes, human_duration

from .compare import UNKNOWN, Change, Comparison, Count
from .lines import BLANK, BOLD, DIM, Fragment, Line, plain, wrap
from .phases import phase_style
from .wording import pad, signed

_LABEL, _CELL = 18, 10
_VERDICTS = {"faster": "green", "slower": "red", "same": DIM, UNKNOWN: DIM}


def comparison_lines(comparison: Comparison, width: int) -> list[Line]:
    """Return the table: before, after, difference, noise, verdict."""
    before, after = comparison.before_runs, comparison.after_runs
    heading = ["before", "after", "change", "noise ±"]
    lines: list[Line] = [
        plain(f"{'median of ' if max(before, after) > 1 else ''}{before} and {after} runs", DIM),
        plain(pad("", _LABEL) + "".join(pad(word, _CELL + 2, right=True) for word in heading), DIM),
    ]
    lines += [_change_line(change, phase_style(change.name).label) for change in comparison.phases]
    lines.append(_change_line(comparison.total, "total", BOLD))
    if comparison.counts:
        lines.append(BLANK)
        lines += [_count_line(count) for count in comparison.counts]
    if comparison.notes:
        lines.append(BLANK)
        lines += [line for note in comparison.notes for line in wrap(note, width, style=DIM)]
    return lines


def _change_line(change: Change, label: str, style: str = "") -> Line:
    noise = "" if change.noise_ns is None else human_duration(change.noise_ns)
    cells = [
        human_duration(change.before_ns),
        human_duration(change.after_ns),
        signed(human_duration(change.delta_ns), change.delta_ns),
        noise,
    ]
    text = pad(label, _LABEL) + "".join(pad(cell, _CELL + 2, right=True) for cell in cells)
    verdict = "?" if change.verdict == UNKNOWN else change.verdict
    factor = ""
    if change.verdict in ("faster", "slower") and min(change.before_ns, change.after_ns) > 0:
        ratio = max(change.before_ns, change.after_ns) / min(change.before_ns, change.after_ns)
        factor = f" {ratio:.0f}x" if ratio >= 10 else f" {ratio:.1f}x" if ratio >= 1.05 else ""
    return Fragment(text, style), Fragment("  "), Fragment(verdict + factor, _VERDICTS[change.verdict])


def _count_line(count: Count) -> Line:
    show = human_bytes if count.name == "peak memory" else "{:,}".format
    delta = count.after - count.before
    cells = [show(count.before), show(count.after), signed(show(delta), delta)]
    return plain(pad(count.name, _LABEL) + "".join(pad(cell, _CELL + 2, right=True) for cell in cells))
