"""Hashes code by value: functions, methods, classes and what they reach.

Stock code is a name, and must be admitted. Custom code is its bytecode and constants, its defaults, its closure and
every global it reads. Line numbers and file names do not count.

Custom code may mention what a step must not use: a method that writes a file beside one that computes. Such a mention
is an objection to that code, not to the step. Whether the code runs in a trace is for a witness to see: a trace in
which no code with an objection ran depends on nothing but what is in the key.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import sys
import types
import weakref
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from .abstract import registered_subclasses, remembered_answers
from .admission import admits
from .attributes import PRIVATE
from .bytecode import code_digest, source_digest
from .errors import NoKeyError
from .trusted import is_stock_class, is_stock_function, is_stock_module
from .uses import CONSTRUCTION, IMPORTED, Uses, nested, uses_of

if TYPE_CHECKING:
    from .walker import Walker

_DESCRIPTORS = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
)
_NOT_HASHED = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "__firstlineno__",
        "__static_attributes__",
        "_abc_impl",
    }
)
# What `functools` gives a wrapper, which is the wrapped function's or says nothing.
_OF_WRAPPERS = frozenset(
    {"__wrapped__", "__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "cache_parameters"}
)
_OF_CACHED_PROPERTIES = frozenset({"func", "attrname", "lock", "__doc__", "__module__"})
_NO_VALUE = object()


class CodeReader:
    """The part of a walk that deals with code.

    `watched` are traces of nested functions that were made inside a trace of a step.
    `custom` turns true once anything that is not stock was reached. `hashed` is all custom code that is in the key,
    each with what it reads; `objections` say why some of it must not run in a trace.
    """

    watched: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self.custom = False
        self.reads_names = False
        self.reads_initializers = False
        self.hashed: dict[types.CodeType, Uses] = {}
        self.objections: dict[types.CodeType, str] = {}
        self._functions: list[tuple[Any, list[Any]]] = []  # of TensorFlow's, with the traces that they had
        self.converts = False  # whether TensorFlow may read sources again, to convert them
        self._written: list[types.FunctionType] = []  # the custom ones, in the order they were met
        self._makers_of_names: list[types.FunctionType] = []
        self._readers_of_types: list[types.FunctionType] = []
        self._readers_of_signatures: list[types.FunctionType] = []
        self._unknown_types: list[str] = []
        self._pieces: set[str] = set()
        self._members: set[int] = set()  # functions of the class whose members are being hashed, by id

    def remember_traces(self) -> None:
        """The functions that this walk has met were traced inside a trace of the step: what they read is in its key."""
        for function, earlier in self._functions:
            self.watched.update(trace for trace in traces_of(function) if trace not in earlier)

    def finish(self, texts: set[str]) -> None:
        """Add what depends on all that was met; `texts` are values that may be names, or pieces of names."""
        pieces = sorted(self._pieces | texts)
        if pieces:
            for function in self._makers_of_names:
                reason = (
                    f"{function.__qualname__} reads attributes by names that are put together, maybe from {pieces[0]!r}"
                )
                self._object(function, reason)
        if self._readers_of_signatures:
            for function in list(self._written):
                self._visit_part(dict(function.__annotations__), f"{function.__qualname__} annotations")
        for reason in self._unknown_types[:1]:
            for function in (*self._readers_of_types, *self._readers_of_signatures):
                self._object(function, reason)
        if self.converts:
            for function in self._written:
                self._emit("source", source_digest(function.__code__))

    def visit(self, value: Any, path: str) -> bool:
        """Hash `value` if it is code of any kind, and say whether it was."""
        kind = type(value)
        if issubclass(kind, type):
            self._visit_class(value, path)
        elif kind is types.FunctionType:
            self.visit_function(value, path)
        elif kind is types.MethodType:
            self._emit("method")
            self._walker.visit(value.__self__, f"{path}.__self__")
            self._walker.visit(value.__func__, path)
        elif kind in (types.BuiltinFunctionType, *_DESCRIPTORS):
            self._visit_builtin(value, path)
        elif issubclass(kind, types.ModuleType):
            raise NoKeyError(f"{path} is the module {value.__name__} itself, used as a value")
        else:
            return self._visit_wrapper(value, path)
        return True

    def visit_function(self, function: types.FunctionType, path: str) -> None:
        """Hash a Python function."""
        if is_stock_function(function):
            self._visit_stock_function(function, path)
            return
        self.custom = True
        previous = self._walker.stream.enter("code")
        owner, self._walker.owner = self._walker.owner, function.__module__
        try:
            self._visit_custom_function(function, function.__qualname__)
        finally:
            self._walker.owner = owner
            self._walker.stream.enter(previous)

    def _visit_stock_function(self, function: types.FunctionType, path: str) -> None:
        module, name = str(function.__module__), function.__qualname__
        if not admits(module, name):
            raise NoKeyError(f"{path} is {module}.{name}, which is not known to be a function of its arguments")
        self._emit("stock function", f"{module}.{name}")
        if not _is_at_home(function):
            self._hash_code(function.__code__)
            self._walker.visit(function.__defaults__, f"{path} defaults")
            self._walker.visit(function.__kwdefaults__, f"{path} keyword defaults")
            self._visit_closure(function, path)

    def _visit_custom_function(self, function: types.FunctionType, path: str) -> None:
        self._emit("function", f"{function.__qualname__} {function.__name__}")
        digest = self._hash_code(function.__code__)
        self._walker.stream.leaf(path, "code", digest)
        uses = uses_of(function.__code__)
        for code in nested(function.__code__):
            self.hashed[code] = uses
        self._walker.visit(function.__defaults__, f"{path} defaults")
        self._walker.visit(function.__kwdefaults__, f"{path} keyword defaults")
        self._walker.visit(dict(function.__dict__), f"{path}.__dict__")
        self._visit_closure(function, path)
        hidden = uses.hidden(PRIVATE)
        if hidden is not None:
            self._object(function, f"{path} reads {hidden}, which no key holds")
        if not (function.__name__ in CONSTRUCTION and id(function) in self._members):
            self.reads_names = self.reads_names or uses.reads_names
            self.reads_initializers = self.reads_initializers or uses.reads_initializers
        if uses.makes_sets:
            self._object(
                function, f"{path} makes a set, whose order follows from hashes that are others in every process"
            )
        if uses.writes_globals:
            self._object(function, f"{path} writes the global {min(uses.writes_globals)}")
        if uses.reads_clock:
            self._object(function, f"{path} handles times of numpy, which has a clock")
        if uses.reads_types:
            self._readers_of_types.append(function)
        if uses.reads_signatures:
            self._readers_of_signatures.append(function)
        if getattr(function, "__builtins__", None) is not vars(builtins):
            self._object(function, f"{path} has builtins of its own")
        if type(function.__globals__) is not dict:
            self._object(function, f"{path} has globals that are a {type(function.__globals__).__name__}")
        self._written.append(function)
        self._pieces |= uses.pieces
        if uses.makes_up_names:
            self._makers_of_names.append(function)
        for chain in uses.chains:
            if function.__code__ in self.objections:
                return  # no trace in which it runs is kept, and what it reads may depend on what is loaded by now
            try:
                self._visit_chain(function, chain, path)
            except NoKeyError as error:
                self._object(function, error.reason)

    def object_to(self, value: Any, reason: str) -> None:
        """Remember why no code of a function or class must run in a trace."""
        members = type.__getattribute__(value, "__dict__").values() if issubclass(type(value), type) else [value]
        for function in filter(None, map(_underlying, members)):
            self._object(function, reason)

    def _object(self, function: types.FunctionType, reason: str) -> None:
        """Remember why this code must not run in a trace."""
        self._emit("objection", reason)
        for code in nested(function.__code__):
            self.objections.setdefault(code, reason)

    def _visit_closure(self, function: types.FunctionType, path: str) -> None:
        for name, content in _closure_of(function).items():
            self._emit("cell", name)
            if issubclass(type(content), types.ModuleType):
                self._emit("module", content.__name__)  # what is read of it is followed like a global
            elif not (name == "__class__" and isinstance(content, type)):
                self._walker.visit(content, f"{path} closure {name}")

    def _visit_chain(self, function: types.FunctionType, chain: tuple[str, ...], path: str) -> None:
        """Hash what a chain of names leads to: through modules, up to the first thing that is none."""
        value, shown = self._start_of(function, chain[0], path)
        if value is _NO_VALUE:
            return
        for name in chain[1:]:
            if not issubclass(type(value), types.ModuleType):
                break
            shown = f"{shown}.{name}"
            value = self._attribute_of(value, name, shown, path)
            if value is _NO_VALUE:
                return
        if issubclass(type(value), types.ModuleType):
            raise NoKeyError(f"{path} handles the module {shown} as a value")
        self._emit("global", shown)
        self._check_admitted(value, shown, path)
        self._walker.visit(value, f"global {shown}")

    def _start_of(self, function: types.FunctionType, name: str, path: str) -> tuple[Any, str]:
        if name.startswith(IMPORTED):
            return self._imported(function, name.removeprefix(IMPORTED), path)
        closure = _closure_of(function)
        if name in closure:
            return closure[name], name
        if name in function.__code__.co_freevars:
            self._emit("empty cell", name)
        elif name in function.__globals__:
            return function.__globals__[name], name
        elif name in vars(builtins):
            value = vars(builtins)[name]
            if not admits("builtins", name):
                raise NoKeyError(f"{path} uses {name}()")
            self._emit("builtin", name)
            if type(value) is types.FunctionType:
                return value, name
        else:
            self._emit("undefined", name)
        return _NO_VALUE, name

    def _imported(self, function: types.FunctionType, name: str, path: str) -> tuple[Any, str]:
        dots = len(name) - len(name.lstrip("."))
        if dots:
            package = str(function.__globals__.get("__package__") or "").split(".")
            name = ".".join([*package[: len(package) - dots + 1], *filter(None, [name[dots:]])])
        if name not in sys.modules and is_stock_module(name) and admits(name, ""):
            import_module(name)  # the step would
        module = sys.modules.get(name)
        if module is None:
            raise NoKeyError(f"{path} imports {name} while it runs")
        return module, name

    def _attribute_of(self, module: Any, name: str, shown: str, path: str) -> Any:
        space = vars(module)
        if name in space:
            return space[name]
        if not is_stock_module(module.__name__):
            if type(module) is not types.ModuleType:
                raise NoKeyError(f"{path} reads {shown} of a module with a class of its own")
            if "__getattr__" in space:
                self._emit("module __getattr__", shown)
                return space["__getattr__"]
        found = getattr(module, name, _NO_VALUE)
        if found is _NO_VALUE:
            self._emit("missing", shown)
        return found

    def _check_admitted(self, value: Any, shown: str, path: str) -> None:
        """Refuse stock code that is on no list, under the name by which it is used."""
        kind = type(value)
        if issubclass(kind, type) or kind is types.FunctionType:
            stock = is_stock_class(value) if issubclass(kind, type) else is_stock_function(value)
        else:
            stock = kind is types.BuiltinFunctionType and isinstance(value.__self__, (types.ModuleType, type(None)))
        if stock and not admits(str(value.__module__), value.__qualname__):
            raise NoKeyError(f"{path} uses {shown}, which is not known to be a function of its arguments")

    def _visit_class(self, kind: type[Any], path: str) -> None:
        previous = self._walker.stream.enter("code")
        try:
            if is_stock_class(kind):
                self._emit("stock class", f"{kind.__module__}.{kind.__qualname__}")
            else:
                self.custom = True
                self._visit_custom_class(kind)
            for base in (*kind.__mro__[1:], type(kind)):
                self._walker.visit(base, f"{path} base {base.__qualname__}")
        finally:
            self._walker.stream.enter(previous)

    def _visit_custom_class(self, kind: type[Any]) -> None:
        self._emit("custom class", f"{kind.__qualname__} {kind.__name__}")
        outer = self._members
        space = type.__getattribute__(kind, "__dict__")
        self._members = {id(_underlying(member)) for member in space.values()}
        try:
            for name in sorted(space):
                if name not in _NOT_HASHED:
                    self._emit("member", name)
                    self._walker.visit(space[name], f"{kind.__qualname__}.{name}")
        finally:
            self._members = outer
        for said in remembered_answers(kind):
            self._emit("remembered", said)
        for each in registered_subclasses(kind):
            self._emit("registered subclass")
            self._walker.visit(each, f"{kind.__qualname__} registered subclass")

    def _visit_builtin(self, value: Any, path: str) -> None:
        owner = getattr(value, "__self__", None)
        if type(value) is types.BuiltinFunctionType and (owner is None or isinstance(owner, types.ModuleType)):
            module = str(value.__module__)
            if not admits(module, value.__name__):
                raise NoKeyError(f"{path} is {module}.{value.__name__}, compiled code that is on no list")
        self._emit("builtin", f"{getattr(value, '__module__', '')}.{value.__qualname__}")
        if owner is not None and not isinstance(owner, types.ModuleType):
            self._walker.visit(owner, f"{path}.__self__")

    def _visit_wrapper(self, value: Any, path: str) -> bool:
        """Things that hold a function: unwrap them."""
        visit = self._walker.visit
        kind: Any = type(value)
        if kind in (staticmethod, classmethod):
            self._emit(kind.__name__)
            visit(value.__func__, path)
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
            self.converts = self.converts or bool(value._autograph)
            options = (
                value._autograph,
                value._jit_compile,
                value._reduce_retracing,
                repr(value.input_signature),
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
                self._visit_part(part, f"{path}.{name}")

    def _visit_part(self, part: Any, path: str) -> None:
        """Hash what a type or an annotation mentions; if it has no key, only code that asks for it is objected to."""
        for each in part if type(part) is tuple else (part,):
            try:
                self._walker.visit(each, path)
            except NoKeyError as error:
                self._emit("unknown")
                self._unknown_types.append(error.reason)

    def _visit_trace(self, trace: Any, path: str) -> None:
        """Hash a trace that a function has already: TensorFlow goes on with it, whatever its code would read now."""
        from glowplug.train.trace.same import function_digest

        from .variables import resource_of

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

    def _hash_code(self, code: types.CodeType) -> str:
        digest = code_digest(code)
        self._emit("bytecode", digest)
        return digest

    def _emit(self, tag: str, text: str = "") -> None:
        self._walker.stream.emit(tag, text.encode("utf-8", "surrogatepass"))


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
    methods = filter(None, (_underlying(each) for base in type(made).__mro__ for each in vars(base).values()))
    stored = {
        each.argval
        for method in methods
        for each in dis.get_instructions(method.__code__)
        if each.opname == "STORE_ATTR"
    }
    return frozenset(vars(made)) | stored


def _closure_of(function: types.FunctionType) -> dict[str, Any]:
    """Return what the closure of a function holds, without cells that are still empty."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _is_at_home(function: types.FunctionType) -> bool:
    """Whether a function is what its module has under its name: the survey of stock code has looked at it there."""
    value: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        if value is None or not isinstance(value, (type, types.ModuleType)):
            return False
        value = vars(value).get(name)
    return _underlying(value) is function


def _underlying(member: object) -> types.FunctionType | None:
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
