"""A SavedModel stores variables more than once, as Keras' `model.export()` does."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import pack_command, size
from glowplug.core.profile import Remedy, Span

SYMPTOM = "A model stores every weight twice"

_LEAST_BYTES = 1 << 20
_LEAST_SHARE = 0.1

_CODE = """\
import glowplug
model = glowplug.load("model.glow")  # a bundle stores each tensor once"""


def find(view: View) -> Iterator[Match]:
    """Report loads of models with duplicated variables."""
    seen: set[str] = set()
    for load in view.outermost(view.of_kind("load")):
        twice = int(load.attrs.get("duplicate_bytes", 0))
        stored = int(load.attrs.get("stored_bytes", load.attrs.get("bytes", 0)))
        path = str(load.attrs.get("path", load.name))
        if path in seen or twice < _LEAST_BYTES or twice < _LEAST_SHARE * stored:
            continue
        seen.add(path)
        moving_ns = _moving_ns(view, load)
        yield Match(
            title=f"{path} stores {size(twice)} of its {size(stored)} of weights a second time",
            evidence={
                "path": path,
                "stored_bytes": stored,
                "duplicate_bytes": twice,
                "weights_ns": moving_ns,
            },
            saves_ns=round(moving_ns * twice / max(stored, twice)),
            saves_bytes=twice,
            remedy=Remedy(
                text="Pack the model: a bundle stores and maps each tensor once.",
                code=_CODE,
                command=pack_command(path),
            ),
            spans=ids([load]),
        )


def _moving_ns(view: View, load: Span) -> int:
    """Return the time a load spent on weights; reading can lie within assigning, and counts once."""
    kinds = ("read", "decode", "assign")
    return total_ns(span for span in view.inside(load, *kinds) if view.enclosing(span, *kinds) is None)
