"""Reads stock modules and their classes for a survey: a digest of what they are, and what in them is not stock."""

from __future__ import annotations

import abc
import collections
import enum
import functools
import marshal
import sys
import types
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from glowplug.imports.put_off.pages import OFFERED

from .abstract import registered_subclasses
from .objects import (
    SCALARS,
    are_same,
    has_state,
    is_compiled,
    is_known,
    is_stock_name,
    is_users,
    module_text,
    named_members,
    parts_of,
    plain_text,
)
from .scope import NOT_LOOKED_AT, UNSETTLED, is_facade, is_looked_into, is_never_used
from .space import Place, Space, digest_of, place_text
from .trusted import HOST_METHODS, is_stock_file, is_stock_module

_CONTAINERS = (dict, list, tuple, set, frozenset)
_NESTED = frozenset({*_CONTAINERS, collections.defaultdict, collections.OrderedDict})
_LARGE = 256
_STAND_INS = frozenset({types.SimpleNamespace})  # of the standard library, and never TensorFlow's or Keras' own
# Attributes of their functions that TensorFlow and Keras set themselves; `__wrapped__` is followed.
_OF_FUNCTIONS = ("_tf_", "_api_export_", "__wrapped__", "__signature__", "__original_wrapped__")
_PASSED_OVER = NOT_LOOKED_AT | HOST_METHODS


