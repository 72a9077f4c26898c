"""Looks through the stock packages that are loaded, for what a program has changed in them.

Nothing leads from a model to `keras.src.backend.tensorflow.nn.relu`, yet whoever replaces it changes what a step
computes. So every module of Keras, TensorFlow and numpy is looked through, with all of its classes, and so are the
modules of the standard library that a step may use, and `builtins`:

- code that is not stock, wherever it stands, is *replaced*: it is hashed by value as a part of every key;
- functions and classes of the program's own in a dictionary or list of theirs are *registered*: hashed as well;
- each module gets a digest of the rest: its functions and those of its classes by their code, defaults, wrapped
  functions and closures, its plain values, and where everything else comes from. An entry holds the digests from before
  its trace, and is restored only where the modules that are loaded have the same.

A second survey of a process, or of one that was forked from it, reads only what has changed since the first.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import enum
import functools
import json
import marshal
import sys
import threading
import types
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from glowplug.imports.put_off.pages import OFFERED

from .abstract import registered_subclasses
from .collector import collector_paused
from .errors import NoKeyError
from .scope import NOT_LOOKED_AT, UNSETTLED, is_facade, is_looked_into
from .stock_objects import (
    SCALARS,
    are_same,
    has_state,
    is_compiled,
    is_known,
    is_stock_name,
    is_users,
    items_of,
    module_text,
    named_members,
    parts_of,
    plain_text,
)
from .trusted import HOST_METHODS, is_stock_file, is_stock_module

_CONTAINERS = (dict, list, tuple, set, frozenset)
_NESTED = frozenset({*_CONTAINERS, collections.defaultdict, collections.OrderedDict})
_LARGE = 256
_STAND_INS = frozenset({types.SimpleNamespace})  # of the standard library, and never TensorFlow's or Keras' own
# Attributes of their functions that TensorFlow and Keras set themselves; `__wrapped__` is followed.
_OF_FUNCTIONS = ("_tf_", "_api_export_", "__wrapped__", "__signature__", "__original_wrapped__")
_PASSED_OVER = NOT_LOOKED_AT | HOST_METHODS
_PATIENCE_S = 30


@dataclass(frozen=True, slots=True)
class Survey:
    """`modules` are digests by name; `replaced` and `registered` are `(place, value)` in a fixed order.

    `generated` is stock code that no file holds, such as the methods of named tuples.
    """

    modules: Mapping[str, int]
    replaced: tuple[tuple[str, Any], ...]
    registered: tuple[tuple[str, Any], ...]
    generated: frozenset[types.CodeType]

    def encoded(self, later: Survey) -> bytes:
        """Return the digests as an entry keeps them, with those of modules that only a later survey saw."""
        return zlib.compress(json.dumps({**later.modules, **self.modules}).encode(), 1)

    def differing(self, encoded: bytes) -> list[str]:
        """Return the modules that are not as they were when an entry was made."""
        return self._changes(json.loads(zlib.decompress(encoded)))

    def _changes(self, other: Mapping[str, int]) -> list[str]:
        """Return the modules that both know and that are not the same."""
        return sorted(name for name, digest in self.modules.items() if other.get(name, digest) != digest)


def survey() -> Survey:
    """Look through all stock modules that are loaded; what has not changed since the last time is not read again."""
    with _alone(), collector_paused():
        latest = _Latest.surveyor
        if latest is None or latest.has_changed_functions():
            latest, _Latest.result = _Surveyor(), None
        _Latest.surveyor = None  # what is read in part is never used
        if latest.read_changes() or _Latest.result is None:
            _Latest.result = latest.result()
        _Latest.surveyor = latest
        return _Latest.result


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one thread look at a time. A process that was forked while another thread looked finds the lock taken."""
    if not _Latest.lock.acquire(timeout=_PATIENCE_S):
        raise NoKeyError("another thread has been looking through stock code for too long")
    try:
        yield
    finally:
        _Latest.lock.release()


@dataclass(slots=True, eq=False)
class _Space:
    """The names of a module or class, and what was found there. Values are kept, so that none takes another's place."""

    module: str
    owner: Any  # the class; None for a module
    names: Mapping[str, Any]
    keys: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    containers: list[tuple[Any, list[Any]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)  # the digest that it counts for, and what it says
    replaced: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)

    def has_changed(self) -> bool:
        return (
            self.keys != list(self.names)
            or not are_same(self.values, list(self.names.values()))
            or any(not are_same(items, items_of(each)) for each, items in self.containers)
        )

    def is_abstract(self) -> bool:
        return "_abc_impl" in self.names


class _Latest:
    """The last survey of this process, and what it looked at."""

    lock = threading.Lock()
    surveyor: _Surveyor | None = None
    result: Survey | None = None


