"""A large array was put into the graph as a constant, where it is copied several times over."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_BYTES, Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, size
from glowplug.core.profile import Remedy, Span

SYMPTOM = "A large array is a constant of the graph"

# A session copies a constant when it takes over the graph, in Grappler, and when it runs.
_COPIES_NS_PER_BYTE = 20

_CODE = """\
values = np.load("table.npy", mmap_mode="r")  # TF2: tf.Variable(values, trainable=False), outside of functions
fed = tf.compat.v1.placeholder(tf.float32, values.shape)  # TF1: feed them once
table = tf.compat.v1.get_variable("table", initializer=fed)
session.run(table.initializer, {fed: values})"""


def find(view: View) -> Iterator[Match]:
    """Add up the large constants of each process."""
    groups: dict[int, list[Span]] = {}
    for span in view.of_kind("constant"):
        groups.setdefault(span.pid, []).append(span)
    for spans in groups.values():
        held_bytes = sum(int(span.attrs.get("bytes", 0)) for span in spans)
        if held_bytes < WORTH_BYTES:
            continue
        copied_ns = min(_following_ns(view, spans[0]), _COPIES_NS_PER_BYTE * held_bytes)
        largest = max(spans, key=lambda span: int(span.attrs.get("bytes", 0)))
        yield Match(
            title=f"{size(held_bytes)} of constants are inside graphs{at(largest.attrs.get('site'))}",
            evidence={
                "constants": len(spans),
                "bytes": held_bytes,
                "making_ns": total_ns(spans),
                "copying_ns": copied_ns,
                "largest": largest.name,
                "largest_bytes": int(largest.attrs.get("bytes", 0)),
                "largest_shape": largest.attrs.get("shape"),
                "feeds_initializer": any(span.attrs.get("feeds_initializer") for span in spans),
                "site": largest.attrs.get("site"),
            },
            saves_ns=total_ns(spans) + copied_ns,
            saves_bytes=held_bytes,
            remedy=Remedy(
                text=(
                    "Keep large arrays out of graphs: hold them in variables that are loaded from a "
                    "file or fed once."
                    " A graph of more than 2 GB cannot be stored at all."
                ),
                code=_CODE,
            ),
            spans=ids(spans),
        )


def _following_ns(view: View, constant: Span) -> int:
    """Return the initialiser runs and graph optimisations that came after a constant in its process."""
    kinds = ("initialize", "graph_optimization")
    return total_ns(
        span
        for span in view.of_kind(*kinds)
        if span.pid == constant.pid and span.start_ns >= constant.start_ns and view.enclosing(span, *kinds) is None
    )
