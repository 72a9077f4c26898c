"""The steps of a Keras model as subjects of caching: how to build them and what they reach."""

from __future__ import annotations

from typing import Any

from .build import build_for
from .fingerprint.walker import Walker
from .trace import signature
from .trace.signature import Arguments

# What a step reaches only if its code is the user's own.
_POSTPONED = {
    "train": frozenset[str](),
    "test": frozenset({"optimizer"}),
    "predict": frozenset({"optimizer", "_compile_loss", "_compile_metrics", "_loss_tracker", "loss"}),
}


class ModelStep:
    """`train_step`, `test_step` or `predict_step` of a model, on an iterator or on data."""

    def __init__(self, model: Any, role: str, form: str) -> None:
        self._model = model
        self._role = role
        self.kind = f"{role} {form}"
        self.label = f"the {role} step of {type(model).__name__}"

    def build(self, arguments: Arguments) -> None:
        """Create the variables that the step would create."""
        build_for(self._model, self._role, self._data(arguments))

    def walk(self, arguments: Arguments) -> Walker:
        """Walk the model and the arguments."""
        walker = Walker((self._model, _POSTPONED[self._role]))
        walker.stream.enter("function")
        walker.stream.leaf("step", "step", self.kind)
        walker.stream.leaf("jit_compile", "jit", str(self._model.jit_compile))
        signature.visit_inputs(walker, arguments)
        walker.stream.enter("model")
        walker.visit(self._model, "model")
        walker.finish()
        return walker

    def _data(self, arguments: Arguments) -> Any:
        (argument,) = arguments.args
        if self.kind.endswith("iterator"):
            return argument.element_spec
        return argument[0] if self._role == "predict" else argument
