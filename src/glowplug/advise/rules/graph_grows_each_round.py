"""A loop adds operations to the graph in every round, so every round is slower than the one before."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.growth import excess_ns
from glowplug.advise.match import Match
from glowplug.advise.view import View
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Loop, Remedy

SYMPTOM = "A loop adds operations to the graph in every round"

_LEAST_ROUNDS = 5

_CODE = """\
with tf.Graph().as_default() as graph:
    ...                                        # every operation, once
    init = tf.compat.v1.global_variables_initializer()
    graph.finalize()                           # from here on a new operation is an error
    with tf.compat.v1.Session() as session:
        for trial in range(trials):
            session.run(init)"""


def find(view: View) -> Iterator[Match]:
    """Report the loop of each process that lost most to a growing graph."""
    growing: dict[int, list[Loop]] = {}
    for loop in view.loops("Session", "session_run", "variables_initializer", "saver", "model", "load"):
        if len(loop.rounds) >= _LEAST_ROUNDS and loop.slopes.get("graph_ops_per_round", 0.0) >= 1.0:
            growing.setdefault(loop.pid, []).append(loop)
    for loops in growing.values():
        loop = max(loops, key=lambda each: (excess_ns(each), sum(each.adders.values())))
        adders = dict(sorted(loop.adders.items(), key=lambda item: -item[1])[:5])
        first, last = loop.rounds[0], loop.rounds[-1]
        per_round = loop.slopes["graph_ops_per_round"]
        guilty = next(iter(adders), loop.site)
        yield Match(
            title=(
                f"The graph grows by {per_round:.0f} operations in each of {len(loop.rounds)} rounds; "
                f"most are added{at(guilty)}"
            ),
            evidence={
                "loop": loop.site,
                "call": loop.call,
                "rounds": len(loop.rounds),
                "graph_ops_first": first.graph_ops,
                "graph_ops_last": last.graph_ops,
                "graph_ops_per_round": round(per_round, 1),
                "ns_per_round": round(loop.slopes.get("ns_per_round", 0.0)),
                "second_round_ns": loop.rounds[1].duration_ns,
                "slowest_round_ns": max(each.duration_ns for each in loop.rounds),
                "slower": f"{seconds(loop.slopes.get('ns_per_round', 0.0))} a round",
                "added_at": adders,
            },
            saves_ns=excess_ns(loop),
            remedy=Remedy(
                text=(
                    "Create operations before the loop and only run them inside it; finalize the "
                    "graph so that a stray"
                    " operation is an error. To start over with fresh weights, run the initialiser "
                    "again, or use"
                    " train.reinitialize."
                ),
                code=_CODE,
            ),
        )
