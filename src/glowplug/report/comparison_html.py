"""A comparison as one HTML file: no network, no script, opens from disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glowplug.core.clock import human_bytes, human_duration
from glowplug.core.profile import Finding, Profile
from glowplug.core.version import VERSION

from .compare import UNKNOWN, Change, Comparison, Count
from .pages import make_environment, policy_digest, read_asset
from .phases import PHASE_STYLES, phase_style
from .wording import count, signed, visible

_BAR = 200


def render_comparison(comparison: Comparison, before: Profile, after: Profile) -> bytes:
    """Return the page for a comparison and the profiles that it was made of."""
    css = read_asset("report.css") + read_asset("comparison.css")
    css += "".join(f".p-{style.name}{{--phase:{style.color}}}\n" for style in PHASE_STYLES)
    largest_ns = max([1, *(max(change.before_ns, change.after_ns) for change in comparison.phases)])
    total = comparison.total
    phases = [_row(change, phase_style(change.name).label, largest_ns) for change in comparison.phases]
    whole = _row(total, "total", max(1, total.before_ns, total.after_ns))
    page = (
        make_environment()
        .get_template("comparison.html.j2")
        .render(
            title=visible(" ".join(after.command)) or "profile",
            headline=headline(total),
            runs=f"{count(comparison.before_runs, 'run')} and {count(comparison.after_runs, 'run')}, medians",
            rows=[*phases, whole],
            total=whole,
            counts=[_count(each) for each in comparison.counts],
            changes=list(_changes(before, after)),
            notes=[visible(note) for note in comparison.notes],
            version=VERSION,
            css=css,
            css_digest=policy_digest(css),
        )
    )
    return page.encode("utf-8", "backslashreplace")


def headline(total: Change) -> str:
    """Say in a few words what became of the whole."""
    if total.verdict not in ("faster", "slower"):
        return "about the same" if total.verdict != UNKNOWN else signed(human_duration(total.delta_ns), total.delta_ns)
    return f"{human_duration(abs(total.delta_ns))} {total.verdict}"


def _row(change: Change, label: str, largest_ns: int) -> dict[str, Any]:
    return {
        "name": change.name,
        "label": visible(label),
        "before": human_duration(change.before_ns),
        "after": human_duration(change.after_ns),
        "change": signed(human_duration(change.delta_ns), change.delta_ns),
        "noise": "" if change.noise_ns is None else human_duration(change.noise_ns),
        "verdict": "not known" if change.verdict == UNKNOWN else change.verdict,
        "css": change.verdict,
        "before_width": round(_BAR * change.before_ns / largest_ns, 1),
        "after_width": round(_BAR * change.after_ns / largest_ns, 1),
    }


def _count(each: Count) -> dict[str, str]:
    show = human_bytes if each.name == "peak memory" else "{:,}".format
    change = each.after - each.before
    return {
        "name": each.name,
        "before": show(each.before),
        "after": show(each.after),
        "change": signed(show(change), change),
    }


def _changes(before: Profile, after: Profile) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield which findings are gone, which are new, and which are there on both sides, by their rules."""
    old = {finding.rule: finding for finding in before.findings}
    new = {finding.rule: finding for finding in after.findings}
    for heading, found in (
        ("Gone", [old[rule] for rule in old if rule not in new]),
        ("New", [new[rule] for rule in new if rule not in old]),
        ("Still there", [new[rule] for rule in new if rule in old]),
    ):
        if found:
            yield heading, [_finding(finding) for finding in found]


def _finding(finding: Finding) -> dict[str, str]:
    parts = [human_duration(finding.saves_ns)] if finding.saves_ns > 0 else []
    parts += [human_bytes(finding.saves_bytes)] if finding.saves_bytes > 0 else []
    return {"title": visible(finding.title), "saves": " and ".join(parts)}
