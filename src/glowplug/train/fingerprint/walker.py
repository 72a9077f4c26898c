"""Walks everything a step can reach and turns it into a key, by value and by shape of the object graph.

Objects are numbered in the order they are met, and met again only by number, so that two object graphs have
the same key exactly when they are isomorphic: the n-th variable of the one plays the part of the n-th
variable of the other. That is what binds a restored graph to its variables. Values of variables are not part
of the key.
"""

from __future__ import annotations

import collections
import operator
import types
from functools import lru_cache
from typing import Any

from .attributes import attributes_of
from .code import CodeReader
from .errors import NoKeyError
from .leaves import leaf_text
from .replacements import replacements
from .tables import is_table, table_spec
from .tokens import TokenStream
from .trusted import is_stock_module, registered_functions
from .variables import is_variable, variable_spec

_LIMIT = 2_000_000  # objects; a walk this long has left the model
_PRIMITIVES = (int, float, complex, str, bytes)
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made while the program ran
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
        self._initializers: list[tuple[Any, str]] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # an id is unique only while its object lives

    def visit(self, value: object, path: str) -> None:
        """Add `value`, which was reached as `path`, to the key; raise `NoKeyError` if it has no value to
        hash.
        """
        text = leaf_text(value)
        if text is not None:
            self.stream.leaf(path, type(value).__name__, text)
        elif isinstance(value, tuple) or not self._met(value):  # equal tuples may or may not be one object
            try:
                self._visit_new(value, path)
            except RecursionError:
                raise NoKeyError(f"{path} is nested too deeply") from None

    def finish(self) -> None:
        """Add what no object leads to: replaced and registered functions, and what custom code may
        have read.
        """
        replaced = replacements()
        self.stream.emit("aliases", replaced.aliases.encode())
        for place, value in [*replaced.found, *registered_functions()]:
            self.stream.emit("replaced", place.encode())
            self.visit(value, place)
        self.code.finish()
        if self.code.custom and self._root is not None:
            root, names = self._root
            for name in sorted(names & attributes_of(root).keys()):
                self.stream.emit("attribute", name.encode())
                self.visit(attributes_of(root)[name], f"model.{name}")
        if self.code.reads_names:
            self.stream.enter("names")
            for index, name in enumerate(self.names):
                self.stream.leaf(f"name {index}", "name", name)
        if self.code.reads_initializers:
            self.stream.enter("code")
            for initializer, path in self._initializers:
                self._visit_attributes(initializer, path)

    def _met(self, value: object) -> bool:
        number = self._numbers.get(id(value))
        if number is not None:
            self.stream.emit("again", b"%d" % number)
            return True
        if len(self._kept) > _LIMIT:
            raise NoKeyError(f"more than {_LIMIT:,} objects are reachable")
        self._numbers[id(value)] = len(self._kept)
        self._kept.append(value)
        return False

    def _visit_new(self, value: Any, path: str) -> None:
        if is_variable(value):
            self._visit_variable(value, path)
        elif is_table(value):
            self.stream.leaf(path, "table", f"table {len(self.tables)}: {table_spec(value)}")
            self.tables.append(value)
        elif isinstance(value, (dict, types.MappingProxyType)):
            self._visit_dict(value, path)
        elif isinstance(value, (list, tuple, collections.deque)):
            self._visit_sequence(value, path)
        elif isinstance(value, (set, frozenset)):
            self._visit_set(value, path)
        elif not self.code.visit(value, path):
            self._visit_object(value, path)

    def _visit_variable(self, variable: Any, path: str) -> None:
        self.stream.leaf(path, "variable", f"variable {len(self.variables)}: {variable_spec(variable)}")
        self.variables.append(variable)
        self.names.append(str(getattr(variable, "path", variable.name)))
        for name in ("constraint", "regularizer"):
            attached = getattr(variable, name, None)
            if attached is not None:
                self.stream.emit(name)
                self.visit(attached, f"{path}.{name}")

    def _visit_sequence(self, value: Any, path: str) -> None:
        self.stream.emit("tuple" if isinstance(value, tuple) else "list", b"%d" % len(value))
        self._visit_container_class(value, path)
        for index, item in enumerate(value):
            self.visit(item, f"{path}[{index}]")

    def _visit_dict(self, value: Any, path: str) -> None:
        self.stream.emit("dict", b"%d" % len(value))
        self._visit_container_class(value, path)
        if isinstance(value, collections.defaultdict):
            self.visit(value.default_factory, f"{path}.default_factory")
        for key, item in list(value.items()):
            self.visit(key, f"{path} key")
            self.visit(item, f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[…]")

    def _visit_set(self, value: Any, path: str) -> None:
        texts = []
        for item in value:
            text = leaf_text(item)
            if text is None:
                raise NoKeyError(f"{path} is a set of {type(item).__name__}, which has no order")
            texts.append(f"{type(item).__name__} {text}")
        self._visit_container_class(value, path)
        self.stream.leaf(path, "set", "{" + ", ".join(sorted(texts)) + "}")

    def _visit_container_class(self, value: object, path: str) -> None:
        kind = type(value)
        if not is_stock_module(kind.__module__):
            self.visit(kind, f"type of {path}")
            self._visit_attributes(value, path)

    def _visit_object(self, value: Any, path: str) -> None:
        symbolic, initializer = _leaf_like_types()
        kind: Any = type(value)
        if isinstance(value, symbolic):
            self.stream.leaf(path, "tensor", f"{value.dtype}{value.shape} {value.sparse} {value.ragged}")
        elif isinstance(value, initializer) and is_stock_module(kind.__module__) and _is_named_so(path):
            # Its work is done: the variable exists, with a value that is not part of the key. Under another name it
            # may be something that a step calls.
            self.stream.leaf(path, "initializer", kind.__qualname__)
            self._initializers.append((value, path))
        elif isinstance(value, _GETTERS):
            self.stream.leaf(path, "getter", repr(value))
        else:
            component = _component_of(kind)
            if component is not None:
                self.parts.append(value)
            previous = self.stream.enter(component or self.stream.current)
            try:
                self._visit_state(value, kind, path)
            finally:
                self.stream.enter(previous)

    def _visit_state(self, value: Any, kind: Any, path: str) -> None:
        if _has_hidden_state(kind):
            raise NoKeyError(f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be hashed by value")
        self.stream.emit("object", kind.__qualname__.encode())
        if isinstance(value, _PRIMITIVES):
            base = next(each for each in _PRIMITIVES if isinstance(value, each))
            self.stream.leaf(path, base.__name__, base.__repr__(value))
        self.visit(kind, f"type of {path}")
        name = getattr(value, "__dict__", {}).get("name")
        if isinstance(name, str):
            self.names.append(name)
        self._visit_attributes(value, path)

    def _visit_attributes(self, value: object, path: str) -> None:
        attributes = attributes_of(value)
        if attributes.get("_exclude_from_weight_decay_pattern") is not None:
            self.code.reads_names = True  # an optimizer matches it with the names of variables
        for name in sorted(attributes.keys() - self._postponed.get(id(value), frozenset())):
            self.stream.emit("attribute", name.encode())
            self.visit(attributes[name], f"{path}.{name}")


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