class _Surveyor:
    def __init__(self) -> None:
        self._modules: dict[str, _Space] = {}
        self._classes: dict[int, _Space] = {}
        self._generated: set[types.CodeType] = set()
        self._texts_of_functions: dict[int, str] = {}
        self._functions: list[types.FunctionType] = []
        self._parts: list[list[Any]] = []
        self._token: object = None  # of abstract classes
        self._inside_functions = self._space = _Space("", None, {})

    def has_changed_functions(self) -> bool:
        """Whether a function that was read has other code, defaults, attributes or another closure by now."""
        return bool(self._parts) and not (
            all(map(are_same, self._parts, parts_of(self._functions))) and not self._inside_functions.has_changed()
        )

    def read_changes(self) -> bool:
        """Read what is new, or is not as it was; say whether there was anything."""
        loaded = dict(_loaded())
        gone = [name for name, space in self._modules.items() if loaded.get(name) is not space.names]
        for name in gone:
            del self._modules[name]
        token, self._token = self._token, abc.get_cache_token()
        subclassed = token != self._token  # some class was registered as a subclass of another
        stale = [each for each in self._modules.values() if each.has_changed()]
        stale += [each for each in self._classes.values() if each.has_changed() or (subclassed and each.is_abstract())]
        new = [_Space(name, None, names) for name, names in loaded.items() if name not in self._modules]
        for space in (*stale, *new):
            self._read(_Space(space.module, space.owner, space.names))
        if len(self._functions) != len(self._parts[0] if self._parts else ()):
            self._parts = parts_of(self._functions)
        return bool(gone or stale or new)

    def result(self) -> Survey:
        """Return what all that was read comes to."""
        texts: dict[str, list[str]] = {}
        replaced, registered = {}, {}
        for space in (*self._modules.values(), *self._classes.values(), self._inside_functions):
            replaced.update(space.replaced)
            registered.update(space.registered)
            for digest, text in space.texts:
                texts.setdefault(digest, []).append(text)
        digests = {
            name: zlib.crc32("\n".join(sorted(found)).encode("utf-8", "surrogatepass")) for name, found in texts.items()
        }
        return Survey(
            digests, tuple(sorted(replaced.items())), tuple(sorted(registered.items())), frozenset(self._generated)
        )

    def _read(self, space: _Space) -> None:
        space.keys, space.values = list(space.names), list(space.names.values())
        outer, self._space = self._space, space  # what is found belongs to it
        if space.owner is None:
            self._modules[space.module] = space
            self._read_module(space)
        else:
            self._classes[id(space.owner)] = space
            self._read_class(space)
        self._space = outer

    def _read_module(self, space: _Space) -> None:
        module = space.module
        facade = is_facade(module)
        texts, known = space.texts, self._texts_of_functions
        for name, value in zip(space.keys, space.values, strict=True):
            place = f"{module}.{name}"
            if name in _PASSED_OVER or place in UNSETTLED:
                continue
            text = known.get(id(value)) or self._text(value, place)
            if text and (facade or issubclass(type(value), types.ModuleType)):
                texts.append((f"{place} =", text))  # apart: it may be loaded in one process and not in another
            elif text:
                texts.append((module, f"{name}={text}"))
        for name, token in space.names.get(OFFERED, {}).items():  # what is put off counts as if it were there
            text = "" if token.name else module_text(token.module, f"{module}.{name}")
            if text:
                space.texts.append((f"{module}.{name} =", text))

    def _read_class(self, space: _Space) -> None:
        """Add the members of a class to the digest of the module that it comes from."""
        kind, module = space.owner, space.module
        for name, value in zip(space.keys, space.values, strict=True):
            if name in _PASSED_OVER or name.startswith("_api_export"):
                continue
            place = f"{module}.{kind.__qualname__}.{name}"
            if name == "_value2member_map_" and issubclass(kind, enum.Flag):
                self._watch(value)
                text = self._text(named_members(kind, value), place)
            else:
                text = "" if place in UNSETTLED else self._text(value, place)
            if text:
                space.texts.append((module, f"{kind.__qualname__}.{name}={text}"))
        for each in registered_subclasses(kind):
            if is_users(each, type(each)):
                space.registered[f"{module}.{kind.__qualname__}.register {plain_text(each)}"] = each

    def _text(self, value: Any, place: str) -> str:
        """Return what stands for a value in the digest; remember it if it is not stock."""
        kind: Any = type(value)
        if kind is types.FunctionType:
            return self._texts_of_functions.get(id(value)) or self._function(value, place)
        if kind in SCALARS:
            return repr(value)
        if issubclass(kind, type):
            return self._class(value, place)
        if issubclass(kind, types.ModuleType):
            return module_text(types.ModuleType.__getattribute__(value, "__dict__").get("__name__"), place)
        if kind in (staticmethod, classmethod):
            return self._text(value.__func__, place)
        if kind is property:
            return " ".join(self._text(each, place) for each in (value.fget, value.fset, value.fdel))
        if kind is types.MethodType:
            return f"method of {type(value.__self__).__qualname__} {self._text(value.__func__, place)}"
        if kind is functools.partial:
            given = [*value.args, *value.keywords.items()]
            return f"partial {self._text(value.func, place)} {self._items(given, place)}"
        if kind in _CONTAINERS:
            return self._container(value, place)
        if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType):
            return f"{kind.__name__} {getattr(value, '__module__', '')}.{value.__qualname__}"
        if kind in _STAND_INS or str(kind.__module__).startswith("unittest") or not is_known(kind):
            self._space.replaced[place] = value
        return self._object(value, kind)

    def _object(self, value: Any, kind: Any) -> str:
        """Return the class of an object, and whatever of its state is a plain value."""
        state = getattr(value, "__dict__", None) if has_state(kind) else None
        if type(state) is not dict:
            return str(kind.__qualname__)
        self._watch(state)
        plain = sorted(f"{each}={part!r}" for each, part in state.items() if type(part) in SCALARS)
        return f"{kind.__qualname__} {' '.join(plain)}"

    def _function(self, function: types.FunctionType, place: str) -> str:
        code = function.__code__
        filename = code.co_filename
        if not is_stock_file(filename) or not is_stock_name(function.__module__):
            self._space.replaced[place] = function
            return "replaced"
        if filename.startswith("<"):
            self._generated.add(code)
        self._functions.append(function)
        self._texts_of_functions[id(function)] = function.__qualname__  # it may lead to itself
        parts = [f"{function.__qualname__} {zlib.crc32(marshal.dumps(code, 0)):x}"]
        if function.__defaults__ or function.__kwdefaults__ or function.__closure__ or function.__dict__:
            outer, self._space = self._space, self._inside_functions  # read once, wherever it is met
            parts += self._more_of(function, place)
            self._space = outer
        text = self._texts_of_functions[id(function)] = " ".join(parts)
        return text

    def _more_of(self, function: types.FunctionType, place: str) -> list[str]:
        parts = []
        if function.__defaults__:
            parts.append(self._items(function.__defaults__, place))
        if function.__kwdefaults__:
            self._watch(function.__kwdefaults__)
            parts.append(self._items(function.__kwdefaults__.items(), place))
        if function.__closure__:
            parts.append(self._closure(function, place))
        if function.__dict__:
            self._watch(function.__dict__)
            for name, value in function.__dict__.items():
                if name == "__wrapped__":
                    parts.append(self._text(value, f"{place}.__wrapped__"))
                elif not name.startswith(_OF_FUNCTIONS):
                    parts.append(f"{name}={self._item(value, f'{place}.{name}')}")
        return parts

    def _closure(self, function: types.FunctionType, place: str) -> str:
        found = []
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            found.append(self._text(content, place) if type(content) is types.FunctionType else plain_text(content))
        return "; ".join(found)

    def _class(self, kind: Any, place: str) -> str:
        module = str(kind.__module__)
        if is_looked_into(module):
            if id(kind) not in self._classes and not is_compiled(kind):
                self._read(_Space(module, kind, type.__getattribute__(kind, "__dict__")))
        elif not is_stock_module(module) and not is_compiled(kind):
            self._space.replaced[place] = kind
        return f"class {module}.{kind.__qualname__}"

    def _container(self, value: Any, place: str) -> str:
        self._find_registered(value, place)
        if len(value) > _LARGE:
            return ""
        if type(value) is dict:
            return self._items([each for each in value.items() if type(each[0]) in SCALARS], place, ordered=False)
        return self._items(value, place, ordered=type(value) in (list, tuple))

    def _find_registered(self, container: Any, place: str, depth: int = 3) -> None:
        """Find what the program has put into a container of stock code, or into one that lies in it."""
        if type(container) is not tuple:
            self._watch(container)
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in list(pairs):
            for each in (value, key):
                kind: Any = type(each)
                if kind in SCALARS:
                    continue
                if kind in _NESTED:
                    if depth:
                        self._find_registered(each, f"{place}[{plain_text(key)}]", depth - 1)
                elif is_users(each, kind):
                    self._space.registered[f"{place}[{plain_text(key)}] {plain_text(each)}"] = each

    def _watch(self, container: Any) -> None:
        self._space.containers.append((container, items_of(container)))

    def _items(self, items: Iterable[Any], place: str, *, ordered: bool = True) -> str:
        texts = [self._item(each, place) for each in items]
        return "; ".join(texts if ordered else sorted(texts))

    def _item(self, value: Any, place: str) -> str:
        if type(value) is tuple:
            return "(" + ", ".join(self._item(each, place) for each in value) + ")"
        if type(value) is types.FunctionType and is_stock_module(value.__module__):
            return self._texts_of_functions.get(id(value)) or self._function(value, place)
        return plain_text(value)


def _loaded() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, module in list(sys.modules.items()):
        if is_looked_into(name) and issubclass(type(module), types.ModuleType):
            yield name, types.ModuleType.__getattribute__(module, "__dict__")
