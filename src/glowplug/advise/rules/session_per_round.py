"""A loop opens a new session in every round; each one places, optimises and compiles the graph again."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Loop, Remedy, Span

SYMPTOM = "A loop opens a new session in every round"

_CODE = """\
session = tf.compat.v1.Session(graph=graph)  # once, at module level
def handle(request):
    return session.run(output, {x: request})"""


def find(view: View) -> Iterator[Match]:
    """Report loops of sessions, with what opening them and their first runs cost."""
    runs: dict[tuple[int, object], list[Span]] = {}
    for run in view.of_kind("step", "initialize"):
        if run.attrs.get("mode") == "session_run":
            runs.setdefault((run.pid, run.attrs.get("object")), []).append(run)
    for loop in view.loops("Session"):
        opened = [
            span for span in view.of_kind("session") if span.pid == loop.pid and span.attrs.get("site") == loop.site
        ]
        spans = opened[1:]
        cold = [
            part
            for span in spans
            for run in runs.get((span.pid, span.attrs.get("object")), ())
            for part in view.outermost(view.inside(run, "graph_optimization", "instantiate", "xla_compile"))
        ]
        saves_ns = total_ns(spans) + total_ns(cold)
        if saves_ns < WORTH_NS:
            continue
        yield _match(loop, spans, cold, saves_ns)


def _match(loop: Loop, spans: list[Span], cold: list[Span], saves_ns: int) -> Match:
    return Match(
        title=f"{len(loop.rounds)} sessions were opened{at(loop.site)}: {seconds(saves_ns)} after the first",
        evidence={
            "site": loop.site,
            "rounds": len(loop.rounds),
            "opening_ns": total_ns(spans),
            "first_run_overhead_ns": total_ns(cold),
            "graph_ops": spans[-1].attrs.get("graph_ops") if spans else None,
        },
        saves_ns=saves_ns,
        remedy=Remedy(
            text="Open one session outside the loop or the request handler, and run in it every time.",
            code=_CODE,
        ),
        spans=ids(spans),
    )
