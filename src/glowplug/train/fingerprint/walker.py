"""Walks everything a step can reach and turns it into a key, by value and by shape of the object graph.

Objects are numbered in the order they are met, and met again only by number, so that two object graphs have
the same key exactly when they are isomorphic: the n-th variable of the one plays the part of the n-th
variable of the other. That is what binds a restored graph to its variables. Values of variables are not part
of the key.
"""

from __future__ import annotations

import collections
import gc
import logging
import operator
import threading
import types
from functools import lru_cache
from typing import Any

import numpy as np

from glowplug.train.fingerprint.code.reader import CodeReader
from glowplug.train.fingerprint.code.uses import is_left_out
from glowplug.train.fingerprint.stock.admission import admits_instance
from glowplug.train.fingerprint.stock.survey import Survey, survey
from glowplug.train.fingerprint.stock.trusted import (
    PACKAGES,
    installed_stamp,
    is_stock_class,
    registered_functions,
    root_of,
)

from .attributes import PRIVATE, attributes_of
from .contexts import COUNTS, automatic_names, visit_contexts
from .errors import NoKeyError
from .leaves import leaf_text
from .tables import is_table, table_spec
from .tokens import TokenStream
from .variables import is_variable, variable_attributes, variable_spec

_LIMIT = 2_000_000  # objects; a walk this long has left the model
_PRIMITIVES = (int, float, complex, str, bytes)
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made while the program ran
_OF_SYMBOLIC = frozenset(
    [
        "_dtype",
        "_keras_history",
        "_ragged",
        "_ragged_rank",
        "_row_splits_dtype",
        "_shape",
        "_sparse",
        "name",
        "record_history",
    ]
)
_TRANSPARENT = frozenset({object, types.SimpleNamespace, *_PRIMITIVES})  # their state is known or visible


