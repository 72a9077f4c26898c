"""Loading a SavedModel spent its time rebuilding Python objects and functions, not reading weights."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, pack_command, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "Loading a SavedModel goes into rebuilding its functions and objects"

_LEAST_NS = 500_000_000
_LEAST_SHARE = 0.3

_CODE = """\
import glowplug
model = glowplug.load("model.glow")  # after the pack below: no Python objects, one graph, mapped weights"""


def find(view: View) -> Iterator[Match]:
    """Compare function and object rebuilding with the whole of each SavedModel load."""
    for load in view.outermost(view.of_kind("load")):
        functions = view.outermost(view.inside(load, "saved_model_functions"))
        objects = view.outermost(view.inside(load, "saved_model_objects"))
        nested = [span for span in objects if view.enclosing(span, "saved_model_functions") is not None]
        parts = functions + [span for span in objects if span not in nested]
        parts = [span for span in parts if view.enclosing(span, "saved_model_objects") is None]
        cost_ns = total_ns(parts)
        if cost_ns < _LEAST_NS or cost_ns < _LEAST_SHARE * load.duration_ns:
            continue
        path = str(load.attrs.get("path", load.name))
        count = sum(int(span.attrs.get("count", 0)) for span in functions)
        yield Match(
            title=(
                f"{seconds(cost_ns)} of the {seconds(load.duration_ns)} load rebuilt {count} "
                "functions and their"
                f" objects{at(load.attrs.get('site'))}"
            ),
            evidence={
                "path": path,
                "load_ns": load.duration_ns,
                "functions_ns": total_ns(functions),
                "functions": count,
                "objects_ns": total_ns(objects),
                "objects": sum(int(span.attrs.get("count", 0)) for span in objects),
            },
            saves_ns=cost_ns,
            remedy=Remedy(
                text=(
                    "Pack the model and load the bundle. To stay with SavedModel, export only the "
                    "signatures that are"
                    " served instead of every layer's call functions."
                ),
                code=_CODE,
                command=pack_command(path),
            ),
            spans=ids([load, *parts]),
        )
