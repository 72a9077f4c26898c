"""A loop makes a new `Saver`, and with it new save and restore operations, in every round."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.growth import excess_ns
from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "A loop makes a new Saver for every save or restore"

# What reading a checkpoint costs at most; the rest of a restore is the price of new operations.
_NS_PER_BYTE = 1

_CODE = """\
saver = tf.compat.v1.train.Saver()  # once, before the loop
for path in checkpoints:
    saver.restore(session, path)"""


def find(view: View) -> Iterator[Match]:
    """Report each loop that makes savers, with what making them and the growing graph cost."""
    for loop in view.loops("saver"):
        spans = [
            span
            for span in view.of_kind("saver")
            if span.pid == loop.pid and span.attrs.get("site", loop.site) == loop.site
        ]
        built_ns = total_ns(spans[1:])
        cold_ns = sum(
            max(0, load.duration_ns - _NS_PER_BYTE * int(load.attrs.get("bytes", 0)))
            for load in view.of_kind("load")
            if load.pid == loop.pid
            and load.attrs.get("format") == "tf1_checkpoint"
            and load.start_ns >= loop.rounds[1].start_ns
        )
        saves_ns = max(built_ns + cold_ns, excess_ns(loop))
        if saves_ns < WORTH_NS:
            continue
        yield Match(
            title=f"{len(loop.rounds)} Savers were made{at(loop.site)}: {seconds(saves_ns)}",
            evidence={
                "site": loop.site,
                "rounds": len(loop.rounds),
                "building_ns": built_ns,
                "cold_restores_ns": cold_ns,
                "slower_rounds_ns": excess_ns(loop),
                "graph_ops_per_round": round(loop.slopes.get("graph_ops_per_round", 0.0), 1),
            },
            saves_ns=saves_ns,
            remedy=Remedy(text="Make one Saver before the loop and reuse it.", code=_CODE),
            spans=ids(spans),
        )
