"""A `tf.function` whose traces outlive the process.

The first call with a new kind of arguments makes a key. A stored trace with that key is bound to the
variables and run. Otherwise the function is traced once, run, and the graph that the runtime made of it is
stored. Every later call goes straight to what the first one found.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker

from . import collect, portable, signature, structure
from .entry import Entry
from .key import Key, changes
from .restore import DoesNotFitError, RestoredFunction, add_functions, capture_plan
from .same import same_trace
from .signature import Arguments

if TYPE_CHECKING:
    from glowplug.train.caching import Caching


class Subject(Protocol):
    """What a function is a function of: says how to build it, what it reaches, and what to call it."""

    label: str
    kind: str

    def build(self, arguments: Arguments) -> None:
        """Create every variable that the function would create; raise `NoKeyError` if that is impossible."""

    def walk(self, arguments: Arguments) -> Walker:
        """Return a finished walk over everything the function reaches."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """What serves one kind of call. `run` takes the flat tensors."""

    run: Callable[[list[Any]], Any]
    layout: str
    traced: list[list[Any]]


class CachedFunction:
    """Called like the `tf.function` it stands for; other attributes are that function's."""

    def __init__(self, function: Any, subject: Subject, caching: Caching) -> None:
        self._function = function
        self._subject = subject
        self._caching = caching
        self._ready: dict[Any, _Ready] = {}
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function: restored, traced before, or traced now."""
        if not self._caching.active or not _plain_eager():
            return self._function(*args, **kwargs)
        arguments = signature.arguments_of(self._function, args, kwargs)
        ready = self._ready.get(arguments.kind)
        if ready is None:
            with self._lock:
                return self._first(arguments)
        return ready.run(arguments.tensors())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def _first(self, arguments: Arguments) -> Any:
        layout = signature.layout_of(arguments)
        for ready in self._ready.values():
            if ready.layout == layout and signature.fits(arguments, ready.traced):
                self._ready[arguments.kind] = ready
                return ready.run(arguments.tensors())
        try:
            self._subject.build(arguments)
            return self._from_store(arguments, layout)
        except NoKeyError as error:
            self._caching.refused(self._subject, error.reason)
            return self._trace(arguments, layout)

    def _from_store(self, arguments: Arguments, layout: str) -> Any:
        with _never_fatal("its key cannot be made"):
            walker = self._subject.walk(arguments)
            key, entry = self._caching.find(walker)
        if entry is None:
            return self._trace(arguments, layout, walker, key, reason=self._caching.missed(self._subject, key))
        if self._caching.verify:
            return self._trace(arguments, layout, walker, key, expected=entry)
        tensors = arguments.tensors()
        try:
            with _never_fatal("it cannot be restored"):
                restored = RestoredFunction(add_functions(entry), entry, walker.variables)
            if not signature.fits(arguments, restored.traced):
                raise DoesNotFitError("its arguments have other shapes")
            result = restored.first_call(tensors)
        except DoesNotFitError as error:
            self._caching.did_not_fit(self._subject, key, str(error))
            return self._trace(arguments, layout)
        self._caching.restored(self._subject)
        self._ready[arguments.kind] = _Ready(restored, layout, restored.traced)
        return result

    def _trace(
        self,
        arguments: Arguments,
        layout: str,
        walker: Walker | None = None,
        key: Key | None = None,
        *,
        expected: Entry | None = None,
        reason: list[str] | None = None,
    ) -> Any:
        with _collector_paused():
            concrete = self._function.get_concrete_function(*arguments.args, **arguments.kwargs)
        tensors = concrete.function_type.unpack_inputs(concrete.function_type.bind(*arguments.args, **arguments.kwargs))
        run = _runner(concrete)
        traced = signature.traced_shapes(concrete, len(tensors))
        self._ready[arguments.kind] = _Ready(run, layout, traced)
        self._caching.traced(self._subject)
        if walker is None or key is None or collect.someone_else_collects():
            return run(tensors)
        with collect.collecting() as collected:
            result = run(tensors)
        try:
            with _never_fatal("it cannot be kept"):
                _check_unchanged(walker, self._subject.walk(arguments))
                graph = concrete.graph.as_graph_def()
                plan, blobs = _stored_form(concrete, walker, collected, traced)
                blobs["trace"] = zlib.compress(graph.SerializeToString(), 1)
                if expected is None:
                    self._caching.keep(self._subject, key, plan, blobs, seeded=_seeded(graph), reason=reason or [])
                else:
                    self._caching.verified(self._subject, key, same_trace(expected.blobs["trace"], blobs["trace"]))
        except NoKeyError as error:
            self._caching.refused(self._subject, error.reason)
        return result


@contextlib.contextmanager
def _never_fatal(what: str) -> Iterator[None]:
    """A cache must not fail a run: whatever goes wrong inside becomes a reason to trace as usual, and is said."""
    try:
        yield
    except (NoKeyError, DoesNotFitError):
        raise
    except Exception as error:
        raise NoKeyError(f"{what} ({type(error).__name__}: {error})") from error


def _check_unchanged(before: Walker, after: Walker) -> None:
    """Refuse a function whose trace changes what it reads: restored, it would not do that."""
    first, second = (Key(walker.stream.components(), walker.stream.leaves()) for walker in (before, after))
    found = changes(first, second)
    if found:
        raise NoKeyError(f"tracing it changed what it depends on ({found[0]})")


def _stored_form(
    concrete: Any, walker: Walker, collected: collect.Collected, traced: list[list[Any]]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    captures, constants = capture_plan(concrete, walker.variables)
    graph = collect.graph_of(collected, concrete)
    functions = portable.to_functions(graph, concrete)
    plan = {
        "name": functions[-1].signature.name,
        "functions": len(functions),
        "results": len(concrete.outputs),
        "captures": captures,
        "inputs": traced,
        "outputs": structure.describe(concrete.structured_outputs),
        "nodes": len(functions[-1].node_def),
    }
    blobs = {f"function {number}": each.SerializeToString() for number, each in enumerate(functions)}
    return plan, {**blobs, **constants}


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """A trace makes hundreds of thousands of objects that stay: looking for garbage among them finds none."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _runner(concrete: Any) -> Callable[[list[Any]], Any]:
    def run(tensors: list[Any]) -> Any:
        return concrete._call_flat(tensors, concrete.captured_inputs)

    return run


def _seeded(graph: Any) -> bool:
    """Whether a graph holds random operations whose seeds were chosen while it was traced."""
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return any(node.attr[name].i for node in nodes for name in ("seed", "seed2") if name in node.attr)


def _plain_eager() -> bool:
    """Whether a call runs at once, unrecorded: not inside another function, a tape or a strategy."""
    import tensorflow as tf
    from tensorflow.python.eager import context, record
    from tensorflow.python.eager.polymorphic_function import eager_function_run

    current = context.context()
    return (
        current.executing_eagerly()
        and not eager_function_run.RUN_FUNCTIONS_EAGERLY
        and not record.could_possibly_record()
        and not current.op_callbacks
        and not tf.distribute.has_strategy()
    )