class Surveyor:
    """Looks through stock code; asked again, it reads what has changed."""

    def __init__(self) -> None:
        self._modules: dict[str, Space] = {}
        self._classes: dict[int, Space] = {}
        self._generated: set[types.CodeType] = set()
        self._known: dict[int, str] = {}  # texts of functions and classes, which are kept, by id
        self._functions: list[types.FunctionType] = []
        self._codes: list[types.CodeType] = []
        self._digests: dict[int, str] = {}  # of code, which is kept, by id
        self._parts: list[list[Any]] = []
        self._last: tuple[str, str | None] = ("", None)  # the file and the module of the stock function read last
        self._token: object = None  # of abstract classes
        self._inside_functions = self._space = Space("", None, {})
        self._readers: dict[Any, Callable[[Any, Place], str]] = {
            types.FunctionType: self._function,
            type: self._class,
            **dict.fromkeys(SCALARS, lambda value, _: repr(value)),
            **dict.fromkeys((staticmethod, classmethod), lambda value, place: self._text(value.__func__, place)),
            property: self._property,
            types.MethodType: self._method,
            functools.partial: self._partial,
            **dict.fromkeys(_CONTAINERS, self._container),
            **dict.fromkeys(
                (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType), _compiled
            ),
        }

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
        new = [Space(name, None, names) for name, names in loaded.items() if name not in self._modules]
        for space in (*stale, *new):
            self._read(Space(space.module, space.owner, space.names))
        if len(self._functions) != len(self._parts[0] if self._parts else ()):
            self._parts = parts_of(self._functions)
        return bool(gone or stale or new)

    def digests(self) -> dict[str, int]:
        """Return one for each module, of its names and its classes."""
        found: dict[str, list[str]] = {}
        for space in (*self._modules.values(), *self._classes.values()):
            found.setdefault(space.module, []).append(f"{space.digest:x}")
        return {module: digest_of(texts) for module, texts in found.items()}

    def apart(self) -> dict[str, Mapping[str, str]]:
        """Return, by module, the names that count one by one, and what stands there."""
        return {module: space.apart for module, space in self._modules.items() if space.apart}

    def not_stock(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was replaced and what was registered, by place."""
        replaced: dict[str, Any] = {}
        registered: dict[str, Any] = {}
        for space in (*self._modules.values(), *self._classes.values(), self._inside_functions):
            replaced.update(space.replaced or ())
            registered.update(space.registered or ())
        return replaced, registered

    def generated(self) -> frozenset[types.CodeType]:
        """Return stock code that no file holds, such as the methods of named tuples."""
        return frozenset(self._generated)

    def _read(self, space: Space) -> None:
        space.keys, space.values = list(space.names), list(space.names.values())
        outer, self._space = self._space, space  # what is found belongs to it
        if space.owner is None:
            self._modules[space.module] = space
            self._read_module(space)
        else:
            self._classes[id(space.owner)] = space
            self._known[id(space.owner)] = f"class {space.module}.{space.owner.__qualname__}"
            self._read_class(space)
        self._space = outer

    def _read_module(self, space: Space) -> None:
        module, facade, skipped = space.module, is_facade(space.module), _skipped(space.module)
        texts: list[str] = []
        apart: dict[str, str] = {}  # it may be loaded in one process and not in another
        known = self._known.get
        for name, value in zip(space.keys, space.values, strict=True):
            if name in skipped:
                continue
            text = known(id(value))
            if text is None and issubclass(type(value), types.ModuleType):
                names = types.ModuleType.__getattribute__(value, "__dict__")
                text = module_text(names.get("__name__"), f"{module}.{name}")
                if text:
                    apart[name] = text
                continue
            if text is None:
                text = self._text(value, (module, ".", name))
            if facade:
                if text:
                    apart[name] = text
            elif text:
                texts.append(f"{name}={text}")
        for name, token in space.names.get(OFFERED, {}).items():  # what is put off counts as if it were there
            text = "" if token.name else module_text(token.module, f"{module}.{name}")
            if text:
                apart[name] = text
        space.settle(texts, apart)

    def _read_class(self, space: Space) -> None:
        """Read the members of a class, which count for the module that it comes from."""
        kind, module = space.owner, space.module
        qualname = kind.__qualname__
        holder = f"{module}.{qualname}"
        skipped = _skipped(holder)
        texts = [qualname]
        known = self._known.get
        for name, value in zip(space.keys, space.values, strict=True):
            if name in skipped or name.startswith("_api_export"):
                continue
            text = known(id(value))
            if text is None:
                members = value
                if name == "_value2member_map_" and issubclass(kind, enum.Flag):
                    space.watch(value)
                    members = named_members(kind, value)
                text = self._text(members, (holder, ".", name))
            if text:
                texts.append(f"{name}={text}")
        if "_abc_impl" in space.names:
            for each in registered_subclasses(kind):
                if is_users(each, type(each)):
                    space.register(f"{holder}.register {plain_text(each)}", each)
        space.settle(texts)

    def _text(self, value: Any, place: Place) -> str:
        """Return what stands for a value in the digest; remember it if it is not stock."""
        kind: Any = type(value)
        reader = self._readers.get(kind)
        if reader is not None:
            return reader(value, place)
        if issubclass(kind, type):
            return self._class(value, place)
        if issubclass(kind, types.ModuleType):
            return module_text(types.ModuleType.__getattribute__(value, "__dict__").get("__name__"), place_text(place))
        if kind in _STAND_INS or str(kind.__module__).startswith("unittest") or not is_known(kind):
            self._space.replace(place, value)
        return self._object(value, kind)

    def _property(self, value: Any, place: Place) -> str:
        return " ".join([self._text(each, place) for each in (value.fget, value.fset, value.fdel)])

    def _method(self, value: Any, place: Place) -> str:
        return f"method of {type(value.__self__).__qualname__} {self._text(value.__func__, place)}"

    def _partial(self, value: Any, place: Place) -> str:
        given = [*value.args, *value.keywords.items()]
        return f"partial {self._text(value.func, place)} {self._items(given, place)}"

    def _object(self, value: Any, kind: Any) -> str:
        """Return the class of an object, and whatever of its state is a plain value."""
        state = getattr(value, "__dict__", None) if has_state(kind) else None
        if type(state) is not dict:
            return str(kind.__qualname__)
        self._space.watch(state)
        plain = sorted([f"{each}={part!r}" for each, part in state.items() if type(part) in SCALARS])
        return f"{kind.__qualname__} {' '.join(plain)}"

    def _function(self, function: types.FunctionType, place: Place) -> str:
        known = self._known.get(id(function))
        if known is not None:
            return known
        code = function.__code__
        filename = code.co_filename
        module = function.__module__
        if filename is not self._last[0] or module is not self._last[1]:  # mostly they stand side by side
            if not is_stock_file(filename) or not is_stock_name(module):
                self._space.replace(place, function)
                return "replaced"
            self._last = filename, module
        if filename.startswith("<"):
            self._generated.add(code)
        self._functions.append(function)
        name = function.__qualname__
        self._known[id(function)] = name  # it may lead to itself
        text = f"{name} {self._digests.get(id(code)) or self._code(code)}"
        if function.__defaults__ or function.__kwdefaults__ or function.__closure__ or function.__dict__:
            outer, self._space = self._space, self._inside_functions  # read once, wherever it is met
            text = " ".join([text, *self._more_of(function, place)])
            self._space = outer
        self._known[id(function)] = text
        return text

    def _code(self, code: types.CodeType) -> str:
        text = self._digests[id(code)] = f"{zlib.crc32(marshal.dumps(code, 0)):x}"
        self._codes.append(code)
        return text

    def _more_of(self, function: types.FunctionType, place: Place) -> Iterator[str]:
        if function.__defaults__:
            yield self._items(function.__defaults__, place)
        if function.__kwdefaults__:
            self._space.watch(function.__kwdefaults__)
            yield self._items(function.__kwdefaults__.items(), place)
        if function.__closure__:
            yield self._closure(function, place)
        if function.__dict__:
            self._space.watch(function.__dict__)
            for name, value in function.__dict__.items():
                if name == "__wrapped__":
                    yield self._text(value, (place, ".", "__wrapped__"))
                elif not name.startswith(_OF_FUNCTIONS):
                    yield f"{name}={self._item(value, (place, '.', name))}"

    def _closure(self, function: types.FunctionType, place: Place) -> str:
        found = []
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            if type(content) is types.FunctionType:
                found.append(self._function(content, place))
            else:
                found.append(plain_text(content))
        return "; ".join(found)

    def _class(self, kind: Any, place: Place) -> str:
        known = self._known.get(id(kind))
        if known is not None:
            return known
        module = str(kind.__module__)
        if is_looked_into(module):
            if not is_compiled(kind):
                self._read(Space(module, kind, type.__getattribute__(kind, "__dict__")))
        elif not is_stock_module(module) and not is_compiled(kind):
            self._space.replace(place, kind)
        return f"class {module}.{kind.__qualname__}"

    def _container(self, value: Any, place: Place) -> str:
        self._find_registered(value, place)
        if len(value) > _LARGE:
            return ""
        if type(value) is dict:
            return self._items([each for each in value.items() if type(each[0]) in SCALARS], place, ordered=False)
        return self._items(value, place, ordered=type(value) in (list, tuple))

    def _find_registered(self, container: Any, place: Place, depth: int = 3) -> None:
        """Find what the program has put into a container of stock code, or into one that lies in it."""
        if type(container) is not tuple:
            self._space.watch(container)
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in list(pairs):
            for each in (value, key):
                kind: Any = type(each)
                if kind in SCALARS:
                    continue
                if kind in _NESTED:
                    if depth:
                        self._find_registered(each, (place, "[", key), depth - 1)
                elif is_users(each, kind):
                    self._space.register(f"{place_text((place, '[', key))} {plain_text(each)}", each)

    def _items(self, items: Iterable[Any], place: Place, *, ordered: bool = True) -> str:
        texts = [
            repr(each) if type(each) in SCALARS else self._item(each, place)
            for each in items
            if not is_never_used(str(type(each).__module__))
        ]
        return "; ".join(texts if ordered else sorted(texts))

    def _item(self, value: Any, place: Place) -> str:
        if type(value) is tuple:
            return "(" + ", ".join([self._item(each, place) for each in value]) + ")"
        if type(value) is types.FunctionType and is_stock_module(value.__module__):
            return self._function(value, place)
        return plain_text(value)


def _compiled(value: Any, _: Place) -> str:
    return f"{type(value).__name__} {getattr(value, '__module__', '')}.{value.__qualname__}"


@functools.lru_cache(maxsize=16384)
def _skipped(holder: str) -> frozenset[str]:
    """Return the names that are passed over in a module or class."""
    more = _UNSETTLED_IN.get(holder)
    return _PASSED_OVER if more is None else _PASSED_OVER | more


def _loaded() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, module in list(sys.modules.items()):
        if is_looked_into(name) and issubclass(type(module), types.ModuleType):
            yield name, types.ModuleType.__getattribute__(module, "__dict__")


_UNSETTLED_IN: dict[str, frozenset[str]] = {
    holder: frozenset(each.rpartition(".")[2] for each in UNSETTLED if each.rpartition(".")[0] == holder)
    for holder in {each.rpartition(".")[0] for each in UNSETTLED}
}
