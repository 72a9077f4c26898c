"""Graphs built by hand (TensorFlow 1 style): operations by line of user code, big constants. Runs in the target."""

from __future__ import annotations

import _thread

from . import runtime_state, user_lines
from .instruments import Instruments
from .recorder import now_ns
from .tf_runtime import RuntimeInstruments

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs

# Operations that follow each other this closely are one stretch of graph building.
GAP_NS = 300_000
BIG_CONSTANT_BYTES = 1 << 20


class GraphInstruments:
    """Counts operations of graphs that no `tf.function` traces, and times their making in stretches."""

    def __init__(self, instruments: Instruments, runtime: RuntimeInstruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.recorder = instruments.recorder
        self.runtime = runtime
        self._stretch = _Stretch()

    def flush(self) -> None:
        """Record what was not recorded yet: the process ends."""
        self._stretch.flush(self.recorder)
        self.tracker.flush_ops(now_ns())

    def install_ops(self, module: Any) -> None:
        """Instrument `tensorflow.python.framework.ops`."""
        patch = self.instruments.patch("TensorFlow")
        patch.replace(module.Graph, "_create_op_internal", lambda original: self._make_create(original, module.Graph))

    def _make_create(self, original: Any, graph_class: type) -> Any:
        tracker, recorder = self.tracker, self.recorder
        site_of, count_ops, get_ident = user_lines.user_site, runtime_state.count_graph_ops, _thread.get_ident
        stretch, main_thread = self._stretch, get_ident()

        def _create_op_internal(self: Any, op_type: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if self.__class__ is not graph_class:
                return original(self, op_type, inputs, *args, **kwargs)
            start_ns = now_ns()
            result = original(self, op_type, inputs, *args, **kwargs)
            runtime_state.graph_ops = count_ops(self)
            site = site_of()
            if site is not None:
                added = tracker.ops_by_site
                added[site] = added.get(site, 0) + 1
            if get_ident() == main_thread and not tracker.stack():
                stretch.extend(recorder, start_ns, now_ns(), site)
            if op_type == "Const":
                _record_constant(recorder, result, start_ns, site)
            return result

        return _create_op_internal

    def install_variables(self, module: Any) -> None:
        """Instrument `tensorflow.python.ops.variables`."""
        patch = self.instruments.patch("TensorFlow")
        patch.replace(module, "variables_initializer", self._make_initializer)

    def _make_initializer(self, original: Any) -> Any:
        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            variables = args[0] if args else kwargs.get("var_list", ())
            attrs["variables"] = len(variables)
            user_lines.with_site(attrs, 4)

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            self.runtime.initializers.add(str(result.name))

        name = "variables_initializer"
        return self.tracker.timed("build", name, "global_variables_initializer", enter=enter, leave=leave, loop=name)(
            original
        )

    def install_saver(self, module: Any) -> None:
        """Instrument `tensorflow.python.training.saver`."""
        patch = self.instruments.patch("TensorFlow")

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            user_lines.with_site(attrs, 4)

        timed = self.tracker.timed
        patch.replace(module.Saver, "__init__", timed("build", "saver", "Saver", enter=enter, loop="saver"))


class _Stretch:
    """Consecutive operations, recorded as one span once something else begins or time passes."""

    def __init__(self) -> None:
        self.start_ns = self.end_ns = self.count = 0
        self.site: str | None = None

    def extend(self, recorder: Any, start_ns: int, end_ns: int, site: str | None) -> None:
        if self.count and start_ns - self.end_ns < GAP_NS and recorder.count == self.mark:
            self.end_ns = end_ns
            self.count += 1
            return
        self.flush(recorder)
        self.start_ns, self.end_ns, self.count, self.site = start_ns, end_ns, 1, site
        self.mark = recorder.count

    def flush(self, recorder: Any) -> None:
        if self.count:
            attrs: Attrs = {"kind": "graph_ops", "count": self.count}
            if self.site is not None:
                attrs["site"] = self.site
            recorder.span(self.start_ns, self.end_ns, "build", "graph operations", attrs)
            self.count = 0

    mark = 0


def _record_constant(recorder: Any, operation: Any, start_ns: int, site: str | None) -> None:
    try:
        output = operation.outputs[0]
        shape = output.shape.as_list()
        size = output.dtype.size
        for dim in shape:
            size *= dim
        if size < BIG_CONSTANT_BYTES:
            return
        attrs: Attrs = {"kind": "constant", "bytes": size, "shape": shape, "dtype": output.dtype.name}
        if site is not None:
            attrs["site"] = site
        recorder.span(start_ns, now_ns(), "build", operation.name, attrs)
    except Exception:  # a shape that is not known says nothing
        return
