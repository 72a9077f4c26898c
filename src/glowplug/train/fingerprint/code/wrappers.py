"""Hashes what holds code, or what was made of it: methods, partials, caches, types, functions of TensorFlow."""

from __future__ import annotations

import dis
import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock.admission import admits

from .judgement import Judge

if TYPE_CHECKING:
    from glowplug.train.fingerprint.walker import Walker

# What `functools` gives a wrapper, which is the wrapped function's or says nothing.
_OF_WRAPPERS = frozenset(
    {"__wrapped__", "__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "cache_parameters"}
)
_OF_CACHED_PROPERTIES = frozenset({"func", "attrname", "lock", "__doc__", "__module__"})
_NO_VALUE = object()


class WrapperReader:
    """The part of a walk that deals with what holds code.

    `watched` are traces of nested functions that were made inside a trace of a step.
    """

    watched: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

    def __init__(self, walker: Walker, judge: Judge, emit: Callable[[str, str], None]) -> None:
        self._walker = walker
        self._judge = judge
        self._emit_text = emit
        self._functions: list[tuple[Any, list[Any]]] = []  # of TensorFlow's, with the traces that they had

    def remember_traces(self) -> None:
        """The functions that this walk has met were traced inside a trace of the step: what they read is in its key."""
        for function, earlier in self._functions:
            self.watched.update(trace for trace in traces_of(function) if trace not in earlier)

    def visit(self, value: Any, path: str) -> bool:
        """Hash `value` if it holds code, and say whether it does."""
        visit = self._walker.visit
        kind: Any = type(value)
        if kind in (staticmethod, classmethod):
            self._emit(kind.__name__)
            visit(value.__func__, path)
            visit(_without(value.__dict__, _OF_WRAPPERS), path)
        elif kind is property:
            self._emit("property")
            for name in ("fget", "fset", "fdel"):
                visit(getattr(value, name), path)
        elif kind is functools.partial:
            self._emit("partial")
            visit([value.func, list(value.args), dict(value.keywords), dict(value.__dict__)], path)
        elif kind is functools._lru_cache_wrapper:
            self._emit("lru_cache", str(value.cache_parameters()))
            if value.cache_info().currsize:
                raise NoKeyError(f"{path} is a cache that has been filled, and its values cannot be seen")
            visit(value.__wrapped__, path)
            visit(_without(value.__dict__, _OF_WRAPPERS), path)
        elif kind is functools.cached_property:
            self._emit("cached_property")
            visit(value.func, path)
            visit(_without(vars(value), _OF_CACHED_PROPERTIES), path)
        elif kind is weakref.ref:
            self._emit("weak reference")
            visit(value(), path)
            visit(value.__callback__, f"{path} callback")
        elif kind.__module__ == "typing" or kind is types.GenericAlias:
            self._visit_type(value, path)
        elif kind.__module__ == "_collections" and kind.__name__ == "_tuplegetter":
            self._emit("field", str(value.__reduce__()[1][0]))
        elif kind.__module__ == "numpy" and kind.__name__ in ("ufunc", "_ArrayFunctionDispatcher"):
            self._visit_numpy_function(value, path)
        elif kind.__module__ == "glowplug.train.stored":
            visit(value._stock, path)
        elif _is_tf_function(value):
            self._emit("tf.function")
            self._judge.converts = self._judge.converts or bool(value._autograph)
            options = (
                value._autograph,
                value._jit_compile,
                value._reduce_retracing,
                repr(value.input_signature),
                str(value._experimental_autograph_options),
                sorted(map(str, value._attributes.items())),
            )
            visit(list(options), f"{path} options")
            visit(_without(vars(value), _own_of_tf_functions()), path)
            earlier = [trace for trace in traces_of(value) if trace not in self.watched]
            for trace in earlier:
                self._visit_trace(trace, path)
            self._functions.append((value, earlier))
            visit(value.python_function, path)
        else:
            return False
        return True

    def _visit_type(self, value: Any, path: str) -> None:
        """Hash an alias, a variable or another form of `typing`, and what it was made of."""
        self._emit("annotation", f"{type(value).__qualname__} {value!r}")
        for name in _PARTS_OF_TYPES:
            part = getattr(value, name, _NO_VALUE) if name in dir(type(value)) or name in _parts(value) else _NO_VALUE
            if part is not _NO_VALUE:
                self._emit("part", name)
                for each in part if type(part) is tuple else (part,):
                    self._judge.mentions(each, f"{path}.{name}")

    def _visit_trace(self, trace: Any, path: str) -> None:
        """Hash a trace that a function has already: TensorFlow goes on with it, whatever its code would read now."""
        from glowplug.train.fingerprint.variables import resource_of
        from glowplug.train.trace.same import function_digest

        self._emit("trace", f"{trace.function_type} {function_digest(trace)}")
        variables = {id(resource_of(variable).handle): variable for variable in trace.variables}
        for external, _ in trace.graph.captures:
            self._walker.visit(variables.get(id(external), external), f"{path} capture")

    def _visit_numpy_function(self, value: Any, path: str) -> None:
        """One that numpy has under this name; `numpy.frompyfunc` hides a function of the user's."""
        import numpy

        name = value.__name__
        places = [vars(module) for module in (numpy, numpy.linalg, numpy.fft) if vars(module).get(name) is value]
        module = str(getattr(value, "__module__", "numpy") or "numpy")
        if not places or not admits(module, name) or not admits("numpy", name):
            raise NoKeyError(f"{path} is {module}.{name}, which is not known to be a function of its arguments")
        self._emit("numpy function", f"{module}.{name}")

    def _emit(self, tag: str, text: str = "") -> None:
        self._emit_text(tag, text)


_PARTS_OF_TYPES = (
    "__origin__",
    "__args__",
    "__metadata__",
    "__bound__",
    "__constraints__",
    "__supertype__",
    "__forward_arg__",
    "__forward_value__",
)


def _parts(value: Any) -> frozenset[str]:
    """Return the names of what an alias holds itself: whatever else is asked of it, it asks its origin for."""
    state = getattr(value, "__dict__", None)
    return frozenset(state) if type(state) is dict else frozenset()


def _without(space: Any, names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in space.items() if name not in names}


@functools.lru_cache(maxsize=1)
def _own_of_tf_functions() -> frozenset[str]:
    """Return what TensorFlow itself keeps on a `tf.function`, called or not."""
    import tensorflow as tf

    made = tf.function(lambda: None)
    methods = filter(None, (underlying(each) for base in type(made).__mro__ for each in vars(base).values()))
    stored = {
        each.argval
        for method in methods
        for each in dis.get_instructions(method.__code__)
        if each.opname == "STORE_ATTR"
    }
    return frozenset(vars(made)) | stored


def underlying(member: object) -> types.FunctionType | None:
    """Return the function that a member of a class stands for."""
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    if isinstance(member, property):
        member = member.fget
    return member if isinstance(member, types.FunctionType) else None


def _is_tf_function(value: object) -> bool:
    module = sys.modules.get("tensorflow.python.eager.polymorphic_function.polymorphic_function")
    return module is not None and type(value) is module.Function


def traces_of(function: Any) -> list[Any]:
    """Return the traces that a `tf.function` has, those of the instances included whose method it is."""
    each_instance = [each for each in list(function._descriptor_cache.values()) if _is_tf_function(each)]
    return [trace for each in (function, *each_instance) for trace in each._list_all_concrete_functions()]
