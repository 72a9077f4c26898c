"""Keras traced the same function anew for each of several models of one class."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.retraces import cost_ns
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, seconds, short
from glowplug.core.profile import Remedy, Span

SYMPTOM = "Each new model of the same class is traced from the start"

_LEAST_MODELS = 3

_CODE = """\
from glowplug import train
model = build()                            # once, before the loop
for trial in range(trials):
    train.reinitialize(model, seed=trial)  # new weights and optimizer state, same graph
    model.fit(x, y)"""


def find(view: View) -> Iterator[Match]:
    """Group Keras' own traces by function and owner class and count the owners."""
    groups: dict[tuple[int, str, str], list[Span]] = {}
    for span in view.outermost(view.of_kind("trace")):
        if span.attrs.get("keras") and "owner_object" in span.attrs:
            owner = str(span.attrs.get("owner", ""))
            groups.setdefault((span.pid, short(span.attrs.get("function", span.name)), owner), []).append(span)
    for (_, function, owner), spans in groups.items():
        owners = {span.attrs["owner_object"] for span in spans}
        if len(owners) < _LEAST_MODELS:
            continue
        again = [span for span in spans if span.attrs["owner_object"] != spans[0].attrs["owner_object"]]
        cost = cost_ns(view, again)
        if cost < WORTH_NS:
            continue
        yield Match(
            title=(
                f"{function} was traced for {len(owners)} models of class {owner or 'unknown'}:"
                f" {seconds(cost)} after the first{at(again[0].attrs.get('site'))}"
            ),
            evidence={
                "function": function,
                "class": owner,
                "models": len(owners),
                "traces": len(spans),
                "retrace_ns": cost,
                "site": again[0].attrs.get("site"),
            },
            saves_ns=cost,
            remedy=Remedy(
                text=(
                    "Build and compile one model and give it new weights for each trial. Where the "
                    "architecture really"
                    " changes, run each trial in its own process."
                ),
                code=_CODE,
            ),
            spans=ids(again),
        )
