"""A `tf.function` whose traces outlive the process.

The first call with a new kind of arguments makes a key. A stored trace with that key is bound to the
variables and run. Otherwise the function is traced once, run, and the graph that the runtime made of it is
stored. Every later call goes straight to what the first one found.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from glowplug.train.collector import collector_paused
from glowplug.train.fingerprint.contexts import COUNTS, SYMBOLS, count_on, counted_names, name_counts_kept
from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock.survey import Survey
from glowplug.train.fingerprint.walker import Walker
from glowplug.train.trainer.learned_builds import WatchedBuilds, build_ahead, unbuilt_parts
from glowplug.train.verify.second_opinion import SecondOpinion
from glowplug.train.verify.warned import Warned
from glowplug.train.verify.witness import Witness

from . import collect, portable, signature, structure
from .dispatch import TracedTypes, is_served_otherwise
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

    def before_trace(self, arguments: Arguments) -> None:
        """A trace with the types of these arguments is about to be made."""

    def traced(self, trace: Callable[[], Any]) -> Any:
        """Make a trace by calling `trace`, in whatever surroundings it needs."""

    def is_served_otherwise(self, arguments: Arguments) -> bool:
        """Whether a part of it has a more general trace by now, which a new trace would use."""

    def served(self, arguments: Arguments) -> None:
        """A trace with the types of these arguments was made or restored."""


@dataclass(frozen=True, slots=True)
class _Miss:
    """A trace that has to be made. It is kept if it has a key; `expected` is what is stored for that key."""

    arguments: Arguments
    generalized: bool
    counted: Mapping[str, int]  # how far names were counted before anything was built for it
    walker: Walker | None = None
    key: Key | None = None
    expected: Entry | None = None
    reason: list[str] = field(default_factory=list)
    unbuilt: list[int] = field(default_factory=list)  # layers and optimizers that its first trace may build


class CachedFunction:
    """Called like the `tf.function` it stands for; other attributes are that function's."""

    def __init__(self, function: Any, subject: Subject, caching: Caching) -> None:
        self._function = function
        self._subject = subject
        self._caching = caching
        self.types = TracedTypes(function)
        self._by_target: dict[Any, RestoredFunction | None] = {}  # None is a trace of TensorFlow's own
        self._by_kind: dict[Any, RestoredFunction | None] = {}
        self._opinions: dict[int, SecondOpinion] = {}  # by the id of what was restored
        self._failed = False
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function: restored, traced before, or traced now."""
        step = None
        with self._harmless():  # nothing of the function has run; what is wrong with the call, it says itself
            step = self._step(args, kwargs)
        return self._function(*args, **kwargs) if step is None else step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_function"], name)

    def _step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        """Return what to call instead of the function, or None. No part of the function runs in here."""
        if self._failed or not self._caching.active or not plain_eager():
            return None
        arguments = signature.arguments_of(self._function, args, kwargs)
        if arguments.kind not in self._by_kind:
            with self._lock:
                found = self._first(arguments)
            if isinstance(found, _Miss):
                return functools.partial(self._trace, found, args, kwargs)
            self._by_kind[arguments.kind] = found
        restored = self._by_kind[arguments.kind]
        if restored is None:
            return None
        step = functools.partial(restored, arguments.tensors())
        opinion = self._opinions.get(id(restored))
        return step if opinion is None or opinion.done else functools.partial(opinion.around, step)

    def _first(self, arguments: Arguments) -> RestoredFunction | _Miss | None:
        target = self.types.target(arguments.kind)
        if target in self._by_target:
            return self._by_target[target]
        miss = _Miss(dataclasses.replace(arguments, kind=target), target != arguments.kind, counted_names())
        try:
            with name_counts_kept(SYMBOLS):  # stock Keras makes none of them here
                self._subject.build(miss.arguments)
            return self._from_store(miss)
        except NoKeyError as error:
            self._caching.refused(self._subject, error.reason)
            return miss

    def _from_store(self, miss: _Miss) -> RestoredFunction | _Miss:
        with _never_fatal("its key cannot be made"):
            walker = self._subject.walk(miss.arguments)
            key, entry = self._caching.find(walker)
            unbuilt = [] if entry is not None else unbuilt_parts(walker)
            builds = self._caching.find_builds(walker) if unbuilt else None
            if builds is not None:
                build_ahead(walker, builds)
                walker, unbuilt = self._subject.walk(miss.arguments), []
                key, entry = self._caching.find(walker)
        miss = dataclasses.replace(miss, walker=walker, key=key, unbuilt=unbuilt)
        if entry is None:
            return dataclasses.replace(miss, reason=self._caching.missed(self._subject, key))
        if self._caching.verify:
            return dataclasses.replace(miss, expected=entry)
        try:
            with _never_fatal("it cannot be restored"):
                restored = RestoredFunction(add_functions(entry), entry, walker.variables, walker.tables)
                if len(miss.arguments.tensors()) != len(entry.plan["inputs"]):
                    raise DoesNotFitError("it has another number of arguments")
                count_on(miss.counted, entry.plan["counted"])
        except DoesNotFitError as error:
            self._caching.did_not_fit(self._subject, key, str(error))
            return dataclasses.replace(miss, key=None)
        self._serve(miss.arguments, restored)
        self._caching.restored(self._subject)
        self._put_on_probation(miss, restored, entry)
        return restored

    def _put_on_probation(self, miss: _Miss, restored: RestoredFunction, entry: Entry) -> None:
        """See to it that this restore is traced as well, if it is to be."""
        walker, key = miss.walker, miss.key
        assert walker is not None
        assert key is not None
        probation = self._caching.entries.probation(key)
        if not probation.restored():
            return
        args, kwargs = signature.examples(miss.arguments)
        arguments = dataclasses.replace(miss.arguments, args=args, kwargs=kwargs)

        def trace() -> Any:
            if not self._caching.active:
                raise NoKeyError("caching was switched off")
            if is_served_otherwise(self._function, arguments.kind) or self._subject.is_served_otherwise(arguments):
                raise NoKeyError("TensorFlow has a more general trace by now")
            self._subject.before_trace(arguments)
            return self._function.get_concrete_function(*args, **kwargs)

        def report(same: bool) -> None:
            self._caching.verified(self._subject, key, same)

        self._opinions[id(restored)] = SecondOpinion(
            self._subject.label, entry, walker, trace, lambda: self._subject.walk(arguments), probation, report
        )

    def _serve(self, arguments: Arguments, restored: RestoredFunction | None) -> None:
        self._by_target[arguments.kind] = restored
        self.types.add(arguments.kind)
        self._subject.served(arguments)

    def _trace(self, miss: _Miss, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Trace, run, and keep. What the function itself raises is raised as it is, and it runs once."""
        with self._lock:
            if miss.arguments.kind in self._by_target:  # another thread was sooner
                return self._function(*args, **kwargs)
            witness, warned = Witness(), Warned()
            builds = WatchedBuilds(miss.walker, miss.unbuilt)
            began_ns = time.monotonic_ns()
            with builds.watching():
                concrete = self._traced(miss, args, kwargs, witness, warned)
            took_ns = time.monotonic_ns() - began_ns
            with self._harmless():
                miss = self._with_what_was_built(miss, builds)
            if self._failed or miss.key is None or collect.someone_else_collects():
                return self._function(*args, **kwargs)
            lookup = self._caching.optimised.attach(concrete)
            with collect.collecting() as collected:
                result = self._function(*args, **kwargs)
            counted = {name: count - miss.counted.get(name, 0) for name, count in counted_names().items()}
            try:
                with _never_fatal("it cannot be kept"):
                    assert miss.walker is not None
                    after = self._subject.walk(miss.arguments)
                    captured = capture_plan(concrete, miss.walker.variables, miss.walker.tables)
                    witness.check(miss.walker.code, after.survey.generated, draws=builds.began)
                    _check_unchanged(miss.walker, after)
                    self._keep(
                        miss,
                        after.survey,
                        concrete,
                        collected,
                        captured,
                        {"trace_ns": took_ns, "warned": warned.found(), "counted": counted},
                    )
            except NoKeyError as error:
                self._caching.refused(self._subject, error.reason)
                self._caching.optimised.keep(lookup, concrete, collected)
            return result

    def _traced(
        self, miss: _Miss, args: tuple[Any, ...], kwargs: dict[str, Any], witness: Witness, warned: Warned
    ) -> Any:
        with self._harmless():
            self._subject.before_trace(miss.arguments)
            if miss.generalized:
                args, kwargs = signature.examples(miss.arguments)
        with collector_paused(), warned, witness:
            concrete = self._subject.traced(lambda: self._function.get_concrete_function(*args, **kwargs))
        with self._harmless():
            if miss.walker is not None:
                miss.walker.code.wrappers.remember_traces()
            self._serve(miss.arguments, None)
            self._caching.traced(self._subject)
        return concrete

    def _with_what_was_built(self, miss: _Miss, watched: WatchedBuilds) -> _Miss:
        """Keep what the first trace built; the second, which is the one that runs, belongs to what is there now."""
        try:
            builds = watched.found()
            if miss.walker is None or not builds:
                return miss
            walker = self._subject.walk(miss.arguments)
            key, _ = self._caching.find(walker)
            self._caching.keep_builds(self._subject, miss.walker, builds)
            return dataclasses.replace(miss, walker=walker, key=key, unbuilt=[])
        except NoKeyError as error:
            self._caching.refused(self._subject, error.reason)
            return dataclasses.replace(miss, key=None)

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """What goes wrong inside is said, and later calls are left to TensorFlow."""
        try:
            yield
        except Exception as error:
            self._failed = True
            self._caching.failed(self._subject.label, error)

    def _keep(
        self,
        miss: _Miss,
        later: Survey,
        concrete: Any,
        collected: collect.Collected,
        captured: tuple[list[list[Any]], dict[str, bytes]],
        more: dict[str, Any],
    ) -> None:
        assert miss.walker is not None
        assert miss.key is not None
        traced = signature.traced_shapes(concrete, len(miss.arguments.tensors()))
        if not signature.same_types(concrete.function_type, miss.arguments.kind):
            raise NoKeyError("TensorFlow traced it for other types than expected")
        graph = concrete.graph.as_graph_def()
        plan, blobs = _stored_form(concrete, collected, captured, traced)
        plan |= more
        blobs["stock"] = miss.walker.survey.encoded(later)
        blobs["trace"] = zlib.compress(graph.SerializeToString(), 1)
        if miss.expected is None:
            self._caching.keep(self._subject, miss.key, plan, blobs, seeded=_seeded(graph), reason=miss.reason)
        else:
            same = same_trace(miss.expected.blobs["trace"], blobs["trace"])
            self._caching.verified(self._subject, miss.key, same)


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
    found = [each for each in changes(first, second) if each.component != COUNTS]
    if found:
        raise NoKeyError(f"tracing it changed what it depends on ({found[0]})")
    stock = before.survey.changed_since(after.survey)
    if stock:
        raise NoKeyError(f"tracing it changed {stock[0]}")


def _stored_form(
    concrete: Any,
    collected: collect.Collected,
    captured: tuple[list[list[Any]], dict[str, bytes]],
    traced: list[list[Any]],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    captures, constants = captured
    graph = collect.graph_of(collected, concrete)
    functions = portable.to_functions(graph, concrete)
    plan = {
        "traced_as": concrete.name.decode(),
        "operations": sorted({node.op for function in functions for node in function.node_def}),
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


def _seeded(graph: Any) -> bool:
    """Whether a graph holds random operations whose seeds were chosen while it was traced."""
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return any(node.attr[name].i for node in nodes for name in ("seed", "seed2") if name in node.attr)


def plain_eager() -> bool:
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
