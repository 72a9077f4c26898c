"""A function was traced twice before its first step ended, because the first trace created variables."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import at, run_command, seconds, short
from glowplug.core.profile import Remedy, Span

SYMPTOM = "The first step is traced twice, because the first trace creates variables"

# Keras traces the step of any model twice; on a small one that is not worth an edit.
_LEAST_NS = 1_000_000_000
# Outside of a trace, making a variable takes about this part of the time it takes inside one.
_EAGER_SHARE = 0.1

_CODE = """\
model.build(input_shape)                          # or call the model once on one batch
model.optimizer.build(model.trainable_variables)  # before the first fit or train_on_batch
# or, without an edit to the model:
from glowplug import train
train.enable()"""


def find(view: View) -> Iterator[Match]:
    """Pair each trace that created variables with the trace that had to follow it."""
    groups: dict[tuple[int, object], list[Span]] = {}
    for span in view.of_kind("trace"):
        groups.setdefault((span.pid, span.attrs.get("function_id")), []).append(span)
    for traces in groups.values():
        again = [span for span in traces if span.attrs.get("reason") == "variables_created"]
        if not again or view.enclosing(again[0], "trace") in again:
            continue
        second = again[0]
        earlier = [span for span in traces if span.start_ns < second.start_ns]
        if not earlier:
            continue
        first = earlier[-1]
        made_ns = total_ns(view.outermost(view.inside(first, "variable")))
        saves_ns = second.start_ns - first.start_ns - round(_EAGER_SHARE * made_ns)
        if second.duration_ns < _LEAST_NS or saves_ns < _LEAST_NS:
            continue
        function = short(second.attrs.get("function", second.name))
        yield Match(
            title=(
                f"{function} was traced twice for its first step: {seconds(first.duration_ns)} and then"
                f" {seconds(second.duration_ns)}{at(second.attrs.get('site'))}"
            ),
            evidence={
                "function": function,
                "first_trace_ns": first.duration_ns,
                "second_trace_ns": second.duration_ns,
                "variables_ns": made_ns,
                "until_second_trace_ns": second.start_ns - first.start_ns,
                "graph_ops": second.attrs.get("graph_ops"),
                "site": second.attrs.get("site"),
            },
            saves_ns=saves_ns,
            remedy=Remedy(
                text=(
                    "Create every variable (model, optimizer, metrics) before the first step, so "
                    "that one trace is enough."
                ),
                code=_CODE,
                command=run_command(view.profile),
            ),
            spans=ids([first, second]),
        )
