"""TensorFlow's runtime: context and devices, function execution, sessions. Runs in the target."""

from __future__ import annotations

from . import runtime_state, user_lines
from .instruments import Instruments
from .recorder import now_ns
from .tf_functions import NOT_A_STEP, plain_name

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs


class RuntimeInstruments:
    """Context, function calls and sessions of one process."""

    def __init__(self, instruments: Instruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.recorder = instruments.recorder
        self.initializers: set[str] = set()
        self._steps: dict[tuple[int, ...], int] = {}

    def install_context(self, module: Any) -> None:
        """Instrument `tensorflow.python.eager.context`."""
        patch = self.instruments.patch("TensorFlow")
        patch.replace(module.Context, "ensure_initialized", self._make_ensure_initialized)
        patch.replace(module.Context, "call_function", self._make_call_function, quiet=True)

    def _make_ensure_initialized(self, original: Any) -> Any:
        recorder, stack_of = self.recorder, self.tracker.stack

        def ensure_initialized(self: Any) -> None:
            if self._initialized:
                return
            stack = stack_of()
            number = recorder.begin("runtime_init", "eager context", {"kind": "context"})
            stack.append("context")
            attrs: Attrs = {}
            try:
                original(self)
                runtime_state.mark_started()
                recorder.fact("runtime_started", True)
                attrs["devices"] = [device.name for device in self._logical_devices or ()]
                for key in ("inter", "intra"):
                    threads = getattr(self, f"_{key}_op_parallelism_threads", None)
                    if threads is not None:
                        attrs[f"{key}_op_threads"] = int(threads)
            finally:
                stack.pop()
                recorder.end(number, attrs)

        return ensure_initialized

    def _make_call_function(self, original: Any) -> Any:
        def name_of(args: tuple[Any, ...]) -> str:
            name = args[1]
            return plain_name(name.decode() if isinstance(name, bytes) else str(name))

        return self.instruments.optimized(original, name_of)

    def install_iterators(self, module: Any) -> None:
        """Instrument `tensorflow.python.data.ops.iterator_ops`: a dataset's graph is optimised and started."""

        def make(original: Any) -> Any:
            optimized = self.instruments.optimized(original, lambda args: "dataset")
            return self.tracker.timed("first_step", "data", "iterator", enter=_enter_data)(optimized)

        self.instruments.patch("TensorFlow").replace(module.OwnedIterator, "_create_iterator", make, quiet=True)

    # Sessions

    def install_session(self, module: Any) -> None:
        """Instrument `tensorflow.python.client.session`."""
        patch = self.instruments.patch("TensorFlow")
        patch.replace(
            module.BaseSession,
            "__init__",
            self.tracker.timed(
                "session", "session", "Session", enter=self._enter_session, leave=self._new_session, loop="Session"
            ),
        )
        patch.replace(
            module.BaseSession, "close", self.tracker.timed("session", "session_close", "close", enter=self._number)
        )
        patch.replace(module.BaseSession, "run", self._make_run)

    def _enter_session(self, attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        attrs["object"] = self.tracker.renumber(args[0])
        user_lines.with_site(attrs, 4)

    def _new_session(self, attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        runtime_state.mark_started()
        self.recorder.fact("runtime_started", True)
        attrs["graph_ops"] = runtime_state.count_graph_ops(args[0].graph)

    def _number(self, attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        attrs["object"] = self.tracker.number(args[0])

    def _make_run(self, original: Any) -> Any:
        instruments, tracker, recorder = self.instruments, self.tracker, self.recorder
        counts, initializers = self._steps, self.initializers
        optimized = instruments.optimized(original, lambda args: _fetch_name(args[1] if len(args) > 1 else ""))

        def run(self: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
            stack = tracker.stack()
            if not NOT_A_STEP.isdisjoint(stack):
                return optimized(self, fetches, *args, **kwargs)
            start_ns = now_ns()
            session = tracker.number(self)
            name = _fetch_name(fetches)
            attrs: Attrs = {"kind": "step", "function": name, "mode": "session_run", "object": session}
            if name in initializers:
                attrs["kind"] = "initialize"
                phase = "initializers"
            else:
                key = (session, *_fetch_key(fetches))
                counts[key] = index = counts.get(key, 0) + 1
                attrs["index"], attrs["function_id"] = index, hash(key) & 0x7FFFFFFF
                phase = "first_step" if index == 1 else "steady_steps"
                if index <= 3:
                    user_lines.with_site(attrs)
            number = recorder.begin(phase, name, attrs)
            stack.append("step")
            try:
                return optimized(self, fetches, *args, **kwargs)
            finally:
                stack.pop()
                recorder.end(number)
                tracker.round("session_run", start_ns)

        return run


def _enter_data(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    dataset = args[1] if len(args) > 1 else kwargs.get("dataset")
    attrs["what"] = type(dataset).__name__


def _fetch_key(fetches: Any) -> tuple[int, ...]:
    if isinstance(fetches, (list, tuple)):
        return tuple(id(fetch) for fetch in fetches)
    return (id(fetches),)


def _fetch_name(fetches: Any) -> str:
    if isinstance(fetches, (list, tuple)):
        names = [_fetch_name(fetch) for fetch in fetches[:4]]
        return ", ".join(names) + (", ..." if len(fetches) > 4 else "")
    if isinstance(fetches, str):
        return fetches
    return str(getattr(fetches, "name", type(fetches).__name__))
