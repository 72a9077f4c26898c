"""Hashes code by value: functions, methods, classes and what they reach.

Stock code is a name, since its version is in every key. Custom code is its bytecode and constants, its
defaults, its closure and every global it reads. Line numbers, file names, comments and doc strings do not
count.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

from .attributes import PRIVATE
from .errors import NoKeyError
from .purity import (
    CONSTRUCTION,
    IMPURE_ATTRIBUTES,
    IMPURE_BUILTINS,
    IMPURE_MODULES,
    NAME_READERS,
    Uses,
    uses_of,
)
from .trusted import HOST_METHODS, is_stock_function, is_stock_module, root_of

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
# Ways to reach an attribute of a module that bytecode does not name.
_MODULE_READERS = frozenset({"getattr", "random", "__dict__", "vars"})
# Members of a stock class that say all there is to say, and what can stand in a method's place.
_VALUES = frozenset({bool, int, float, str, bytes, tuple, type(None), functools.partial, functools.partialmethod})
_NOT_HASHED = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__abstractmethods__",
        "__firstlineno__",
        "__static_attributes__",
        "__parameters__",
        "__orig_bases__",
        "_abc_impl",
    }
)


class CodeReader:
    """The part of a walk that deals with code. `custom` turns true once anything that is not stock was
    reached.
    """

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self.custom = False
        self.reads_names = False
        self.reads_initializers = False
        self._class: type[Any] | None = None  # the custom class whose members are being hashed
        self._members: set[int] = set()  # its functions, by id
        self._excused: dict[int, str] = {}  # by class: what its construction looks at, and is excused for
        self._made: list[type[Any]] = []  # classes that a step may make instances of

    def visit(self, value: Any, path: str) -> bool:
        """Hash `value` if it is code of any kind, and say whether it was."""
        if isinstance(value, type):
            self._visit_class(value, path)
        elif isinstance(value, types.FunctionType):
            self.visit_function(value, path)
        elif isinstance(value, types.MethodType):
            self._emit("method")
            self._walker.visit(value.__self__, f"{path}.__self__")
            self._walker.visit(value.__func__, path)
        elif isinstance(value, (types.BuiltinFunctionType, *_DESCRIPTORS)):
            self._visit_builtin(value, path)
        elif isinstance(value, types.ModuleType):
            self._visit_module(value, path)
        else:
            return self._visit_wrapper(value, path)
        return True

    def finish(self) -> None:
        """Refuse what only construction is excused for, where objects are constructed while a step is traced."""
        for kind in self._made:
            for base in kind.__mro__:
                if id(base) in self._excused:
                    raise NoKeyError(self._excused[id(base)])

    def visit_function(self, function: types.FunctionType, path: str) -> None:
        """Hash a Python function."""
        place = f"{function.__module__}.{function.__qualname__}"
        if is_stock_function(function):
            self._emit("stock function", place)
            if function.__closure__ and not _belongs_to_its_module(function):
                self._hash_code(function.__code__)
                self._visit_closure(function, path)
            return
        self.custom = True
        previous = self._walker.stream.enter("code")
        try:
            self._visit_custom_function(function, function.__qualname__)
        finally:
            self._walker.stream.enter(previous)

    def _visit_custom_function(self, function: types.FunctionType, path: str) -> None:
        self._emit("function", function.__qualname__)
        digest = self._hash_code(function.__code__)
        self._walker.stream.leaf(path, "code", digest)
        self._walker.visit(function.__defaults__, f"{path} defaults")
        self._walker.visit(function.__kwdefaults__, f"{path} keyword defaults")
        self._walker.visit(dict(function.__dict__), f"{path}.__dict__")
        self._visit_closure(function, path)
        uses = uses_of(function.__code__)
        construction = function.__name__ in CONSTRUCTION and id(function) in self._members
        if not construction:
            private = sorted(uses.names & PRIVATE)
            if private:
                raise NoKeyError(f"{path} reads {private[0]}, which Keras keeps to itself")
            self.reads_names = self.reads_names or bool(uses.names & NAME_READERS)
            self.reads_initializers = self.reads_initializers or any("initializer" in name for name in uses.names)
        impure = sorted(uses.names & (IMPURE_ATTRIBUTES | {"random"}))
        if uses.imports and impure:  # a module that was imported inside is a local variable: nothing tells whose it is
            self._object(f"{path} uses {impure[0]}, whose result another run need not share", construction)
        self._visit_globals(function, uses, path, lenient=construction)

    def _visit_closure(self, function: types.FunctionType, path: str) -> None:
        for name, content in _closure_of(function).items():
            self._emit("cell", name)
            if not (name == "__class__" and isinstance(content, type)):
                self._walker.visit(content, f"{path} closure {name}")

    def _visit_globals(self, function: types.FunctionType, uses: Uses, path: str, *, lenient: bool) -> None:
        for module, level in uses.imports:
            self._check_import(module, level, path, lenient=lenient)
        closure = _closure_of(function)
        for chain in uses.chains:
            if chain[0] in closure:
                self._visit_chain(closure[chain[0]], chain, uses, path, lenient=lenient)
            elif chain[0] in function.__globals__:
                self._visit_chain(function.__globals__[chain[0]], chain, uses, path, lenient=lenient)
            elif hasattr(builtins, chain[0]):
                if chain[0] in IMPURE_BUILTINS:
                    self._object(f"{path} uses {chain[0]}()", lenient)
                self._emit("builtin", chain[0])
            else:
                self._emit("undefined", chain[0])

    def _visit_chain(self, value: Any, chain: tuple[str, ...], uses: Uses, path: str, *, lenient: bool) -> None:
        shown = chain[0]
        self._check_purity(value, shown, path, lenient=lenient)
        for name in chain[1:]:
            if not isinstance(value, types.ModuleType):
                break
            if not hasattr(value, name):
                self._emit("missing", f"{shown}.{name}")
                return
            value = getattr(value, name)
            shown = f"{shown}.{name}"
            self._check_purity(value, shown, path, lenient=lenient)
        if isinstance(value, types.ModuleType) and uses.names & _MODULE_READERS:
            self._object(f"{path} handles the module {shown} as a value", lenient)
        self._emit("global", shown)
        if isinstance(value, type) and shown != "__class__" and not lenient:
            self._made.append(value)
        if len(chain) > 1 and isinstance(value, types.FunctionType) and is_stock_function(value):
            return  # `tf.matmul`: its closure is TensorFlow's own
        if not (lenient and self._is_impure(value)):
            self._walker.visit(value, f"global {shown}")

    def _check_purity(self, value: Any, shown: str, path: str, *, lenient: bool) -> None:
        names = {shown.rpartition(".")[2], getattr(value, "__name__", "")}
        if self._is_impure(value) or (names & IMPURE_ATTRIBUTES and not _is_custom(value)):
            self._object(f"{path} uses {shown}, whose result another run need not share", lenient)

    def _object(self, reason: str, lenient: bool) -> None:
        """Refuse, or remember for a class whose construction it is."""
        if not lenient:
            raise NoKeyError(reason)
        if self._class is not None:
            self._excused.setdefault(id(self._class), reason)

    @staticmethod
    def _is_impure(value: Any) -> bool:
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if not isinstance(module, str):
            module = getattr(type(value), "__module__", "")
        return root_of(module) in IMPURE_MODULES or module.startswith("numpy.random")

    def _check_import(self, module: str, level: int, path: str, *, lenient: bool) -> None:
        if level or not is_stock_module(module):
            self._object(f"{path} imports {'.' * level}{module} while it runs", lenient)
        if root_of(module) in IMPURE_MODULES or module.startswith("numpy.random"):
            self._object(f"{path} imports {module}, whose results another run need not share", lenient)
        self._emit("import", f"{level} {module}")

    def _visit_class(self, kind: type[Any], path: str) -> None:
        previous = self._walker.stream.enter("code")
        try:
            if is_stock_module(kind.__module__):
                self._emit("stock class", f"{kind.__module__}.{kind.__qualname__}")
                self._visit_replaced_methods(kind)
            else:
                self.custom = True
                self._visit_custom_class(kind)
            for base in (*kind.__mro__[1:], type(kind)):
                self._walker.visit(base, f"{path} base {base.__qualname__}")
        finally:
            self._walker.stream.enter(previous)

    def _visit_custom_class(self, kind: type[Any]) -> None:
        self._emit("custom class", kind.__qualname__)
        outer = self._class, self._members
        self._class = kind
        self._members = {id(_underlying(member)) for member in vars(kind).values()}
        try:
            for name in sorted(vars(kind)):
                if name not in _NOT_HASHED:
                    self._emit("member", name)
                    self._walker.visit(vars(kind)[name], f"{kind.__qualname__}.{name}")
        finally:
            self._class, self._members = outer

    def _visit_replaced_methods(self, kind: type[Any]) -> None:
        """Hash what a stock class holds that need not be its own: its functions by where they come from, and values."""
        for name, member in list(vars(kind).items()):
            path = f"{kind.__qualname__}.{name}"
            function = _underlying(member)
            if name in HOST_METHODS or name in _NOT_HASHED or name.startswith("_api_export"):
                continue  # the last are addresses, by which Keras finds its public names
            if function is None:
                if type(member) in _VALUES or not is_stock_module(type(member).__module__):
                    self._emit("member", name)
                    self._walker.visit(member, path)
            elif not is_stock_function(function):
                self.visit_function(function, path)
            else:
                self._emit("member", f"{name} {function.__module__}.{function.__qualname__}")

    def _visit_builtin(self, value: Any, path: str) -> None:
        owner = getattr(value, "__self__", None)
        module = value.__module__ if isinstance(value, types.BuiltinFunctionType) else None
        if module is not None and not is_stock_module(module):
            raise NoKeyError(f"{path} is compiled code of {module}")
        self._emit("builtin", f"{getattr(value, '__module__', '')}.{value.__qualname__}")
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            self._walker.visit(owner, f"{path}.__self__")

    def _visit_module(self, module: types.ModuleType, path: str) -> None:
        if not is_stock_module(module.__name__):
            raise NoKeyError(f"{path} is the module {module.__name__} itself, used as a value")
        self._emit("module", module.__name__)

    def _visit_wrapper(self, value: Any, path: str) -> bool:
        """Things that hold a function: unwrap them."""
        visit = self._walker.visit
        if isinstance(value, (staticmethod, classmethod)):
            self._emit(type(value).__name__)
            visit(value.__func__, path)
        elif isinstance(value, property):
            self._emit("property")
            for name in ("fget", "fset", "fdel"):
                visit(getattr(value, name), path)
        elif isinstance(value, functools.partial):
            self._emit("partial")
            visit([value.func, list(value.args), dict(value.keywords)], path)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._emit("lru_cache")
            visit(value.__wrapped__, path)
        elif isinstance(value, functools.cached_property):
            self._emit("cached_property")
            visit(value.func, path)
        elif isinstance(value, weakref.ref):
            self._emit("weak reference")
            visit(value(), path)
        elif type(value).__module__ == "typing" or isinstance(value, types.GenericAlias):
            self._emit("annotation", repr(value))
        elif type(value).__module__ == "glowplug.train.stored":
            visit(value._stock, path)
        elif _is_tf_function(value):
            self._emit("tf.function")
            options = (
                value._autograph,
                value._jit_compile,
                value._reduce_retracing,
                repr(value.input_signature),
            )
            visit(list(options), f"{path} options")
            visit(value.python_function, path)
        else:
            return False
        return True

    def _hash_code(self, code: types.CodeType) -> str:
        digest = code_digest(code)
        self._emit("bytecode", digest)
        return digest

    def _emit(self, tag: str, text: str = "") -> None:
        self._walker.stream.emit(tag, text.encode())


@functools.lru_cache(maxsize=16384)
def code_digest(code: types.CodeType) -> str:
    """Return a digest of a code object that ignores where it stands and what its documentation says."""
    import hashlib

    parts: list[str] = [
        code.co_code.hex(),
        repr(code.co_names),
        repr(code.co_varnames),
        repr(code.co_freevars),
        repr(code.co_cellvars),
        repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)),
        getattr(code, "co_exceptiontable", b"").hex(),
    ]
    for constant in code.co_consts:
        text = code_digest(constant) if isinstance(constant, types.CodeType) else _constant_text(constant)
        parts.append(f"{type(constant).__name__} {text}")
    digest = hashlib.sha256()
    for part in parts:
        payload = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d\0%s" % (len(payload), payload))
    return digest.hexdigest()


def _constant_text(constant: object) -> str:
    if isinstance(constant, frozenset):
        return repr(sorted(map(repr, constant)))
    if isinstance(constant, tuple):
        return repr([_constant_text(item) for item in constant])
    return repr(constant)


def _closure_of(function: types.FunctionType) -> dict[str, Any]:
    """Return what the closure of a function holds, without cells that are still empty."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _belongs_to_its_module(function: types.FunctionType) -> bool:
    """Whether a function was made when its module was imported: its closure holds nothing of the user's."""
    return getattr(sys.modules.get(function.__module__), function.__name__, None) is function


def _is_custom(value: object) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and not is_stock_module(module)


def _underlying(member: object) -> types.FunctionType | None:
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    if isinstance(member, property):
        member = member.fget
    return member if isinstance(member, types.FunctionType) else None


def _is_tf_function(value: object) -> bool:
    module = sys.modules.get("tensorflow.python.eager.polymorphic_function.polymorphic_function")
    return module is not None and isinstance(value, module.Function)
