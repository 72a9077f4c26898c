"""Keras 2 (`tf_keras`). Runs in the target."""

from __future__ import annotations

from .instruments import Instruments
from .keras_calls import KerasCalls
from .recorder import now_ns
from .tf_saving import SavingInstruments

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any


class Keras2Instruments:
    """Hooks for `tf_keras.src`."""

    def __init__(self, instruments: Instruments, calls: KerasCalls, saving: SavingInstruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.calls = calls
        self.saving = saving

    def hooks(self) -> dict[str, Any]:
        """Return the hooks by module."""
        return {
            "tf_keras.src.engine.base_layer": self.install_layer,
            "tf_keras.src.engine.training": self.install_training,
            "tf_keras.src.backend": self.calls.install_clear_session,
            "tf_keras.src.optimizers": self.install_optimizers,
            "tf_keras.src.saving.saving_api": self.install_saving,
        }

    def install_layer(self, module: Any) -> None:
        """Instrument `Layer.__call__`."""
        self.instruments.patch("tf_keras").replace(module.Layer, "__call__", self.calls.make_layer_call)

    def install_training(self, module: Any) -> None:
        """Instrument the model's training calls, and notice each new model."""
        self.calls.install_fit("Model")(module)
        patch = self.instruments.patch("tf_keras")
        self.calls.install_compile(patch, module.Model)
        tracker = self.tracker

        def make_init(original: Any) -> Any:
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                start_ns = now_ns()
                original(self, *args, **kwargs)
                tracker.renumber(self)
                if "model" not in tracker.stack():
                    tracker.round("model", start_ns)

            return __init__

        patch.replace(module.Model, "__init__", make_init)

    def install_optimizers(self, module: Any) -> None:
        """Instrument `build` of every optimiser."""
        for name in ("optimizer", "Optimizer"):
            found = getattr(module, name, None)
            base = getattr(found, "_BaseOptimizer", None)
            if isinstance(base, type):
                self.calls.install_optimizer_classes(self.instruments.patch("tf_keras"), base)
                return

    def install_saving(self, module: Any) -> None:
        """Instrument `load_model` and `load_weights`."""
        self.calls.install_loads(self.instruments.patch("tf_keras"), module, self.saving)
