"""A loop builds, compiles or fits a new model in every round and the process grows with each."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.growth import grown_bytes, grows_steadily
from glowplug.advise.match import WORTH_BYTES, Match
from glowplug.advise.view import View
from glowplug.advise.wording import at, size
from glowplug.core.profile import Loop, Remedy

SYMPTOM = "Memory grows with every model that a loop builds"

_LEAST_ROUNDS = 5
_LEAST_BYTES_PER_ROUND = 1 << 20
_PREFERENCE = ("model", "compile", "fit")

_CODE = """\
from glowplug import train
model = build()
for trial in range(trials):
    train.reinitialize(model, seed=trial)
    model.fit(x, y)
# Where the architecture changes from trial to trial, give each trial its own process:
context = multiprocessing.get_context("spawn")
with context.Pool(1, maxtasksperchild=1) as pool:
    score = pool.apply(run_trial, (parameters,))"""


def find(view: View) -> Iterator[Match]:
    """Report the loop of each process whose builds added most memory."""
    growing: dict[int, list[Loop]] = {}
    for loop in view.loops(*_PREFERENCE):
        if (
            len(loop.rounds) >= _LEAST_ROUNDS
            and loop.slopes.get("rss_bytes_per_round", 0.0) >= _LEAST_BYTES_PER_ROUND
            and grown_bytes(loop) >= WORTH_BYTES
            and grows_steadily([each.rss_bytes for each in loop.rounds])
        ):
            growing.setdefault(loop.pid, []).append(loop)
    for loops in growing.values():
        loop = min(loops, key=lambda each: (_PREFERENCE.index(each.call), -grown_bytes(each)))
        slope = loop.slopes["rss_bytes_per_round"]
        yield Match(
            title=(
                f"Memory grows by {size(slope)} in each of {len(loop.rounds)} rounds that"
                f" {'fit' if loop.call == 'fit' else 'build'} a model{at(loop.site)}"
            ),
            evidence={
                "site": loop.site,
                "call": loop.call,
                "rounds": len(loop.rounds),
                "rss_bytes_per_round": round(slope),
                "rss_bytes_first": loop.rounds[0].rss_bytes,
                "rss_bytes_last": loop.rounds[-1].rss_bytes,
                "ns_per_round": round(loop.slopes.get("ns_per_round", 0.0)),
            },
            saves_bytes=grown_bytes(loop),
            remedy=Remedy(
                text=(
                    "Build one model and reinitialise it for each trial. clear_session() frees only "
                    "a part. Where the"
                    " architecture changes, run each trial in a process of its own."
                ),
                code=_CODE,
            ),
        )
