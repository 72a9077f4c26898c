"""What the instruments of one process share. Runs in the target."""

from __future__ import annotations

import _thread
import sys

from . import metrics, runtime_state
from .patching import Patcher
from .recorder import Recorder, now_ns
from .tracker import Tracker

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs


class Instruments:
    """The recorder, the tracker, TensorFlow's clock, and where in a Keras call each thread is."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.tracker = Tracker(recorder)
        self._local = _thread._local()
        self._clock: metrics.GraphOptimizationClock | None = None
        self._clock_opened = False
        self._passes_us: dict[str, int] = {}

    def patch(self, library: str) -> Patcher:
        """Return a patcher that speaks of `library` in its notes."""
        return Patcher(self.recorder, library)

    def eager(self) -> bool:
        """Say whether TensorFlow executes eagerly here. Asks only, and only a context that exists."""
        context = sys.modules.get("tensorflow.python.eager.context")
        return context is not None and bool(context.executing_eagerly())

    # Where a thread is

    def enter_step(self, index: int) -> None:
        """Remember that this thread is inside a step."""
        self._local.step = index
        self._local.jit = False

    def leave_step(self) -> Attrs | None:
        """Forget it, and return what became known of the step."""
        self._local.step = 0
        return {"jit_compile": True} if getattr(self._local, "jit", False) else None

    def current_step(self) -> int:
        """Return the index of the step this thread is in, 0 outside."""
        return int(getattr(self._local, "step", 0))

    def note_jit(self) -> None:
        """Remember that the step this thread is in compiles with XLA."""
        self._local.jit = True

    def enter_model(self, mode: str, model: Any) -> None:
        """Remember that this thread is inside `fit`, `evaluate` or `predict` of a model."""
        calls = self._calls()
        calls.append((mode, type(model).__name__, self.tracker.number(model)))

    def leave_model(self) -> None:
        """Forget the innermost of these calls."""
        calls = self._calls()
        if calls:
            calls.pop()

    def current_mode(self) -> str:
        """Return `train`, `evaluate`, `predict`, or `call` outside of Keras."""
        calls = self._calls()
        return calls[-1][0] if calls else "call"

    def current_model(self) -> tuple[str, int] | None:
        """Return class name and number of the model whose `fit`, `evaluate` or `predict` runs."""
        calls = self._calls()
        return (calls[-1][1], calls[-1][2]) if calls else None

    def _calls(self) -> list[tuple[str, str, int]]:
        try:
            found: list[tuple[str, str, int]] = self._local.calls
        except AttributeError:
            found = self._local.calls = []
        return found

    # TensorFlow's clock

    def clock(self) -> metrics.GraphOptimizationClock | None:
        """Return TensorFlow's clock of graph optimisation, opened when the runtime has started."""
        if not self._clock_opened and runtime_state.is_ready():
            self._clock_opened = True
            self._clock = metrics.open_clock()
            if self._clock is None:
                self.recorder.note("this TensorFlow does not tell how long graph optimisation took")
        return self._clock

    def optimized(self, original: Any, name_of: Any) -> Any:
        """Return a wrapper that records the graph optimisation which a call made TensorFlow do."""
        open_clock = self.clock

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            clock = open_clock()
            if clock is None:
                return original(*args, **kwargs)
            before_us = clock.total_us()
            start_ns = now_ns()
            try:
                return original(*args, **kwargs)
            finally:
                took_us = clock.total_us() - before_us
                if took_us > 0:
                    self._record_optimization(clock, start_ns, took_us, str(name_of(args)))

        return wrapper

    def _record_optimization(
        self, clock: metrics.GraphOptimizationClock, start_ns: int, took_us: int, name: str
    ) -> None:
        """Record Grappler and its passes. TensorFlow optimises first and runs then, so it is put at the start."""
        end_ns = min(now_ns(), start_ns + took_us * 1000)
        attrs: Attrs = {"kind": "graph_optimization", "function": name, "measured": "metric"}
        self.recorder.span(start_ns, end_ns, "graph_optimization", name, attrs)
        at_ns = start_ns
        seen, current = self._passes_us, clock.passes_us()
        for label, total_us in sorted(current.items(), key=lambda item: -item[1]):
            spent_ns = (total_us - seen.get(label, 0)) * 1000
            if spent_ns > 0 and at_ns < end_ns:
                until_ns = min(end_ns, at_ns + spent_ns)
                described: Attrs = {"kind": "pass", "pass": label, "count": 1}
                self.recorder.span(at_ns, until_ns, "graph_optimization", label, described)
                at_ns = until_ns
        seen.update(current)
