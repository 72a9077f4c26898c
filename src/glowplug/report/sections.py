"""The tables below the waterfall: imports, the program's own code, loads, traces, steps, loops, processes.

Each returns no lines when empty.
"""

from __future__ import annotations

from glowplug.core.clock import human_bytes, human_duration
from glowplug.core.profile import Loop, Profile

from .calls import calls_hint
from .lines import BLANK, BOLD, DIM, Column, Fragment, Line, plain, table, wrap
from .phases import phase_style
from .summary import (
    importer_chain,
    load_rows,
    outermost_imports,
    slowest_modules,
    step_rows,
    trace_rows,
)
from .waterfall import ASCII_BLOCKS, BLOCKS
from .wording import cell_width, clip, count, quantity, signed

_TIME = 8
_MOST_CALLS = 20
_SHORTEST_NS = 1_000_000  # imports below a millisecond are left to the other reports


def import_lines(profile: Profile, width: int) -> list[Line]:
    """Who imported what, who asked for TensorFlow first, and which modules are slow themselves."""
    outer = [row for row in outermost_imports(profile, 6) if row.total_ns >= _SHORTEST_NS]
    if not outer:
        return []
    lines: list[Line] = []
    name_width = max(20, (width - 2 * (_TIME + 2) - 4) // 2)
    site_width = width - name_width - 2 * (_TIME + 2) - 2
    columns = (
        Column("imported by the program", name_width),
        Column("total", _TIME, right=True),
        Column("modules", _TIME, right=True),
        Column("at", site_width, keep="end"),
    )
    rows = [
        (row.module, human_duration(row.total_ns), f"{row.modules:,}" if row.modules else "", row.site) for row in outer
    ]
    lines += table(columns, rows)
    columns = (
        Column("slowest modules", name_width, keep="ends"),
        Column("self", _TIME, right=True),
        Column("total", _TIME, right=True),
        Column("asked for by", site_width, keep="ends"),
    )
    rows = [
        (row.module, human_duration(row.self_ns), human_duration(row.total_ns), row.site)
        for row in slowest_modules(profile, 8)
        if row.self_ns > 0
    ]
    if rows:
        lines += [BLANK, *table(columns, rows)]
    importer = profile.environment.get("tensorflow_importer")
    if isinstance(importer, dict):
        chain = importer_chain(importer)
        site = f" ({importer['site']})" if importer.get("site") else ""
        lines += [
            BLANK,
            *wrap(f"TensorFlow was first asked for by {' > '.join(chain)}{site}", width, style=DIM),
        ]
    return lines


def call_lines(profile: Profile, width: int) -> list[Line]:
    """The call tree of the program's own code, or, where that took long and nobody looked, how to get it."""
    if not profile.calls:
        return wrap(calls_hint(profile), width, style=DIM)
    name_width = max(24, (width - 2 * (_TIME + 2)) // 2)
    columns = (
        Column("function", name_width),
        Column("total", _TIME, right=True),
        Column("own", _TIME, right=True),
        Column("at", width - name_width - 2 * (_TIME + 2) - 2, keep="end"),
    )
    rows = []
    for call in profile.calls[:_MOST_CALLS]:
        indent = "  " * min(call.depth, 8)
        name = indent + clip(call.function, name_width - len(indent), keep="ends")
        rows.append((name, human_duration(call.ns), human_duration(call.own_ns), call.site))
    more = len(profile.calls) - len(rows)
    tail = [plain(f"and {count(more, 'further call')}", DIM)] if more > 0 else []
    return [*table(columns, rows), *tail]


def load_lines(profile: Profile, width: int) -> list[Line]:
    """What each load of a model or of weights was made of."""
    lines: list[Line] = []
    for span, parts in load_rows(profile, 5):
        size = span.attrs.get("bytes")
        about = " ".join(
            filter(None, [str(span.attrs.get("format", "")), human_bytes(size) if isinstance(size, int) else ""])
        )
        head = f"{human_duration(span.duration_ns):>{_TIME}}  {about}  "
        head = clip(head, width // 2)
        lines.append((Fragment(head), Fragment(clip(span.name, width - cell_width(head), keep="end"))))
        shares = sorted(parts.items(), key=lambda item: -item[1])
        text = ", ".join(f"{phase_style(name).label} {human_duration(ns)}" for name, ns in shares if ns > 0)
        lines += wrap(text, width, indent=" " * (_TIME + 2), style=DIM)
    return lines


def trace_lines(profile: Profile, width: int) -> list[Line]:
    """Which functions were traced, how often and why again."""
    rows = trace_rows(profile, 8)
    if not rows:
        return []
    name_width = max(18, (width - 3 * (_TIME + 2)) // 2)
    columns = (
        Column("function", name_width, keep="ends"),
        Column("traces", _TIME, right=True),
        Column("time", _TIME, right=True),
        Column("graph ops", 9, right=True),
        Column("why again", width - name_width - 2 * _TIME - 9 - 8),
    )
    return table(
        columns,
        [
            (
                row.function,
                f"{row.traces:,}",
                human_duration(row.total_ns),
                f"{row.graph_ops:,}",
                ", ".join(row.reasons).replace("_", " "),
            )
            for row in rows
        ],
    )


def step_lines(profile: Profile, width: int) -> list[Line]:
    """The first steps beside the steady one."""
    rows = step_rows(profile, 5)
    if not rows:
        return []
    name_width = width - 4 * (_TIME + 2) - 10
    columns = (
        Column("function", name_width, keep="ends"),
        Column("steps", 8, right=True),
        Column("first", _TIME, right=True),
        Column("second", _TIME, right=True),
        Column("third", _TIME, right=True),
        Column("steady", _TIME, right=True),
    )
    shown = []
    for row in rows:
        first = [human_duration(ns) for ns in row.first_ns] + ["", "", ""]
        steady = human_duration(row.steady_ns) if row.steady_ns else ""
        name = f"{row.function} ({row.mode})" if row.mode else row.function
        shown.append((name, f"{row.steps:,}", *first[:3], steady))
    return table(columns, shown)


def loop_lines(profile: Profile, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Calls made again and again from one line: how the cost of a round moves, and what grows."""
    lines: list[Line] = []
    for loop in profile.loops[:5]:
        if not loop.rounds:
            continue
        head = f"{clip(loop.call, 24)} x {len(loop.rounds):,}  "
        lines.append((Fragment(head, BOLD), Fragment(clip(loop.site, width - cell_width(head), keep="end"))))
        durations = [entry.duration_ns for entry in loop.rounds]
        blocks = ASCII_BLOCKS if ascii_only else BLOCKS
        strip = _sparkline(durations, min(40, width - 44), blocks)
        first, last = human_duration(durations[0]), human_duration(durations[max(0, len(durations) - 2)])
        lines.append((Fragment("  time a round  ", DIM), Fragment(strip, "#f28e82"), Fragment(f"  {first} to {last}")))
        grown = _slopes(loop)
        if grown:
            lines.append((Fragment("  each round    ", DIM), Fragment(clip(", ".join(grown), width - 16))))
        for site, added in list(loop.adders.items())[:2]:
            text = f"{count(added, 'graph operation')} added by {site}"
            lines.append((Fragment("  grows here    ", DIM), Fragment(clip(text, width - 16))))
    return lines


def _slopes(loop: Loop) -> list[str]:
    shown = []
    units = {"ns": "", "rss_bytes": "", "threads": " threads", "graph_ops": " graph ops", "traces": " traces"}
    for name, unit in units.items():
        slope = loop.slopes.get(f"{name}_per_round", 0.0)
        text = quantity(f"{name}_per_round", slope)
        if slope and text.strip("-0. nB") != "":
            shown.append(signed(f"{text}{unit}", slope))
    return shown


def _sparkline(values: list[int], columns: int, blocks: str) -> str:
    top = max(values, default=0) or 1
    columns = max(1, min(columns, len(values)))
    marks = []
    for column in range(columns):
        part = values[column * len(values) // columns : (column + 1) * len(values) // columns]
        share = sum(part) / len(part) / top
        marks.append(blocks[max(1, min(len(blocks) - 1, round(share * (len(blocks) - 1))))])
    return "".join(marks)


def process_lines(profile: Profile, width: int) -> list[Line]:
    """The processes of the run, when there is more than the one."""
    if len(profile.processes) < 2:
        return []
    columns = (
        Column("pid", 8, right=True),
        Column("how", 5),
        Column("life", _TIME, right=True),
        Column("peak rss", _TIME, right=True),
        Column("exit", 5, right=True),
        Column("command", width - 34 - 10),
    )
    rows = []
    for process in sorted(profile.processes, key=lambda process: process.start_ns)[:10]:
        peak = process.attrs.get("peak_rss_bytes")
        rows.append(
            (
                str(process.pid),
                process.how,
                human_duration(process.end_ns - process.start_ns),
                human_bytes(peak) if isinstance(peak, int) else "",
                "" if process.exit_code is None else str(process.exit_code),
                " ".join(process.command),
            )
        )
    more = len(profile.processes) - len(rows)
    tail = [plain(f"and {count(more, 'further process', 'further processes')}", DIM)] if more > 0 else []
    return [*table(columns, rows), *tail]
