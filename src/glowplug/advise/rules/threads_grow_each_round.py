"""The number of threads rises from round to round: sessions or pools that nobody closes."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.growth import grows_steadily
from glowplug.advise.match import Match
from glowplug.advise.view import View
from glowplug.advise.wording import at
from glowplug.core.profile import Loop, Remedy

SYMPTOM = "Each round of a loop leaves threads behind"

_LEAST_ROUNDS = 5
_LEAST_PER_ROUND = 0.5

_CODE = """\
with tf.compat.v1.Session(graph=graph) as session:  # one session for all rounds, closed at the end
    for batch in batches:
        session.run(step, {x: batch})"""


def find(view: View) -> Iterator[Match]:
    """Report the loop of each process that leaves most threads behind."""
    growing: dict[int, list[Loop]] = {}
    for loop in view.profile.loops:
        if (
            len(loop.rounds) >= _LEAST_ROUNDS
            and loop.slopes.get("threads_per_round", 0.0) >= _LEAST_PER_ROUND
            and grows_steadily([each.threads for each in loop.rounds])
        ):
            growing.setdefault(loop.pid, []).append(loop)
    for loops in growing.values():
        loop = max(loops, key=lambda each: each.slopes["threads_per_round"])
        slope = loop.slopes["threads_per_round"]
        yield Match(
            title=f"{slope:.1f} threads stay behind in each of {len(loop.rounds)} rounds{at(loop.site)}",
            evidence={
                "site": loop.site,
                "call": loop.call,
                "rounds": len(loop.rounds),
                "threads_per_round": round(slope, 2),
                "threads_first": loop.rounds[0].threads,
                "threads_last": loop.rounds[-1].threads,
            },
            remedy=Remedy(
                text=(
                    "Keep one session for all rounds, or close each one; do not give every session "
                    "its own thread pools."
                ),
                code=_CODE,
            ),
        )
