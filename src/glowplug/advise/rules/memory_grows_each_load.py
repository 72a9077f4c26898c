"""A loop loads a model in every round and the process grows with each."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.growth import grown_bytes, grows_steadily
from glowplug.advise.match import WORTH_BYTES, Match
from glowplug.advise.view import View
from glowplug.advise.wording import at, size
from glowplug.core.profile import Remedy

SYMPTOM = "Memory grows with every model that a loop loads"

_LEAST_ROUNDS = 5
_LEAST_BYTES_PER_ROUND = 1 << 20

_CODE = """\
import glowplug
with glowplug.load("model.glow") as model:  # close() unmaps the weights and frees the graph
    model(x)"""


def find(view: View) -> Iterator[Match]:
    """Report loops of loads whose memory rises to the end."""
    for loop in view.loops("load"):
        slope = loop.slopes.get("rss_bytes_per_round", 0.0)
        if (
            len(loop.rounds) < _LEAST_ROUNDS
            or slope < _LEAST_BYTES_PER_ROUND
            or grown_bytes(loop) < WORTH_BYTES
            or not grows_steadily([each.rss_bytes for each in loop.rounds])
        ):
            continue
        yield Match(
            title=f"Memory grows by {size(slope)} in each of {len(loop.rounds)} loads{at(loop.site)}",
            evidence={
                "site": loop.site,
                "rounds": len(loop.rounds),
                "rss_bytes_per_round": round(slope),
                "rss_bytes_first": loop.rounds[0].rss_bytes,
                "rss_bytes_last": loop.rounds[-1].rss_bytes,
            },
            saves_bytes=grown_bytes(loop),
            remedy=Remedy(
                text=(
                    "Load each model once and keep it. To change models in a long-lived process, "
                    "load bundles and close"
                    " them, or give each model a process."
                ),
                code=_CODE,
            ),
        )
