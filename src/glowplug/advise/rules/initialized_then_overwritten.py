"""Variables were filled by their initialisers and then assigned by a load before any step read them."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import run_command, seconds, size
from glowplug.core.profile import Remedy, Span

SYMPTOM = "Variables are initialised, then overwritten by a load"

_CODE = """\
from glowplug import train
with train.skip_init():  # no random numbers, no memory touched
    model = build()
    train.load_weights(model, path)  # inside: a variable that is still unset at the end is an error"""


def find(view: View) -> Iterator[Match]:
    """Add up the initialisers whose result nobody read, by process."""
    groups: dict[int, list[Span]] = {}
    for span in view.of_kind("variable"):
        if span.attrs.get("overwritten"):
            groups.setdefault(span.pid, []).append(span)
    for spans in groups.values():
        cost_ns = sum(int(span.attrs.get("initializer_ns", 0)) for span in spans)
        if cost_ns < WORTH_NS:
            continue
        wasted_bytes = sum(int(span.attrs.get("bytes", 0)) for span in spans)
        slowest = sorted(spans, key=lambda span: -int(span.attrs.get("initializer_ns", 0)))
        yield Match(
            title=(f"{seconds(cost_ns)} went into initial values of {len(spans)} variables that a load then overwrote"),
            evidence={
                "variables": len(spans),
                "initializer_ns": cost_ns,
                "bytes": wasted_bytes,
                "size": size(wasted_bytes),
                "slowest": [
                    {
                        "name": str(span.attrs.get("name", span.name)),
                        "initializer": str(span.attrs.get("initializer", "")),
                        "initializer_ns": int(span.attrs.get("initializer_ns", 0)),
                    }
                    for span in slowest[:5]
                ],
            },
            saves_ns=cost_ns,
            remedy=Remedy(
                text="Build the model without running initialisers, then load the weights.",
                code=_CODE,
                command=run_command(view.profile),
            ),
            spans=ids(slowest),
        )