class Walker:
    """One walk. `visit` the roots in a fixed order, then read `stream`, `variables` and `names`."""

    def __init__(self, postponed: tuple[object, frozenset[str]] | None = None) -> None:
        """`postponed` are attributes of one object that matter only if custom code was reached."""
        self._root = postponed
        self._postponed = {} if postponed is None else {id(postponed[0]): postponed[1]}
        self.stream = TokenStream()
        self.variables: list[Any] = []
        self.tables: list[Any] = []
        self.names: list[str] = []
        self.parts: list[Any] = []  # layers, models, optimizers, losses and metrics, in the order they were met
        self.code = CodeReader(self)
        self.survey: Survey
        self._initializers: list[tuple[Any, str]] = []
        self._numbers: dict[int, int] = {}
        self._leaves: dict[int, int] = {}  # the same for values that are their own description
        self._same: dict[int, int] = {}  # numbers of all plain values and tuples, equal or not, by id
        self._same_as: list[int] = []  # which of them was met, one after the other
        self._plain: list[object] = []  # kept, since an id is unique only while its object lives
        self._refused: dict[int, str] = {}
        self._name_like: set[str] = set()
        self.owner: str | None = None  # the module of the class whose attributes are being visited
        self._kept: list[object] = []  # an id is unique only while its object lives

    def visit(self, value: object, path: str) -> None:
        """Add `value`, which was reached as `path`, to the key; raise `NoKeyError` if it has no value to
        hash.
        """
        text = leaf_text(value)
        if type(value) is tuple or text is not None:
            self._same_as.append(self._same.setdefault(id(value), len(self._same)))
            self._plain.append(value)
        if text is not None:
            self.stream.leaf(path, type(value).__name__, text)
            if issubclass(type(value), _with_identity()) or _is_nan(value):
                self._identify(value)
            if type(value) is str and value != "__main__" and _may_be_named(value):
                self._name_like.add(value)
        elif type(value) is tuple or not self._met(value):  # equal tuples may or may not be one object
            try:
                self._visit_new(value, path)
            except RecursionError:
                raise self._refuse(value, f"{path} is nested too deeply") from None
            except NoKeyError as error:
                raise self._refuse(value, error.reason) from None

    def _identify(self, value: Any) -> None:
        """Add which of the leaves that can be told apart this is, and of which memory it is a view."""
        self.stream.emit("identity", b"%d" % self._number_of(value))
        base = value.base if isinstance(value, np.ndarray) else None
        if base is None:
            return
        self.stream.emit("view", f"{type(base).__qualname__} {self._number_of(base)}".encode())
        if isinstance(base, np.ndarray):
            offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            self.stream.emit("offset", b"%d" % offset)
            if base.nbytes != value.nbytes:
                self.visit(base, "what an array is a view of")

    def _number_of(self, leaf: object) -> int:
        number = self._leaves.setdefault(id(leaf), len(self._leaves))
        self._kept.append(leaf)
        return number

    def finish(self) -> None:
        """Add what no object leads to: replaced and registered functions, and what custom code may
        have read.
        """
        self.survey = survey()
        for place, value in self.survey.replaced:
            self.stream.emit("replaced", place.encode())
            self.visit(value, place)
        for place, value in (*self.survey.registered, *registered_functions()):
            self._visit_registered(place, value)
        visit_contexts(self)
        self.code.judge.visit_rest()
        if self.code.custom and self._root is not None:
            root, names = self._root
            attributes = attributes_of(root)[1]
            for name in sorted(names & attributes.keys()):
                self.stream.emit("attribute", name.encode())
                self.visit(attributes[name], f"model.{name}")
            self.code.judge.held |= names & attributes.keys()
        if self.code.reads_names:
            self.stream.enter("names")
            for index, name in enumerate(self.names):
                self.stream.leaf(f"name {index}", "name", name)
            self.stream.enter(COUNTS)
            for name, count in automatic_names():
                self.stream.leaf(name, "count", str(count))
        if self.code.reads_initializers:
            self.stream.enter("code")
            for initializer, path in self._initializers:
                self._visit_attributes(initializer, path)
        self.stream.enter("code")
        self.code.judge.finish(self._name_like)
        if self.code.judge.asks_identity:
            self.stream.emit("identities", repr(self._same_as).encode())

    def _visit_registered(self, place: str, value: object) -> None:
        """Add what stock code may look up by a name or a type. Code that cannot be hashed may be there, but not run.
        Nobody could see the state of an object being used.
        """
        self.stream.emit("registered", place.encode("utf-8", "surrogatepass"))
        stamp = installed_stamp(value)
        if stamp is not None:
            self.stream.leaf(place, "installed", stamp)  # no text of the program's: no name is put together from it
            return
        try:
            self.visit(value, place)
        except NoKeyError as error:
            if not issubclass(type(value), (type, types.FunctionType)):
                raise
            self.code.object_to(value, error.reason)

    def _met(self, value: object) -> bool:
        number = self._numbers.get(id(value))
        if number is not None:
            if id(value) in self._refused:
                raise NoKeyError(self._refused[id(value)])
            self.stream.emit("again", b"%d" % number)
            return True
        if len(self._kept) > _LIMIT:
            raise NoKeyError(f"more than {_LIMIT:,} objects are reachable")
        self._numbers[id(value)] = len(self._kept)
        self._kept.append(value)
        return False

    def _refuse(self, value: object, reason: str) -> NoKeyError:
        """Remember that a value has no key: met again, by whatever way, it still has none."""
        self._refused[id(value)] = reason
        return NoKeyError(reason)

    def _visit_new(self, value: Any, path: str) -> None:
        kind = type(value)
        if is_variable(value):
            self._visit_variable(value, path)
        elif is_table(value):
            self.stream.leaf(path, "table", f"table {len(self.tables)}: {table_spec(value)}")
            self.tables.append(value)
        elif kind in _wrappers():
            self.stream.emit("wrapper", kind.__name__.encode())
            self.visit(value.__wrapped__, path)
        elif kind is types.MappingProxyType:
            self.stream.emit("proxy")
            self.visit(gc.get_referents(value)[0], path)
        elif issubclass(kind, dict):
            self._visit_dict(value, path)
        elif issubclass(kind, (list, tuple, collections.deque)):
            self._visit_sequence(value, path)
        elif issubclass(kind, (set, frozenset)):
            self._visit_set(value, path)
        elif kind is slice:
            self.stream.emit("slice")
            self._visit_sequence((value.start, value.stop, value.step), path)
        elif kind is np.ndarray and value.dtype == object:
            self.stream.emit("object array", str(value.shape).encode())
            self._visit_sequence(list(value.flat), path)
        elif not self.code.visit(value, path):
            self._visit_object(value, path)

    def _visit_variable(self, variable: Any, path: str) -> None:
        self.stream.leaf(path, "variable", f"variable {len(self.variables)}: {variable_spec(variable)}")
        self.variables.append(variable)
        self.names.append(str(getattr(variable, "path", variable.name)))
        if not is_stock_class(type(variable)):  # TensorFlow's own class says when it was made, no more
            self.visit(type(variable), f"type of {path}")
        for name, value in variable_attributes(variable):
            self.code.judge.held.add(name.rpartition(".")[2])
            self.stream.emit("attribute", name.encode())
            self.visit(value, f"{path}.{name}")

    def _visit_sequence(self, value: Any, path: str) -> None:
        base = next(each for each in (list, tuple, collections.deque) if issubclass(type(value), each))
        items = list(value if is_stock_class(type(value)) else base.__iter__(value))
        self.stream.emit(base.__name__, b"%d" % len(items))
        self._visit_container_class(value, path)
        if base is collections.deque:
            self.stream.emit("maxlen", str(value.maxlen).encode())
        for index, item in enumerate(items):
            self.visit(item, f"{path}[{index}]")

    def _visit_dict(self, value: Any, path: str) -> None:
        custom = not is_stock_class(type(value))
        items = list(dict.items(value) if custom else value.items())
        self.stream.emit("dict", b"%d" % len(items))
        self._visit_container_class(value, path)
        if custom and issubclass(type(value), collections.OrderedDict):  # it has an order of its own
            self._visit_sequence(list(collections.OrderedDict.__iter__(value)), f"{path} order")
        if issubclass(type(value), collections.defaultdict):
            self.visit(value.default_factory, f"{path}.default_factory")
        for key, item in items:
            self.visit(key, f"{path} key")
            self.visit(item, f"{path}[{key!r}]" if type(key) in (str, int) else f"{path}[…]")

    def _visit_set(self, value: Any, path: str) -> None:
        base = set if issubclass(type(value), set) else frozenset
        texts = []
        items = list(value if is_stock_class(type(value)) else base.__iter__(value))
        for item in items:
            text = leaf_text(item)
            if text is None:
                raise NoKeyError(f"{path} is a set of {type(item).__name__}, which has no order")
            texts.append(f"{type(item).__name__} {text}")
        self._visit_container_class(value, path)
        # Code of the user's own may go through it in the order it has. Sets of texts that TensorFlow keeps have another
        # one in every process.
        if root_of(self.owner) not in PACKAGES or all(type(each) in (int, float) for each in items):
            self.stream.emit("order", "\0".join(texts).encode("utf-8", "surrogatepass"))
        self.stream.leaf(path, "set", "{" + ", ".join(sorted(texts)) + "}")

    def _visit_container_class(self, value: object, path: str) -> None:
        kind = type(value)
        self.stream.emit("class", f"{kind.__module__}.{kind.__qualname__}".encode())
        if not is_stock_class(kind):
            self.visit(kind, f"type of {path}")
            self._visit_attributes(value, path)
            return
        added = _put_on_container(value, str(kind.__module__))
        if added:
            self.code.judge.held |= added.keys()
            self.visit(added, f"{path}.__dict__")

    def _visit_object(self, value: Any, path: str) -> None:
        symbolic, initializer = _leaf_like_types()
        kind: Any = type(value)
        if issubclass(kind, symbolic):
            self._visit_symbolic(value, path)
        elif issubclass(kind, initializer) and is_stock_class(kind) and _is_named_so(path):
            # Its work is done: the variable exists, with a value that is not part of the key. Under another name it
            # may be something that a step calls; and if code of the user's own reads such a name, all are in the key.
            self.stream.leaf(path, "initializer", kind.__qualname__)
            self._initializers.append((value, path))
        elif kind in _GETTERS:
            self.stream.emit("getter", kind.__name__.encode())
            names = value.__reduce__()[1]
            for part in [part for name in names if type(name) is str for part in name.split(".")]:
                if is_left_out(part, PRIVATE):
                    raise NoKeyError(f"{path} gets {part}, which no key holds")
                self.code.judge.gets(part, path)
            self.visit(names, path)
        else:
            component = _component_of(kind)
            if component is not None:
                self.parts.append(value)
            previous = self.stream.enter(component or self.stream.current)
            owner, self.owner = self.owner, kind.__module__
            try:
                self._visit_state(value, kind, path)
            finally:
                self.owner = owner
                self.stream.enter(previous)

    def _visit_symbolic(self, value: Any, path: str) -> None:
        self.stream.leaf(path, "tensor", f"{value.dtype}{value.shape} {value.sparse} {value.ragged}")
        attributes = attributes_of(value)[1]
        self.names.append(str(attributes.get("name")))
        for name in sorted(attributes.keys() - _OF_SYMBOLIC):
            self.stream.emit("attribute", name.encode())
            self.visit(attributes[name], f"{path}.{name}")
            self.code.judge.held.add(name)

    def _visit_state(self, value: Any, kind: Any, path: str) -> None:
        if is_stock_class(kind) and not admits_instance(kind):
            raise NoKeyError(f"{path} is a {kind.__module__}.{kind.__qualname__}, whose state is not known")
        if _has_hidden_state(kind):
            raise NoKeyError(f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be hashed by value")
        self.stream.emit("object", kind.__qualname__.encode())
        base = next((each for each in _PRIMITIVES if issubclass(kind, each)), None)
        if base is not None:
            self.stream.leaf(path, base.__name__, base.__repr__(value))
        self.visit(kind, f"type of {path}")
        attributes = self._visit_attributes(value, path)
        name = attributes.get("name", attributes.get("_name"))
        if type(name) is str:
            self.names.append(name)
        if "_initial_seed" in attributes:
            self.names.append(f"seed {attributes['_initial_seed']!r}")  # its configuration tells it

    def _visit_attributes(self, value: object, path: str) -> dict[str, Any]:
        everything, attributes = attributes_of(value)
        if attributes.get("_exclude_from_weight_decay_pattern") is not None:
            self.code.reads_names = True  # an optimizer matches it with the names of variables
        visited = attributes.keys() - self._postponed.get(id(value), frozenset())
        self.code.judge.held |= visited
        for name in sorted(visited):
            self.stream.emit("attribute", name.encode())
            self.visit(attributes[name], f"{path}.{name}")
        return everything


def _is_nan(value: object) -> bool:
    """Whether it is a number that is in a list only if it is the very object there."""
    return isinstance(value, (float, complex, np.inexact)) and value != value  # noqa: PLR0124 - so it is defined


def _may_be_named(text: str) -> bool:
    """Whether a text is the name of something that a key leaves out, or a piece of one."""
    return text.startswith("_") or "__" in text or is_left_out(text, PRIVATE)


def _put_on_container(value: object, module: str) -> dict[str, Any]:
    """Return what was put on a list, dictionary or set of a stock class that is not its class' own."""
    try:
        state = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        return {}
    if module.startswith("tensorflow."):
        return {name: each for name, each in state.items() if not name.startswith("_")}
    if module.startswith("keras.src.utils.tracking"):
        state.pop("tracker", None)
    return state


@lru_cache(maxsize=1)
def _with_identity() -> tuple[type[Any], ...]:
    """Return the classes of leaves that code can tell apart where they are equal, since they can change."""
    from tensorflow.python.framework.ops import EagerTensor

    return np.ndarray, EagerTensor, logging.Logger, type(threading.Lock()), type(threading.RLock())


def _is_named_so(path: str) -> bool:
    return "initializer" in path.rpartition(".")[2]


@lru_cache(maxsize=4096)
def _has_hidden_state(kind: Any) -> bool:
    """Whether instances keep something in C, where a walk cannot see it."""
    if any("pybind11" in type(base).__name__ for base in kind.__mro__):
        return True
    if any(_adds_c_state(base) for base in kind.__mro__ if base not in _TRANSPARENT):
        return True
    described = any("__slots__" in vars(base) for base in kind.__mro__)
    return not kind.__dictoffset__ and not described


def _adds_c_state(base: Any) -> bool:
    if isinstance(vars(base).get("__new__"), types.BuiltinFunctionType):
        return True  # a class statement never makes one
    slots = vars(base).get("__slots__", ())
    # A class of Python's adds a word for each slot, one for `__dict__` and one for weak references.
    allowed = 8 * (2 + (1 if isinstance(slots, str) else len(tuple(slots))))
    if not base.__flags__ & _HEAP_TYPE:
        allowed = 0
    return bool(base.__basicsize__ - (base.__base__ or object).__basicsize__ > allowed)


@lru_cache(maxsize=4096)
def _component_of(kind: Any) -> str | None:
    from keras.src.layers.layer import Layer
    from keras.src.losses.loss import Loss
    from keras.src.metrics.metric import Metric
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    table = ((BaseOptimizer, "optimizer"), (Metric, "metrics"), (Loss, "loss"), (Layer, "model"))
    return next((name for base, name in table if issubclass(kind, base)), None)


@lru_cache(maxsize=1)
def _leaf_like_types() -> tuple[type[Any], type[Any]]:
    from keras.src.backend.common.keras_tensor import KerasTensor
    from keras.src.initializers.initializer import Initializer

    return KerasTensor, Initializer


@lru_cache(maxsize=1)
def _wrappers() -> frozenset[Any]:
    """Return what TensorFlow puts around dictionaries and tuples that are attributes of its objects."""
    from tensorflow.python.trackable import data_structures

    return frozenset({data_structures._DictWrapper, data_structures._TupleWrapper})
