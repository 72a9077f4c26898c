"""One function was traced again and again because the shapes of its arguments differ."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.retraces import retraced
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, seconds, times
from glowplug.core.profile import Remedy

SYMPTOM = "A function is traced again for each new shape of its arguments"

_LEAST_RETRACES = 2  # a partial last batch makes one

_CODE = """\
@tf.function(input_signature=[tf.TensorSpec([None, 32], tf.float32)])  # None where the size varies
def step(x):
    return tf.reduce_sum(x)
# or, with the function as it is:
step = tf.function(step.python_function, reduce_retracing=True)
# or pad to a few sizes:
dataset = dataset.bucket_by_sequence_length(
    lambda x: tf.shape(x)[0], bucket_boundaries=[32, 64], bucket_batch_sizes=[8, 8, 8])"""


def find(view: View) -> Iterator[Match]:
    """Report each function with several traces that differ by shape."""
    for each in retraced(view, "shape"):
        if len(each.traces) < _LEAST_RETRACES or each.cost_ns < WORTH_NS:
            continue
        yield Match(
            title=(
                f"{each.function} was traced again {times(len(each.traces))} for other shapes"
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
                text=(
                    "Give the function one signature that fits every call (None for the sizes that "
                    "vary), let TensorFlow"
                    " relax the shapes, or pad the inputs to a few sizes."
                ),
                code=_CODE,
            ),
            spans=ids(each.traces),
        )
