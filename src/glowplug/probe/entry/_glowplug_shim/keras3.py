"""Keras 3: layers, variables, optimisers, training calls, loading. Runs in the target."""

from __future__ import annotations

from . import user_lines
from .instruments import Instruments
from .keras_calls import KerasCalls
from .recorder import now_ns
from .tf_saving import SavingInstruments
from .tf_variables import VariableInstruments, describe_variable, initializer_name

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs

BUILDING = frozenset({"layer", "model", "trace", "step", "load", "optimizer_build"})


class Keras3Instruments:
    """Hooks for `keras.src`."""

    def __init__(
        self,
        instruments: Instruments,
        calls: KerasCalls,
        variables: VariableInstruments,
        saving: SavingInstruments,
    ) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.calls = calls
        self.variables = variables
        self.saving = saving

    def hooks(self) -> dict[str, Any]:
        """Return the hooks by module."""
        return {
            "keras.src.backend.config": self.install_config,
            "keras.src.backend.common.variables": self.install_variables,
            "keras.src.backend.tensorflow.core": self.install_backend,
            "keras.src.backend.common.global_state": self.install_state,
            "keras.src.layers.layer": self.install_layer,
            "keras.src.ops.function": self.install_function,
            "keras.src.models.sequential": self.install_sequential,
            "keras.src.trainers.trainer": self.install_trainer,
            "keras.src.backend.tensorflow.trainer": self.calls.install_fit("TensorFlowTrainer"),
            "keras.src.optimizers": self.install_optimizers,
            "keras.src.saving.saving_api": self.install_saving,
            "keras.src.saving.saving_lib": self.install_saving_lib,
        }

    def install_config(self, module: Any) -> None:
        """Record the backend."""
        backend = getattr(module, "backend", None)
        if callable(backend):
            self.instruments.recorder.fact("keras_backend", str(backend()))

    def install_state(self, module: Any) -> None:
        """Instrument `clear_session`."""
        self.calls.install_clear_session(module)

    def install_variables(self, module: Any) -> None:
        """Instrument the variable class (called KerasVariable before Keras 3.5)."""
        owner = getattr(module, "Variable", None) or getattr(module, "KerasVariable", None)
        if not isinstance(owner, type):
            return
        patch = self.instruments.patch("Keras")
        timed = self.tracker.timed("initializers", "variable", "variable", leave=self._describe, when=_outermost)
        patch.replace(owner, "__init__", timed)
        patch.replace(owner, "assign", self.variables.make_assign)

    def install_backend(self, module: Any) -> None:
        """Instrument variables whose value is made later than they are."""
        patch = self.instruments.patch("Keras")
        timed = self.tracker.timed("initializers", "variable", "variable", leave=self._describe, when=_outermost)
        patch.replace(module.Variable, "_deferred_initialize", timed, quiet=True)

    def _describe(self, attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        variable = args[0]
        value = kwargs.get("initializer", args[1] if len(args) > 1 else None)
        attrs.update(describe_variable(variable.path, variable._shape, variable._dtype))
        attrs["initializer"] = initializer_name(value)
        attrs["created_in"] = self.variables.created_in()
        attrs["object"] = number = self.tracker.renumber(variable)
        attrs["layer"] = str(variable.path).rpartition("/")[0]
        inner = getattr(variable, "_value", None)
        if inner is not None:
            self.tracker.alias(inner, number)
        user_lines.with_site(attrs, 4)

    def install_layer(self, module: Any) -> None:
        """Instrument `Layer.__call__`: building when symbolic or not built, a step when a built model runs."""
        self.instruments.patch("Keras").replace(module.Layer, "__call__", self.calls.make_layer_call)

    def install_function(self, module: Any) -> None:
        """Instrument the constructor of functional models."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs["class"] = type(args[0]).__name__
            user_lines.with_site(attrs, 4)

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            attrs["object"] = self.tracker.number(args[0])
            attrs["_name"] = str(args[0].name)

        timed = self.tracker.timed("build", "model", "model", enter=enter, leave=leave)
        self.instruments.patch("Keras").replace(module.Function, "__init__", timed)

    def install_sequential(self, module: Any) -> None:
        """Instrument the making of the functional model inside a sequential one."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs["class"] = type(args[0]).__name__
            attrs["object"] = self.tracker.number(args[0])
            attrs["_name"] = str(args[0].name)

        timed = self.tracker.timed("build", "model", "sequential", enter=enter)
        self.instruments.patch("Keras").replace(module.Sequential, "build", timed)

    def install_trainer(self, module: Any) -> None:
        """Instrument `compile`, and notice each new model."""
        patch = self.instruments.patch("Keras")
        tracker = self.tracker

        def make_init(original: Any) -> Any:
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                start_ns = now_ns()
                original(self, *args, **kwargs)
                tracker.renumber(self)
                if "model" not in tracker.stack():
                    tracker.round("model", start_ns)

            return __init__

        patch.replace(module.Trainer, "__init__", make_init)
        self.calls.install_compile(patch, module.Trainer)

    def install_optimizers(self, module: Any) -> None:
        """Instrument `build` of every optimiser."""
        optimizer = getattr(module, "Optimizer", None)
        for base in getattr(optimizer, "__mro__", ()):
            if base.__name__ != "BaseOptimizer":
                continue
            self.calls.install_optimizer_classes(self.instruments.patch("Keras"), base)

    def install_saving(self, module: Any) -> None:
        """Instrument `load_model` and `load_weights`."""
        patch = self.instruments.patch("Keras")
        self.calls.install_loads(patch, module, self.saving)

    def install_saving_lib(self, module: Any) -> None:
        """Instrument the stages of loading a `.keras` file."""
        patch = self.instruments.patch("Keras")

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs["class"] = "from config"

        timed = self.tracker.timed("build", "model", "from config", enter=enter)
        patch.replace(module, "_model_from_config", timed, quiet=True)
        if hasattr(module, "_load_state"):
            assign = self.tracker.timed("weights_assign", "assign", "state", when=_outermost_assign, enter=_enter_state)
            patch.replace(module, "_load_state", assign)


def _enter_state(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    attrs.update({"bytes": 0, "count": 0, "format": "keras"})


def _outermost(stack: list[str], args: tuple[Any, ...]) -> bool:
    return "variable" not in stack


def _outermost_assign(stack: list[str], args: tuple[Any, ...]) -> bool:
    return "assign" not in stack
