"""A profile as one HTML file: no network, no framework, opens from disk.

The page forbids itself everything but its own style and script (a content security policy by digest), so a hostile
name in a profile stays text even where an escape were missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from glowplug.core.clock import human_bytes, human_duration
from glowplug.core.profile import Finding, Profile
from glowplug.core.version import VERSION

from .calls import DEEPEST, call_rows, calls_hint
from .closing import closing_text
from .document import page_data
from .pages import make_environment, policy_digest, read_asset
from .phases import PHASE_STYLES
from .wording import count, evidence_items, percent, quantity, quantity_label, visible

SCRIPTS = (
    "dom.js",
    "data.js",
    "timeline.js",
    "explore.js",
    "tables.js",
    "imports.js",
    "charts.js",
    "page.js",
)
DOCUMENTATION = "https://github.com/glowplug/glowplug/blob/main/docs/"


def render_html(profile: Profile) -> bytes:
    """Return the page. ASCII data inside, so that names that are not valid Unicode survive as escapes."""
    environment = make_environment()
    css = read_asset("report.css") + "".join(_phase_rules()) + "".join(_depth_rules())
    script = "(() => {\n'use strict';\n" + "\n".join(read_asset(name) for name in SCRIPTS) + "\n})();\n"
    page = environment.get_template("page.html.j2").render(
        title=visible(" ".join(profile.command)) or "profile",
        start=human_duration(profile.cold_start.ns),
        until=profile.cold_start.until,
        wall=human_duration(profile.wall_ns),
        ended="exit 0" if profile.exit_code == 0 else _ended(profile.exit_code),
        failed=profile.exit_code != 0,
        runs=_runs(profile),
        facts=_facts(profile),
        phases=list(_phases(profile)),
        findings=[_finding(finding) for finding in profile.findings],
        closing=visible(closing_text(profile)),
        calls=call_rows(profile),
        calls_hint=calls_hint(profile),
        processes=_processes(profile),
        notes=[visible(note) for note in profile.notes],
        environment=_environment_rows(profile),
        version=VERSION,
        css=css,
        css_digest=policy_digest(css),
        script=script,
        script_digest=policy_digest(script),
        data=page_data(profile),
    )
    return page.encode("utf-8", "backslashreplace")


def _phase_rules() -> Iterator[str]:
    for style in PHASE_STYLES:
        yield f".p-{style.name}{{--phase:{style.color}}}\n"


def _depth_rules() -> Iterator[str]:
    """The page's policy allows no style on an element: a class for each level of the call tree."""
    for depth in range(DEEPEST + 1):
        yield f".calls .d{depth}{{padding-left:{14 + 18 * depth}px}}\n"


def _ended(exit_code: int) -> str:
    return f"exit {exit_code}" if exit_code > 0 else f"killed by signal {-exit_code}"


def _runs(profile: Profile) -> str:
    if profile.runs is None or len(profile.runs.wall_ns) < 2:
        return ""
    walls = profile.runs.wall_ns
    return f"median of {len(walls)} runs, {human_duration(min(walls))} to {human_duration(max(walls))}"


def _facts(profile: Profile) -> list[tuple[str, str]]:
    """Return the few figures at the top of the page, those that are known."""
    environment = profile.environment
    facts: list[tuple[str, str]] = []
    for label, key in (
        ("peak memory", "peak_rss_bytes"),
        ("CPU time", "cpu_ns"),
        ("read from disk", "read_bytes"),
    ):
        if isinstance(environment.get(key), int):
            facts.append((label, quantity(key, environment[key])))
    if isinstance(environment.get("modules"), int):
        facts.append(("modules imported", f"{environment['modules']:,}"))
    traces = sum(1 for _ in profile.of_kind("trace"))
    if traces:
        facts.append(("traces", f"{traces:,}"))
    if len(profile.processes) > 1:
        facts.append(("processes", f"{len(profile.processes):,}"))
    return facts


def _phases(profile: Profile) -> Iterator[dict[str, Any]]:
    """Yield every phase that took time, with its place in a bar 1000 units wide."""
    total = sum(max(0, ns) for ns in profile.phases.values()) or 1
    at = 0.0
    for style in PHASE_STYLES:
        ns = profile.phases.get(style.name, 0)
        always = style.name in ("user_code", "unaccounted")
        if ns <= 0 and not always:
            continue
        width = 1000 * max(0, ns) / total
        spread = profile.runs.phases.get(style.name, ()) if profile.runs is not None else ()
        yield {
            "name": style.name,
            "label": style.label,
            "color": style.color,
            "time": human_duration(ns),
            "share": percent(ns, profile.wall_ns),
            "spread": f"{human_duration(min(spread))} to {human_duration(max(spread))}" if len(spread) > 1 else "",
            "x": round(at, 2),
            "width": round(width, 2),
        }
        at += width


def _finding(finding: Finding) -> dict[str, Any]:
    remedy = finding.remedy
    doc = remedy.doc.removeprefix("docs/")
    parts = [human_duration(finding.saves_ns)] if finding.saves_ns > 0 else []
    parts += [human_bytes(finding.saves_bytes)] if finding.saves_bytes > 0 else []
    return {
        "rule": visible(finding.rule),
        "title": visible(finding.title),
        "saves": " and ".join(parts),
        "evidence": evidence_items(finding.evidence),
        "text": remedy.text,
        "code": remedy.code,
        "command": remedy.command,
        "doc": DOCUMENTATION + doc if re.fullmatch(r"[\w-]+(/[\w.-]+)*", doc, re.ASCII) else "",
        "spans": len(finding.spans),
    }


def _processes(profile: Profile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for process in profile.processes[:200]:
        peak = process.attrs.get("peak_rss_bytes")
        rows.append(
            (
                str(process.pid),
                str(process.parent_pid),
                visible(process.how),
                human_duration(process.start_ns),
                human_duration(process.end_ns - process.start_ns),
                human_bytes(peak) if isinstance(peak, int) else "",
                "" if process.exit_code is None else str(process.exit_code),
                visible(" ".join(process.command)),
            )
        )
    return rows


def _environment_rows(profile: Profile) -> list[tuple[str, str]]:
    rows = []
    for name, value in profile.environment.items():
        if name in ("tensorflow_importer", "keras_importer"):
            continue  # with the imports
        long = name in ("tensorflow_metrics", "graph_ops_added") and isinstance(value, dict)
        text = count(len(value), "entry", "entries") if long else quantity(str(name), value)
        rows.append((quantity_label(visible(str(name))), text))
    return rows
