"""The same model was loaded several times by one process."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, pack_command, seconds, times
from glowplug.core.profile import Remedy, Span

SYMPTOM = "One process loads the same model again and again"

_LEAST_LOADS = 3
# Weights alone are loaded again for good reasons: the best epoch, a new checkpoint under the same name.
_MODELS = ("saved_model", "keras", "h5")

_CODE = """\
model = keras.models.load_model(path)  # once, at module level or in the server's start-up
def handle(request):
    return model(request)"""


def find(view: View) -> Iterator[Match]:
    """Group whole-model loads by path and process."""
    groups: dict[tuple[int, str], list[Span]] = {}
    for span in view.outermost(view.of_kind("load")):
        if span.attrs.get("format") in _MODELS:
            groups.setdefault((span.pid, str(span.attrs.get("path", span.name))), []).append(span)
    for (_, path), spans in groups.items():
        cost_ns = total_ns(spans[1:])
        if len(spans) < _LEAST_LOADS or cost_ns < WORTH_NS:
            continue
        yield Match(
            title=(
                f"{path} was loaded {times(len(spans))}{at(spans[1].attrs.get('site'))}:"
                f" {seconds(cost_ns)} after the first"
            ),
            evidence={
                "path": path,
                "loads": len(spans),
                "first_load_ns": spans[0].duration_ns,
                "later_loads_ns": cost_ns,
                "site": spans[1].attrs.get("site"),
            },
            saves_ns=cost_ns,
            remedy=Remedy(text="Load the model once and keep it.", code=_CODE, command=pack_command(path)),
            spans=ids(spans),
        )
