"""XLA compiled longer than all later steps together took, so it cannot have paid for itself."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.steps import steps_by_function
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import seconds
from glowplug.core.profile import Remedy, Span

SYMPTOM = "XLA compiles for longer than this run can win back"

_LEAST_NS = 1_000_000_000

_CODE = """\
model.compile(optimizer, loss, jit_compile=False)  # for short runs; "auto" may choose XLA
# or drop jit_compile=True from @tf.function"""


def find(view: View) -> Iterator[Match]:
    """Compare compilation with the time of all steps after the first, by process."""
    groups: dict[int, list[Span]] = {}
    for span in view.outermost(view.of_kind("xla_compile")):
        groups.setdefault(span.pid, []).append(span)
    steps = steps_by_function(view)
    for pid, spans in groups.items():
        compile_ns = total_ns(spans)
        later_ns = sum(each.later_ns for each in steps if each.pid == pid)
        if compile_ns < _LEAST_NS or compile_ns <= later_ns:
            continue
        yield Match(
            title=(f"XLA compiled for {seconds(compile_ns)}; all later steps together took {seconds(later_ns)}"),
            evidence={
                "xla_compile_ns": compile_ns,
                "compilations": sum(int(span.attrs.get("compilations", 1)) for span in spans),
                "later_steps_ns": later_ns,
                "steps": sum(each.count for each in steps if each.pid == pid),
            },
            saves_ns=compile_ns - later_ns,
            remedy=Remedy(text="Switch XLA off for short runs.", code=_CODE),
            spans=ids(spans),
        )
