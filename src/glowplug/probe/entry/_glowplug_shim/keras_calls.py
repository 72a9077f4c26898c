"""What Keras 2 and Keras 3 have in common: training calls, layer calls, compile, optimisers. Runs in the target."""

from __future__ import annotations

from . import user_lines
from .instruments import Instruments
from .patching import roomy
from .recorder import now_ns
from .tf_saving import SavingInstruments

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs

MODES = {
    "fit": "train",
    "evaluate": "evaluate",
    "predict": "predict",
    "train_on_batch": "train",
    "test_on_batch": "evaluate",
    "predict_on_batch": "predict",
}


class KerasCalls:
    """Instruments that either Keras installs on its own classes."""

    def __init__(self, instruments: Instruments, library: str) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.recorder = instruments.recorder
        self.library = library
        self._called: set[tuple[str, int]] = set()
        self._steps: dict[int, int] = {}

    def install_fit(self, class_name: str) -> Any:
        """Return a hook that instruments `fit`, `evaluate`, `predict` and their batch forms on a class."""

        def install(module: Any) -> None:
            patch = self.instruments.patch(self.library)
            owner = getattr(module, class_name, None)
            if owner is None:
                self.recorder.note(f"this {self.library} has no {class_name}: its training calls are not told apart")
                return
            for method, mode in MODES.items():
                patch.replace(owner, method, self._make_fit(method, mode), quiet=True)

        return install

    def _make_fit(self, method: str, mode: str) -> Any:
        instruments, tracker, recorder, called = self.instruments, self.tracker, self.recorder, self._called

        def make(original: Any) -> Any:
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                start_ns = now_ns()
                stack = tracker.stack()
                model = tracker.number(self)
                first = (method, model) not in called
                called.add((method, model))
                attrs: Attrs = {"kind": "fit", "object": model, "first": first, "class": type(self).__name__}
                user_lines.with_site(attrs)
                number = recorder.begin("first_step" if first else "steady_steps", method, attrs)
                stack.append("fit")
                instruments.enter_model(mode, self)
                try:
                    return original(self, *args, **kwargs)
                finally:
                    instruments.leave_model()
                    stack.pop()
                    recorder.end(number)
                    if "fit" not in stack:
                        tracker.round("predict" if mode == "predict" else "fit", start_ns)

            return roomy(call)

        return make

    def make_layer_call(self, original: Any) -> Any:
        """Wrap `Layer.__call__`."""
        tracker, recorder, steps = self.tracker, self.recorder, self._steps

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            built = self.built
            stack = tracker.stack()
            if built and stack:
                return original(self, *args, **kwargs)
            start_ns = now_ns()
            model = hasattr(self, "fit")
            if built and not _symbolic(args, kwargs):
                if not model:
                    return original(self, *args, **kwargs)
                number_of = tracker.number(self)
                steps[number_of] = index = steps.get(number_of, 0) + 1
                name, kind = f"{type(self).__name__}.__call__", "step"
                attrs: Attrs = {"kind": kind, "index": index, "function": name, "function_id": number_of}
                attrs.update({"mode": "call", "object": number_of})
                phase = "first_step" if index == 1 else "steady_steps"
            else:
                name, kind, phase = str(getattr(self, "name", "layer")), "layer", "build"
                attrs = {"kind": kind, "class": type(self).__name__}
            user_lines.with_site(attrs)
            number = recorder.begin(phase, name, attrs)
            stack.append(kind)
            more: Attrs = {}
            try:
                result = original(self, *args, **kwargs)
                if kind == "layer":
                    _describe_layer(more, self)
                return result
            finally:
                stack.pop()
                recorder.end(number, more)
                if kind == "step":
                    tracker.round("step", start_ns)

        return __call__

    def install_compile(self, patch: Any, owner: Any) -> None:
        """Instrument `compile`."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs["class"] = type(args[0]).__name__
            attrs["object"] = self.tracker.number(args[0])
            attrs["in_load"] = "load" in self.tracker.stack()
            user_lines.with_site(attrs, 4)

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            attrs["optimizer"] = type(args[0].optimizer).__name__
            attrs["jit_compile"] = bool(getattr(args[0], "jit_compile", False))

        timed = self.tracker.timed(
            "optimizer_setup", "compile", "Model.compile", enter=enter, leave=leave, loop="compile"
        )
        patch.replace(owner, "compile", timed)

    def install_optimizer_classes(self, patch: Any, base: type) -> None:
        """Instrument `build` of a class and of all classes below it."""

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            attrs["_name"] = type(args[0]).__name__
            variables = args[0].variables
            attrs["variables"] = len(variables() if callable(variables) else variables)

        def outermost(stack: list[str], args: tuple[Any, ...]) -> bool:
            return "optimizer_build" not in stack

        waiting: list[type] = [base]
        seen: set[Any] = set()
        while waiting:
            owner = waiting.pop()
            if owner in seen:
                continue
            seen.add(owner)
            timed = self.tracker.timed("optimizer_setup", "optimizer_build", "optimizer", leave=leave, when=outermost)
            patch.replace(owner, "build", timed, quiet=True)
            waiting.extend(owner.__subclasses__())

    def install_clear_session(self, module: Any) -> None:
        """Instrument `clear_session`."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            user_lines.with_site(attrs, 4)

        timed = self.tracker.timed("build", "clear_session", "clear_session", enter=enter, loop="clear_session")
        self.instruments.patch(self.library).replace(module, "clear_session", timed)

    def install_loads(self, patch: Any, module: Any, saving: SavingInstruments) -> None:
        """Instrument `load_model(path)` and `load_weights(model, path)` of a module."""

        def outermost(stack: list[str], args: tuple[Any, ...]) -> bool:
            return "load" not in stack

        def enter_model(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            saving.enter_load(format_of(args[0] if args else kwargs.get("filepath")), 0)(attrs, args, kwargs)
            attrs["compiled"] = bool(kwargs.get("compile", args[2] if len(args) > 2 else True))

        def enter_weights(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            path = args[1] if len(args) > 1 else kwargs.get("filepath")
            saving.enter_load(format_of(path, weights=True), 0)(attrs, (path,), {})

        timed = self.tracker.timed
        patch.replace(
            module, "load_model", timed("build", "load", "load_model", enter=enter_model, when=outermost, loop="load")
        )
        patch.replace(
            module,
            "load_weights",
            timed("build", "load", "load_weights", enter=enter_weights, when=outermost, loop="load"),
            quiet=True,
        )


def format_of(path: Any, *, weights: bool = False) -> str:
    """Return the format of a Keras file by its name."""
    text = str(path)
    if text.endswith(".weights.h5") or (weights and text.endswith((".h5", ".hdf5"))):
        return "weights_h5"
    if text.endswith((".h5", ".hdf5")):
        return "h5"
    if text.endswith(".keras"):
        return "keras"
    return "checkpoint" if weights else "saved_model"


def _symbolic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    value = args[0] if args else next(iter(kwargs.values()), None)
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, dict) and value:
        value = next(iter(value.values()))
    return type(value).__name__ == "KerasTensor"


def _describe_layer(attrs: Attrs, layer: Any) -> None:
    try:
        variables = layer.variables
        attrs["variables"] = len(variables)
        total = 0
        for variable in variables:
            size = 4 if "32" in str(variable.dtype) else 2 if "16" in str(variable.dtype) else 8
            for dim in variable.shape:
                size *= int(dim)
            total += size
        attrs["bytes"] = total
        attrs["_name"] = str(getattr(layer, "path", None) or layer.name)
    except Exception:  # a layer of another kind has no figures
        return
