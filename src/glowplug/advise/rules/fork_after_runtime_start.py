"""The process forked after TensorFlow's runtime had started; the child can hang in its first operation."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, times
from glowplug.core.profile import Remedy, Span

SYMPTOM = "The process forks after TensorFlow has run an operation"

_CODE = """\
context = multiprocessing.get_context("spawn")  # before any pool or process is made
with context.Pool(4) as pool: ...
# or fork first, and use TensorFlow only in the children"""


def find(view: View) -> Iterator[Match]:
    """Report forks that copied a started runtime, by process."""
    groups: dict[int, list[Span]] = {}
    for span in view.of_kind("fork"):
        if span.attrs.get("runtime_ready"):
            groups.setdefault(span.pid, []).append(span)
    for spans in groups.values():
        site = spans[0].attrs.get("site")
        yield Match(
            title=(f"The process forked {times(len(spans))} after TensorFlow had started: a child can hang{at(site)}"),
            evidence={
                "forks": len(spans),
                "children": [span.attrs.get("child") for span in spans[:10]],
                "threads": max(int(span.attrs.get("threads", 0)) for span in spans),
                "how": str(spans[0].attrs.get("how", "")),
                "site": site,
            },
            remedy=Remedy(
                text=(
                    "Start workers with spawn, fork before the first operation, or take workers from "
                    "a standby, which"
                    " forks from a process that has imported TensorFlow and run nothing."
                ),
                code=_CODE,
                command="glowplug standby start",
            ),
            spans=ids(spans),
        )
