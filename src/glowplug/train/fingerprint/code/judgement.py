"""Judges code of the program's own by all that a walk has met: what may run in a trace, and what its key must hold.

Some of what code reads is known only in the end: whether a name is one that the program defines, whether what stands
on a stock class was put there, whether a type that is asked for has a key.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock.trusted import is_stock_class

from .bytecode import source_digest
from .names import names_of_code, unknown_name, unknown_pieces
from .uses import Uses, is_left_out

if TYPE_CHECKING:
    from glowplug.train.fingerprint.walker import Walker

READERS = (getattr, hasattr, operator.attrgetter, operator.methodcaller)  # of attributes, by a text
# What a survey of stock code digests, or finds to be the program's, wherever it stands.
_CODE = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    property,
    staticmethod,
    classmethod,
)
_OF_CLASSES = frozenset({"__abstractmethods__", "_abc_impl"})


class Judge:
    """Collects what code reads, and says in the end what is wrong with it, through `object_to`.

    `held` are names of attributes that the key holds. `asks_identity` turns true where code tells objects apart.
    """

    def __init__(self, walker: Walker, object_to: Callable[[types.FunctionType, str], None]) -> None:
        self._walker = walker
        self._object_to = object_to
        self.held: set[str] = set()
        self.asks_identity = False
        self.converts = False  # whether TensorFlow may read sources again, to convert them
        self.reads_by_text = False  # whether what reads attributes by a text was met as a value
        self._written: list[tuple[types.FunctionType, Uses]] = []  # in the order they were met
        self._read: list[tuple[types.FunctionType, frozenset[str]]] = []
        self._got: list[tuple[str, str]] = []  # by getters: where, and the name
        self._makers_of_names: list[types.FunctionType] = []
        self._unknown_types: list[str] = []
        self._pieces: set[str] = set()
        self._owners: dict[int, tuple[str, Any, Mapping[str, Any]]] = {}  # stock classes and functions, by id

    def add(self, function: types.FunctionType, uses: Uses) -> None:
        """Take a function of the program's own."""
        self._written.append((function, uses))
        self.held |= uses.stores
        self.held.update(function.__dict__)
        self.asks_identity = self.asks_identity or uses.asks_identity
        self._pieces |= uses.pieces
        self.reads(function, uses.judged)
        if uses.makes_up_names:
            self.makes_up_names(function)

    def reads(self, function: types.FunctionType, names: frozenset[str]) -> None:
        """Note attributes that a function reads of something that is not known."""
        self._read.append((function, names))

    def makes_up_names(self, function: types.FunctionType) -> None:
        """Note a function that reads attributes by names that it puts together."""
        self._makers_of_names.append(function)

    def gets(self, name: str, path: str) -> None:
        """Note an attribute that a value gets wherever it is called."""
        self._got.append((name, path))

    def mentions(self, part: Any, path: str) -> None:
        """Hash what a type or an annotation mentions; if it has no key, only code that asks for it is objected to."""
        try:
            self._walker.visit(part, path)
        except NoKeyError as error:
            self._walker.stream.emit("unknown")
            self._unknown_types.append(error.reason)

    def meets(self, owner: Any) -> None:
        """Note a stock class or function, on which a program may have put something."""
        space: Mapping[str, Any]
        if type(owner) is types.FunctionType:
            space = owner.__dict__
        else:
            space = type.__getattribute__(owner, "__dict__")
            self.held |= names_of_code(owner)
        self._owners[id(owner)] = owner.__qualname__, owner, space

    def visit_rest(self) -> None:
        """Hash what only code that is in the key makes matter: annotations, and data on stock classes and functions, of
        which a survey has digests where they are plain values.
        """
        for kind in _classes_in_traces():
            self._owners.setdefault(id(kind), (kind.__qualname__, kind, type.__getattribute__(kind, "__dict__")))
        done: set[tuple[int, str]] = set()
        annotated = count = -1
        while count != len(self._written):  # what is found there may be code, too
            count = len(self._written)
            if any(uses.reads_signatures for _, uses in self._written):
                for function, _ in self._written[max(annotated, 0) : count]:
                    self.mentions(dict(function.__annotations__), f"{function.__qualname__} annotations")
                annotated = count
            mentioned = frozenset().union(*(uses.names | uses.texts for _, uses in self._written)) - _OF_CLASSES
            for number, (place, _, space) in list(self._owners.items()):
                for name in sorted(mentioned & space.keys()):
                    if (number, name) not in done and not _is_code(space[name]):
                        done.add((number, name))
                        self._visit_data(f"{place}.{name}", name, space[name])

    def _visit_data(self, place: str, name: str, value: Any) -> None:
        if is_left_out(name, frozenset()):
            return
        self._walker.stream.emit("put on stock code", place.encode("utf-8", "surrogatepass"))
        try:
            self._walker.visit(value, place)
        except NoKeyError as error:
            for function, uses in self._written:
                if name in uses.names | uses.texts:
                    self._object_to(function, error.reason)

    def finish(self, texts: set[str]) -> None:
        """Object to what reads something that no key holds, and add what depends on all that was met.

        `texts` are values that may be names, or pieces of names.
        """
        self._judge_names(texts)
        for reason in self._unknown_types[:1]:
            for function, uses in self._written:
                if uses.reads_types or uses.reads_signatures:
                    self._object_to(function, reason)
        if self.converts:
            for function, _ in self._written:
                self._walker.stream.emit("source", source_digest(function.__code__).encode())

    def _judge_names(self, texts: set[str]) -> None:
        for function, names in self._read:
            unknown = unknown_name(names, self.held)
            if unknown is not None:
                self._object_to(function, f"{function.__qualname__} reads {unknown}, which no key is known to hold")
        for name, path in self._got:
            if unknown_name(frozenset({name}), self.held) is not None:
                raise NoKeyError(f"{path} gets {name}, which no key is known to hold")
        pieces = unknown_pieces(self._pieces | texts, self.held)
        makers = self._makers_of_names
        if self.reads_by_text:
            makers = [*makers, *(function for function, _ in self._written)]
        if pieces:
            for function in makers:
                name = function.__qualname__
                reason = f"{name} reads attributes by names that are put together, maybe from {pieces[0]!r}"
                self._object_to(function, reason)


def _is_code(value: object) -> bool:
    """Whether a survey looks after it, or a witness sees it run: code, and what is called when it is read."""
    kind = type(value)
    return issubclass(kind, _CODE) or (is_stock_class(kind) and hasattr(kind, "__get__"))


@lru_cache(maxsize=1)
def _classes_in_traces() -> tuple[Any, ...]:
    """Return the classes of what a trace makes itself: nothing leads to them but a name in code."""
    return tuple(_bases_of_what_is_made())


def _bases_of_what_is_made() -> Iterator[Any]:
    import tensorflow as tf
    from keras.src.backend import Variable
    from keras.src.backend.common.keras_tensor import KerasTensor
    from tensorflow.python.framework.ops import EagerTensor, SymbolicTensor
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    kinds = (SymbolicTensor, EagerTensor, KerasTensor, Variable, ResourceVariable, tf.GradientTape, tf.Operation)
    return iter({base: None for kind in kinds for base in kind.__mro__ if base is not object})
