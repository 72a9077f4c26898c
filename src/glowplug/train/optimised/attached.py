"""Has a traced function run the optimised graph that was stored for it, wherever TensorFlow calls it eagerly.

The traced function stays what it is: its signature, its captures, the packing of its results and the wording of its
errors. Only the call of the runtime is another one, by the name of the stored graph and with Grappler off. Inside other
functions, under a tape, or once the runtime's options have changed, the traced graph runs as usual.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from glowplug.train.trace import collect
from glowplug.train.trace.restore import call_attributes


class OptimisedCall:
    """Stands in for `call_flat` of a traced function: flat tensors in, flat tensors out."""

    def __init__(self, traced: Any, name: str) -> None:
        from tensorflow.python.eager import context

        self._traced = weakref.ref(traced)  # it holds this, and TensorFlow counts on its end
        self._name = name
        self._context = context.context()
        self._config = self._context.function_call_options.config_proto_serialized
        self._attributes = call_attributes()
        self._results = len(traced.function_type.flat_outputs)

    def __call__(self, *args: Any) -> Sequence[Any]:
        """Run the stored graph, or the traced one where only that will do."""
        traced: Any = self._traced()
        if not self._applies():
            return type(traced).call_flat(traced, *args)  # type: ignore[no-any-return]
        from tensorflow.python.eager import execute, record
        from tensorflow.python.eager.polymorphic_function import atomic_function
        from tensorflow.python.framework import errors

        with atomic_function.InterpolateRuntimeError(traced), record.stop_recording():
            try:
                outputs = execute.execute(
                    self._name,
                    num_outputs=self._results,
                    inputs=list(args),
                    attrs=self._attributes,
                    ctx=self._context,
                )
            except errors.OpError as error:
                error._message = error.message.replace(self._name, traced.name.decode())
                raise
        _describe_handles(outputs, traced.function_type.flat_outputs)
        return outputs or None  # type: ignore[return-value]  # as the traced function gives it

    def _applies(self) -> bool:
        from tensorflow.python.eager import cancellation

        return (
            self._context.executing_eagerly()
            and cancellation.context() is None
            and not self._context.op_callbacks
            and not collect.someone_else_collects()
            and self._context.function_call_options.config_proto_serialized == self._config
        )


def attach(traced: Any, name: str) -> None:
    """Have a traced function call a stored graph from now on."""
    traced.call_flat = OptimisedCall(traced, name)


def _describe_handles(outputs: Sequence[Any], kinds: Sequence[Any]) -> None:
    from tensorflow.python.ops import handle_data_util

    for output, kind in zip(outputs, kinds, strict=True):
        if kind.dtype._handle_data:
            handle_data_util.set_handle_data(output, kind.dtype._handle_data.shape_inference)
