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
import sys
import types
from importlib import import_module
from typing import TYPE_CHECKING, Any

from glowplug.train.fingerprint.attributes import PRIVATE
from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.stock.abstract import registered_subclasses, remembered_answers
from glowplug.train.fingerprint.stock.admission import admits
from glowplug.train.fingerprint.stock.trusted import is_stock_class, is_stock_function, is_stock_module

from .bytecode import code_digest
from .judgement import READERS, Judge
from .names import ALLOWED
from .uses import CONSTRUCTION, IMPORTED, Uses, nested, uses_of
from .wrappers import WrapperReader, underlying

if TYPE_CHECKING:
    from glowplug.train.fingerprint.walker import Walker

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
_NO_VALUE = object()


class CodeReader:
    """The part of a walk that deals with code.

    `custom` turns true once anything that is not stock was reached. `hashed` is all custom code that is in the key,
    each with what it reads; `objections` say why some of it must not run in a trace.
    """

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self.custom = False
        self.reads_names = False
        self.reads_initializers = False
        self.hashed: dict[types.CodeType, Uses] = {}
        self.objections: dict[types.CodeType, str] = {}
        self._members: set[int] = set()  # functions of the class whose members are being hashed, by id
        self.judge = Judge(walker, self._object)
        self.wrappers = WrapperReader(walker, self.judge, self._emit)

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
            return self.wrappers.visit(value, path)
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
        self.judge.meets(function)
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
        if uses.keeps_memos:
            self._object(function, f"{path} copies with a table of its own, or hands deepcopy on: it knows addresses")
        if getattr(function, "__builtins__", None) is not vars(builtins):
            self._object(function, f"{path} has builtins of its own")
        if type(function.__globals__) is not dict:
            self._object(function, f"{path} has globals that are a {type(function.__globals__).__name__}")
        self.judge.add(function, uses)
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
        for function in filter(None, map(underlying, members)):
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
            else:
                self._walker.visit(content, f"{path} closure {name}")

    def _visit_chain(self, function: types.FunctionType, chain: tuple[str, ...], path: str) -> None:
        """Hash what a chain of names leads to: through modules, up to the first thing that is none."""
        value, shown = self._start_of(function, chain[0], path)
        depth = 1
        while depth < len(chain) and issubclass(type(value), types.ModuleType):
            shown = f"{shown}.{chain[depth]}"
            value = self._attribute_of(value, chain[depth], shown, path)
            depth += 1
        self.judge.reads(function, frozenset(chain[depth:]))
        if value is _NO_VALUE:
            return
        if any(value is each for each in READERS) and value.__name__ not in chain:
            self.judge.makes_up_names(function)
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
        if name.startswith("_") and name not in ALLOWED and is_stock_module(module.__name__):
            raise NoKeyError(f"{path} reads {shown}, which is a stock module's own")
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
                self.judge.meets(kind)
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
        self._members = {id(underlying(member)) for member in space.values()}
        try:
            for name in sorted(space):
                if name not in _NOT_HASHED:
                    self.judge.held.add(name)
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
        if value is getattr or value is hasattr or _reads_any(value):
            self.judge.reads_by_text = True
        owner = getattr(value, "__self__", None)
        if type(value) is types.BuiltinFunctionType and (owner is None or isinstance(owner, types.ModuleType)):
            module = str(value.__module__)
            if not admits(module, value.__name__):
                raise NoKeyError(f"{path} is {module}.{value.__name__}, compiled code that is on no list")
        self._emit("builtin", f"{getattr(value, '__module__', '')}.{value.__qualname__}")
        if owner is not None and not isinstance(owner, types.ModuleType):
            self._walker.visit(owner, f"{path}.__self__")

    def _hash_code(self, code: types.CodeType) -> str:
        digest = code_digest(code)
        self._emit("bytecode", digest)
        return digest

    def _emit(self, tag: str, text: str = "") -> None:
        self._walker.stream.emit(tag, text.encode("utf-8", "surrogatepass"))


def _reads_any(value: Any) -> bool:
    """Whether it reads attributes as `getattr` does. That of another compiled class takes nothing that has a key."""
    owner = getattr(value, "__objclass__", None)
    return bool(value.__name__ == "__getattribute__" and (owner is None or is_stock_class(owner)))


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
    return underlying(value) is function
