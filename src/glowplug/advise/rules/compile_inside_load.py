"""Loading a Keras model also compiled it and rebuilt its optimizer, and nothing was trained afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "A model that only predicts is compiled while it is loaded"

_CODE = """\
model = keras.models.load_model(path, compile=False)"""


def find(view: View) -> Iterator[Match]:
    """Report loads that compiled a model which neither trained nor evaluated."""
    trained = {
        (span.pid, span.attrs.get("object"))
        for span in view.of_kind("step", "steps")
        if span.attrs.get("mode") in ("train", "evaluate")
    }
    for load in view.outermost(view.of_kind("load")):
        compiled = [span for span in view.inside(load, "compile") if span.attrs.get("in_load", True)]
        if not compiled or any((load.pid, span.attrs.get("object")) in trained for span in compiled):
            continue
        built = [span for span in view.inside(load, "optimizer_build") if view.enclosing(span, "compile") is None]
        parts = compiled + built
        cost_ns = total_ns(parts)
        if cost_ns < WORTH_NS:
            continue
        yield Match(
            title=(f"The load compiled a model that was never trained: {seconds(cost_ns)}{at(load.attrs.get('site'))}"),
            evidence={
                "path": str(load.attrs.get("path", load.name)),
                "load_ns": load.duration_ns,
                "compile_ns": cost_ns,
                "optimizer": compiled[0].attrs.get("optimizer"),
                "optimizer_variables": sum(int(span.attrs.get("variables", 0)) for span in built),
            },
            saves_ns=cost_ns,
            remedy=Remedy(text="Load with compile=False where the model only predicts.", code=_CODE),
            spans=ids([load, *parts]),
        )
