"""Initial values took long to draw: an orthogonal matrix, a truncated normal over a huge table."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, seconds, size
from glowplug.core.profile import Remedy, Span

SYMPTOM = "An initialiser dominates the building of the model"

_LEAST_NS = 300_000_000
# What a fast initialiser fills on one core, in bytes a nanosecond (that is, GB a second). Deliberately low: a
# saving is what remains above it.
_FAST_BYTES_PER_NS = 0.5
# Making any variable costs something, and inside a trace much more; that is not the initialiser's doing.
_LEAST_NS_PER_VARIABLE = 50_000_000

_CODE = """\
from glowplug import train
layer = keras.layers.Dense(units, kernel_initializer=train.initializers.GlorotUniform(seed=1))
# for a table that training fills anyway: embeddings_initializer="zeros" or "uniform" """


def find(view: View) -> Iterator[Match]:
    """Group variables by initialiser and compare each group with a fast fill of the same bytes."""
    groups: dict[tuple[int, str], list[Span]] = {}
    for span in view.of_kind("variable"):
        if _is_slow(span) and not span.attrs.get("overwritten"):
            groups.setdefault((span.pid, str(span.attrs["initializer"])), []).append(span)
    for (_, initializer), spans in groups.items():
        spent_ns = sum(int(span.attrs.get("initializer_ns", 0)) for span in spans)
        filled_bytes = sum(int(span.attrs.get("bytes", 0)) for span in spans)
        saves_ns = round(spent_ns - filled_bytes / _FAST_BYTES_PER_NS)
        if saves_ns < _LEAST_NS:
            continue
        slowest = max(spans, key=lambda span: int(span.attrs.get("initializer_ns", 0)))
        name = str(slowest.attrs.get("name", slowest.name))
        yield Match(
            title=(
                f"{initializer} took {seconds(spent_ns)} to fill {size(filled_bytes)} in {len(spans)} "
                "variables"
                f"{at(slowest.attrs.get('site'))}"
            ),
            evidence={
                "initializer": initializer,
                "initializer_ns": spent_ns,
                "variables": len(spans),
                "bytes": filled_bytes,
                "slowest": name,
                "slowest_shape": slowest.attrs.get("shape"),
                "slowest_ns": int(slowest.attrs.get("initializer_ns", 0)),
            },
            saves_ns=saves_ns,
            remedy=Remedy(
                text=(
                    "Use a fast initialiser of the same distribution, a cheaper distribution, or "
                    "zeros where the values"
                    " are loaded or learned anyway."
                ),
                code=_CODE,
            ),
            spans=ids(sorted(spans, key=lambda span: -int(span.attrs.get("initializer_ns", 0)))),
        )


def _is_slow(span: Span) -> bool:
    """Say whether a variable's values took far longer than its bytes explain."""
    if span.attrs.get("created_in", "eager") != "eager" or span.attrs.get("initializer", "tensor") == "tensor":
        return False
    fast_ns = int(span.attrs.get("bytes", 0)) / _FAST_BYTES_PER_NS
    return int(span.attrs.get("initializer_ns", 0)) - fast_ns >= _LEAST_NS_PER_VARIABLE
