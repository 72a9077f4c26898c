"""The steps of a Keras model as subjects of caching: how to build them and what they reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker
from glowplug.train.trace import signature
from glowplug.train.trace.cached import CachedFunction
from glowplug.train.trace.dispatch import is_served_otherwise
from glowplug.train.trace.signature import Arguments

from .build import build_for
from .handed_over import BuiltAhead, trace_watched

# What a step reaches only if its code is the user's own.
_POSTPONED = {
    "train": frozenset[str](),
    "test": frozenset({"optimizer"}),
    "predict": frozenset({"optimizer", "_compile_loss", "_compile_metrics", "_loss_tracker", "loss"}),
}


class ModelStep:
    """`train_step`, `test_step` or `predict_step` of a model, on an iterator or on data."""

    def __init__(self, model: Any, role: str, form: str, inner: CachedFunction | None = None) -> None:
        """`inner` is the function of data that a function of an iterator calls: it is traced along with it."""
        self._model = model
        self._role = role
        self._inner = inner
        self._built: list[BuiltAhead] = []
        self._hands_over_otherwise = False
        self.kind = f"{role} {form}"
        self.label = f"the {role} step of {type(model).__name__}"

    def build(self, arguments: Arguments) -> None:
        """Create the variables that the step would create."""
        self._built = build_for(self._model, self._role, self._data(arguments))

    def walk(self, arguments: Arguments) -> Walker:
        """Walk the model and the arguments."""
        if self._hands_over_otherwise:
            raise NoKeyError("its step gives loss or metrics something else than what the model returns")
        walker = Walker((self._model, _POSTPONED[self._role]))
        walker.stream.enter("function")
        walker.stream.leaf("step", "step", self.kind)
        walker.stream.leaf("steps_per_execution", "steps", str(self._model.steps_per_execution))
        walker.stream.leaf("unrolled", "steps", str(self._model.unrolled_steps_per_execution))
        walker.stream.leaf("jit_compile", "jit", str(self._model.jit_compile))
        signature.visit_inputs(walker, arguments)
        inner = self._inner_arguments(arguments)
        if inner is not None:  # earlier traces of it make it more general than the elements of this iterator
            signature.visit_inputs(walker, inner)
        walker.stream.enter("model")
        walker.visit(self._model, "model")
        walker.finish()
        return walker

    def before_trace(self, arguments: Arguments) -> None:
        """Trace the inner function ahead where TensorFlow would make it more general, but does not know why."""
        inner = self._inner_arguments(arguments)
        if self._inner is not None and inner is not None and inner.kind != self._exact_inner(arguments).kind:
            args, kwargs = signature.examples(inner)
            self._inner.get_concrete_function(*args, **kwargs)

    def traced(self, trace: Callable[[], Any]) -> Any:
        """Make a trace; what it hands to loss and metrics may be something else than what they were built for."""
        given = [each.given for each in self._built]
        try:
            return trace_watched(trace, self._built)
        finally:
            self._hands_over_otherwise = given != [each.given for each in self._built]

    def is_served_otherwise(self, arguments: Arguments) -> bool:
        """Whether the inner function has a more general trace by now."""
        inner = self._inner_arguments(arguments)
        return self._inner is not None and inner is not None and is_served_otherwise(self._inner, inner.kind)

    def served(self, arguments: Arguments) -> None:
        """The inner function has a trace as well."""
        inner = self._inner_arguments(arguments)
        if self._inner is not None and inner is not None:
            self._inner.types.add(inner.kind)

    def _inner_arguments(self, arguments: Arguments) -> Arguments | None:
        if self._inner is None:
            return None
        exact = self._exact_inner(arguments)
        return replace(exact, kind=self._inner.types.target(exact.kind))

    def _exact_inner(self, arguments: Arguments) -> Arguments:
        """Return the arguments of the inner function, as specifications."""
        import tensorflow as tf
        from keras.src import tree

        (parameter,) = arguments.kind.parameters.values()
        element = tree.map_structure(
            lambda spec: None if isinstance(spec, tf.OptionalSpec) else spec, parameter.type_constraint._element_spec
        )
        return signature.arguments_of(self._inner, (element,), {})

    def _data(self, arguments: Arguments) -> Any:
        (argument,) = arguments.args
        if self.kind.endswith("iterator"):
            return argument.element_spec
        return argument[0] if self._role == "predict" else argument
