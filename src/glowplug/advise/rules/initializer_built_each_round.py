"""A loop calls `global_variables_initializer()` in every round and so builds a new initialiser each time."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.growth import excess_ns
from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "A loop builds a new variables initialiser in every round"

# What drawing initial values costs at most; the rest of a run is the price of a new initialiser.
_NS_PER_BYTE = 4

_CODE = """\
init = tf.compat.v1.global_variables_initializer()  # once, before the loop
for trial in range(trials):
    session.run(init)                               # the same operation, fresh values"""


def find(view: View) -> Iterator[Match]:
    """Report each loop that builds initialisers, with what building and the growing graph cost."""
    drawing_ns = _NS_PER_BYTE * sum(int(span.attrs.get("bytes", 0)) for span in view.of_kind("variable"))
    for loop in view.loops("variables_initializer"):
        spans = [
            span
            for span in view.of_kind("variables_initializer")
            if span.pid == loop.pid and span.attrs.get("site", loop.site) == loop.site
        ]
        built_ns = total_ns(spans[1:])
        runs = [
            span
            for span in view.of_kind("initialize")
            if span.pid == loop.pid and span.start_ns >= loop.rounds[1].start_ns
        ][: len(loop.rounds) - 1]
        cold_ns = max(0, total_ns(runs) - len(runs) * drawing_ns)
        saves_ns = max(built_ns + cold_ns, excess_ns(loop))
        if saves_ns < WORTH_NS:
            continue
        yield Match(
            title=(
                f"global_variables_initializer() was called in {len(loop.rounds)} rounds{at(loop.site)}:"
                f" {seconds(saves_ns)}"
            ),
            evidence={
                "site": loop.site,
                "rounds": len(loop.rounds),
                "building_ns": built_ns,
                "cold_runs_ns": cold_ns,
                "slower_rounds_ns": excess_ns(loop),
                "graph_ops_per_round": round(loop.slopes.get("graph_ops_per_round", 0.0), 1),
                "ns_per_round": round(loop.slopes.get("ns_per_round", 0.0)),
            },
            saves_ns=saves_ns,
            remedy=Remedy(text="Build the initialiser once, before the loop, and run it in every round.", code=_CODE),
            spans=ids(spans),
        )
