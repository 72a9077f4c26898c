"""`tf.function`: each trace with its reason, each step, and the graph optimisation inside. Runs in the target."""

from __future__ import annotations

from . import importing, runtime_state, trace_reason, user_lines
from .instruments import Instruments
from .patching import roomy
from .recorder import now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs

# A call inside one of these is part of it, not a step of its own.
NOT_A_STEP = frozenset({"step", "trace", "load", "layer", "model", "variable", "optimizer_build", "compile", "read"})
KERAS_FILES = ("keras/src/backend/tensorflow/trainer.py", "tf_keras/src/engine/training.py", "keras/engine/training.py")


class FunctionInstruments:
    """Traces and steps of one process."""

    def __init__(self, instruments: Instruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.recorder = instruments.recorder
        self._steps: dict[int, int] = {}
        self._histories: dict[int, list[tuple[Any, str]]] = {}

    def install_tracing(self, module: Any) -> None:
        """Instrument `tracing_compilation`."""
        self.instruments.patch("TensorFlow").replace(module, "_create_concrete_function", self._make_trace)

    def install_calls(self, module: Any) -> None:
        """Instrument `polymorphic_function`."""
        patch = self.instruments.patch("TensorFlow")
        patch.replace(module.Function, "__call__", self._make_step)
        patch.replace(module.Function, "__init__", self._make_new_function)

    def install_concrete(self, module: Any) -> None:
        """Instrument `concrete_function`: what a SavedModel's signatures are."""
        self.instruments.patch("TensorFlow").replace(module.ConcreteFunction, "__call__", self._make_step)

    def _make_new_function(self, original: Any) -> Any:
        tracker = self.tracker

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            start_ns = now_ns()
            original(self, *args, **kwargs)
            tracker.renumber(getattr(self, "_function_cache", self))
            if not importing.depth.value and not tracker.stack():
                tracker.round("function", start_ns)

        return __init__

    def _make_trace(self, original: Any) -> Any:
        tracker, recorder = self.tracker, self.recorder

        def _create_concrete_function(
            function_type: Any, type_context: Any, func_graph: Any, tracing_options: Any
        ) -> Any:
            start_ns = now_ns()
            attrs: Attrs = {"kind": "trace"}
            try:
                self._describe_trace(attrs, function_type, tracing_options)
            except Exception:  # a TensorFlow that looks different costs attributes, not the run
                attrs.setdefault("reason", "unknown")
            stack = tracker.stack()
            number = recorder.begin("trace", str(attrs.get("function", tracing_options.name)), attrs)
            stack.append("trace")
            runtime_state.traces += 1
            more: Attrs = {}
            try:
                result = original(function_type, type_context, func_graph, tracing_options)
                more["graph_ops"] = runtime_state.count_graph_ops(func_graph)
                return result
            finally:
                stack.pop()
                recorder.end(number, more)
                if "trace" not in stack:
                    tracker.round("trace", start_ns)

        return roomy(_create_concrete_function)

    def _describe_trace(self, attrs: Attrs, function_type: Any, options: Any) -> None:
        function = _unwrap(options.python_function)
        code = getattr(function, "__code__", None)
        attrs["function"] = getattr(function, "__qualname__", options.name)
        if code is not None:
            attrs["file"], attrs["line"] = code.co_filename, code.co_firstlineno
            attrs["keras"] = code.co_filename.endswith(KERAS_FILES)
        attrs["signature"] = trace_reason.describe_signature(function_type)
        cache = options.function_cache
        scope = getattr(options.scope_type, "name", "")
        attrs["function_id"] = self.tracker.number(cache if cache is not None else options.python_function)
        attrs["reason"], differs, attrs["trace_index"] = self._reason(cache, function_type, scope)
        if differs:
            attrs["differs"] = differs
        if any(value and "XlaMustCompile" in str(key) for key, value in (options.attributes or {}).items()):
            attrs["jit_compile"] = True
            self.instruments.note_jit()
        step = self.instruments.current_step()
        if step:
            attrs["step"] = step
        owner = self.instruments.current_model()
        if owner is not None:
            attrs["owner"], attrs["owner_object"] = owner
        site = user_lines.user_site(3)
        if site is not None:
            attrs["site"] = site

    def _reason(self, cache: Any, function_type: Any, scope: str) -> tuple[str, str, int]:
        if cache is None:
            return "first", "", 1
        history = self._histories.setdefault(self.tracker.number(cache), [])
        history.append((function_type, scope))
        index = len(history)
        if index == 1:
            return "first", "", 1
        earlier = history[:-1]
        for before, before_scope in reversed(earlier):
            if before_scope != scope and not trace_reason.compare(before, function_type)[0]:
                return "variables_created", "", index
        # The nearest earlier type tells most: the one with the fewest differences is usually the last.
        reason, differs = trace_reason.compare(earlier[-1][0], function_type)
        return reason or "closure", differs, index

    def _make_step(self, original: Any) -> Any:
        instruments, tracker, recorder = self.instruments, self.tracker, self.recorder
        counts = self._steps

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            stack = tracker.stack()
            if not NOT_A_STEP.isdisjoint(stack) or not instruments.eager():
                return original(self, *args, **kwargs)
            start_ns = now_ns()
            cache = getattr(self, "_function_cache", None)
            function_id = tracker.number(self if cache is None else cache)
            counts[function_id] = index = counts.get(function_id, 0) + 1
            name = _name_of(self)
            attrs: Attrs = {"kind": "step", "index": index, "function": name, "function_id": function_id}
            attrs["mode"] = instruments.current_mode()
            owner = instruments.current_model()
            if owner is not None:
                attrs["object"] = owner[1]
            if index <= 3:
                user_lines.with_site(attrs)
            number = recorder.begin("first_step" if index == 1 else "steady_steps", name, attrs)
            stack.append("step")
            instruments.enter_step(index)
            try:
                return original(self, *args, **kwargs)
            finally:
                stack.pop()
                recorder.end(number, instruments.leave_step())
                tracker.round("step", start_ns)

        return __call__


def _unwrap(function: Any) -> Any:
    for _ in range(20):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "python_function", None)
        if inner is None:
            break
        function = inner
    return getattr(function, "__func__", function)


def _name_of(function: Any) -> str:
    python_function = getattr(function, "_python_function", None)
    if python_function is not None:
        return str(getattr(_unwrap(python_function), "__qualname__", getattr(function, "_name", "function")))
    name = getattr(function, "name", "") or getattr(function, "_name", "function")
    text = name.decode() if isinstance(name, bytes) else str(name)
    return plain_name(text)


def plain_name(name: str) -> str:
    """Strip what TensorFlow adds to a function's name: `__inference_signature_wrapper_1234`."""
    for prefix in ("__inference_", "__forward_", "__backward_"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    head, _, tail = name.rpartition("_")
    return head if head and tail.isdigit() else name
