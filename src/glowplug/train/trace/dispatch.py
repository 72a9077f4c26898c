"""Which trace of a `tf.function` serves a call: TensorFlow's own rule, with restored traces counted as traces.

TensorFlow takes the closest trace whose types fit. Where none fits it traces anew, and a function that reduces
retracing does so with types that cover the earlier ones too. What was restored is no trace to TensorFlow, so its
types are kept here: a second `fit` with another batch size asks for the very trace that stock Keras would make.
"""

from __future__ import annotations

from typing import Any


class TracedTypes:
    """The types of arguments that a function has traces for, made here or restored."""

    def __init__(self, function: Any) -> None:
        from tensorflow.core.function.polymorphism import type_dispatch

        self._table = type_dispatch.TypeDispatchTable()
        self._generalizes = bool(function._reduce_retracing) and function.input_signature is None

    def target(self, kind: Any) -> Any:
        """Return the types of the trace that serves arguments of type `kind`, be it there or still to be made."""
        found = self._table.dispatch(kind)
        if found is not None or not self._generalizes:
            return kind if found is None else found
        return self._table.try_generalizing_function_type(kind)

    def add(self, target: Any) -> None:
        """A trace with these types is there."""
        self._table.add_target(target)


def is_served_otherwise(function: Any, kind: Any) -> bool:
    """Whether TensorFlow has a trace that it would use for arguments of type `kind`, and none with just these types."""
    if function.input_signature is not None:
        return False
    wanted = [parameter.type_constraint for parameter in kind.parameters.values()]
    traced = [
        [parameter.type_constraint for parameter in concrete.function_type.parameters.values()]
        for concrete in function._list_all_concrete_functions()
    ]
    return wanted not in traced and any(
        len(types) == len(wanted) and all(one.is_subtype_of(other) for one, other in zip(wanted, types, strict=True))
        for types in traced
    )
