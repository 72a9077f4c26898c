"""Spans around function calls, and rounds of loops. Runs in the target.

A tracker knows, per thread, which kinds of spans are open, so that an instrument can ask where it is: a variable
made inside another, a call inside a trace. Describing a call must never break it: what goes wrong while
attributes are gathered is swallowed here, in one place.
"""

from __future__ import annotations

import _thread

from . import runtime_state, user_lines
from .patching import roomy
from .recorder import OPS, ROUND, Recorder, now_ns

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Attrs = dict[str, Any]
    Enter = Callable[[Attrs, tuple[Any, ...], dict[str, Any]], None]
    Leave = Callable[[Attrs, tuple[Any, ...], dict[str, Any], Any], None]
    When = Callable[[list[str], tuple[Any, ...]], bool]

MEMORY_EVERY_NS = 10_000_000  # reading /proc costs 15 us; in a fast loop the last reading is near enough

ROOMY = frozenset({"load", "model", "optimizer_build"})  # long calls that are made seldom


class Tracker:
    """The open spans of each thread of this process."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._local = _thread._local()
        self._memory = (0, 0)
        self._memory_read_ns = 0
        self._objects: dict[int, int] = {}
        self._object_count = 0
        self.ops_by_site: dict[str, int] = {}

    def stack(self) -> list[str]:
        """Return the kinds of the open spans of this thread, outermost first."""
        try:
            found: list[str] = self._local.stack
        except AttributeError:
            found = self._local.stack = []
        return found

    def number(self, thing: object) -> int:
        """Return a number for an object, the same while it lives. A new object may get the number of a dead one."""
        key = id(thing)
        found = self._objects.get(key)
        if found is None:
            found = self.renumber(thing)
        return found

    def renumber(self, thing: object) -> int:
        """Give an object that was just made a number of its own."""
        self._object_count += 1
        self._objects[id(thing)] = self._object_count
        return self._object_count

    def alias(self, thing: object, number: int) -> None:
        """Let an object go by the number of another: a Keras variable and the TensorFlow variable inside."""
        self._objects[id(thing)] = number

    def timed(
        self,
        phase: str,
        kind: str,
        name: str,
        *,
        enter: Enter | None = None,
        leave: Leave | None = None,
        when: When | None = None,
        loop: str | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that records each call as a span. `_name` and `_phase` in attributes override."""
        recorder, stack_of, mark_round = self.recorder, self.stack, self.round

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                stack = stack_of()
                if when is not None and not when(stack, args):
                    return original(*args, **kwargs)
                attrs: Attrs = {"kind": kind}
                if enter is not None:
                    describe(enter, attrs, args, kwargs)
                start_ns = now_ns()
                number = recorder.begin(attrs.pop("_phase", phase), attrs.pop("_name", name), attrs)
                stack.append(kind)
                more: Attrs = {}
                try:
                    result = original(*args, **kwargs)
                except BaseException as error:
                    more["error"] = type(error).__name__
                    raise
                finally:
                    stack.pop()
                    if leave is not None and "error" not in more:
                        describe(leave, more, args, kwargs, result)
                    recorder.end(number, more or None)
                    if loop is not None:
                        mark_round(loop, start_ns, 2)
                return result

            return roomy(wrapper) if kind in ROOMY else wrapper

        return make

    def round(self, call: str, start_ns: int, depth: int = 1) -> None:
        """Record that user code made an expensive call. The caller's caller is looked at first."""
        frame = user_lines.user_frame(depth + 1)
        if frame is None:
            return
        end_ns = now_ns()
        self.flush_ops(end_ns)
        if end_ns - self._memory_read_ns > MEMORY_EVERY_NS:
            self._memory = runtime_state.memory_and_threads()
            self._memory_read_ns = end_ns
            self.recorder.fact("sizes", (end_ns, runtime_state.graph_ops, runtime_state.traces))
        site = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        function = frame.f_code.co_name
        figures = (start_ns, end_ns, *self._memory, runtime_state.graph_ops, runtime_state.traces)
        self.recorder.write((ROUND, call, site, function, *figures))

    def flush_ops(self, at_ns: int) -> None:
        """Record which lines added operations to graphs since the last time."""
        if self.ops_by_site:
            added, self.ops_by_site = self.ops_by_site, {}
            for site, count in added.items():
                self.recorder.write((OPS, at_ns, site, count))


def describe(function: Callable[..., None], *args: Any) -> None:
    """Gather attributes; a library that looks different from what was expected costs an attribute, not the run."""
    try:
        function(*args)
    except Exception:  # whatever a library looks like, the target runs on
        pass
