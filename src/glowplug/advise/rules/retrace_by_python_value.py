"""One function was traced again and again because a plain Python value among its arguments changed."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.retraces import retraced
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, seconds, times
from glowplug.core.profile import Remedy

SYMPTOM = "A function is traced again for each new Python value passed to it"

_LEAST_RETRACES = 2  # training=True and training=False make one

_CODE = """\
step(x, tf.constant(rate))  # a tensor's value is data; a Python number's value is part of the graph
# or keep what changes in a variable that the function reads:
rate = tf.Variable(0.1, trainable=False)
rate.assign(0.05)"""


def find(view: View) -> Iterator[Match]:
    """Report each function with several traces that differ by a Python value."""
    for each in retraced(view, "python_value"):
        if len(each.traces) < _LEAST_RETRACES or each.cost_ns < WORTH_NS:
            continue
        yield Match(
            title=(
                f"{each.function} was traced again {times(len(each.traces))} for other Python values"
                f" ({seconds(each.cost_ns)}){at(each.traces[0].attrs.get('site'))}"
            ),
            evidence={
                "function": each.function,
                "defined_at": each.place,
                "retraces": len(each.traces),
                "retrace_ns": each.cost_ns,
                "differs": each.differences,
            },
            saves_ns=each.cost_ns,
            remedy=Remedy(
                text="Pass numbers that change from call to call as tensors, or keep them in a tf.Variable.",
                code=_CODE,
            ),
            spans=ids(each.traces),
        )
