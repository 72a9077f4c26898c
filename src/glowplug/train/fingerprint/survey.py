"""Looks through the stock packages that are loaded, for what a program has changed in them.

Nothing leads from a model to `keras.src.backend.tensorflow.nn.relu`, yet whoever replaces it changes what a step
computes. So every module of Keras, TensorFlow and numpy is looked through, with all of its classes, and so are the
modules of the standard library that a step may use, and `builtins`:

- code that is not stock, wherever it stands, is *replaced*: it is hashed by value as a part of every key;
- each module gets a digest of the rest: its functions and those of its classes by their code, defaults, wrapped
  functions and closures, its plain values, and where everything else comes from. An entry holds the digests from before
  its trace, and is restored only where the modules that are loaded have the same.
"""

from __future__ import annotations

import enum
import functools
import json
import marshal
import operator
import sys
import types
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from glowplug.imports.pages import OFFERED

from .collector import collector_paused
from .trusted import HOST_METHODS, is_stock_file, is_stock_module, root_of

_PACKAGES = frozenset({"keras", "tensorflow", "numpy"})
_STANDARD = frozenset(
    [
        "builtins",
        "math",
        "cmath",
        "operator",
        "_operator",
        "functools",
        "_functools",
        "itertools",
        "collections",
        "_collections",
        "_collections_abc",
        "copy",
        "contextlib",
        "dataclasses",
        "enum",
        "types",
        "abc",
        "string",
        "statistics",
        "numbers",
        "fractions",
        "decimal",
        "json",
        "re",
        "heapq",
        "bisect",
        "struct",
        "typing",
    ]
)
_SCALARS = frozenset({bool, int, float, complex, str, bytes, type(None)})
_NOT_LOOKED_AT = frozenset(
    [
        "__doc__",
        "__file__",
        "__cached__",
        "__path__",
        "__loader__",
        "__spec__",
        "__builtins__",
        "__warningregistry__",
        "__annotations__",
        "__weakref__",
        "__dict__",
        "__abstractmethods__",
        "_abc_impl",
        "__module__",
        "__qualname__",
        "__slots__",
        "__parameters__",
        "__slotnames__",
        "__all__",
        "__orig_bases__",
        "__static_attributes__",
        "__firstlineno__",
        "__annotations_cache__",
        "__annotate_func__",
        OFFERED,
    ]
)
# What TensorFlow and Keras change themselves: counters, caches, and what is left of a loop over a set.
_UNSETTLED = frozenset(
    [
        "keras.src.trainers.data_adapters.py_dataset_adapter._SEQUENCE_COUNTER",  # of what hands over data
        "keras.src.trainers.data_adapters.py_dataset_adapter._SHARED_SEQUENCES",
        "keras.src.trainers.data_adapters.py_dataset_adapter._WORKER_ID_QUEUE",
        "numpy.iinfo._min_vals",
        "numpy.iinfo._max_vals",
        "numpy._core.numerictypes.allTypes",
        "tensorflow._s",
        "tensorflow._plugin_dir",
        "tensorflow._site_packages_dirs",
        "tensorflow.python.autograph.pyct.inspect_utils._BUILTIN_FUNCTION_IDS",
        "tensorflow.python.distribute.distribute_lib._defaults",
        "tensorflow.python.eager.context._context",
        "tensorflow.python.eager.context._tensor_caches_map",
        "tensorflow.python.framework.device._cached_mergers",
        "tensorflow.python.framework.device_spec._STRING_TO_COMPONENTS_CACHE",
        "tensorflow.python.framework.op_def_registry._cache",
        "tensorflow.python.saved_model.revived_types._REVIVED_TYPE_REGISTRY",  # for loading; imports add to it
        "tensorflow.python.saved_model.revived_types._TYPE_IDENTIFIERS",
        "tensorflow.python.util.all_util._HIDDEN_ATTRIBUTES",
        "tensorflow.python.ops.weak_tensor_ops.tensor_oper",
        "tensorflow.python.ops.weak_tensor_ops.operator",
    ]
)
_FLAGS = "tensorflow.core.config.flags.FLAGS"  # made when first asked for; what they say is among a key's settings
# Never used by a step of Keras: another interface to the same functions, protocol buffers, older and other products,
# and the classes for scikit-learn, whose methods it wraps. No code of a user's may use them either: `admission`.
_ELSEWHERE = (
    "keras.src.wrappers.",
    "tensorflow._api.v2.compat.",
    "tensorflow.compiler.xla.",
    "tensorflow.core.example.",
    "tensorflow.core.framework.",
    "tensorflow.core.profiler.",
    "tensorflow.core.protobuf.",
    "tensorflow.core.util.",
    "tensorflow.lite.",
    "tensorflow.python.debug.",
    "tensorflow.python.keras.",
    "tensorflow.python.tpu.",
    "tensorflow.tools.",
    "numpy.f2py.",
    "numpy.testing.",
)
# Names for what stands elsewhere, some of which may not be loaded yet: each counts by itself.
_FACADES = frozenset({"tensorflow", "tensorflow.experimental", "tensorflow.python.ops.standard_ops"})
_CONTAINERS = (dict, list, tuple, set, frozenset)
_LARGE = 256
_STAND_INS = frozenset({types.SimpleNamespace})  # of the standard library, and never TensorFlow's or Keras' own
_parts_of = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")


@dataclass(frozen=True, slots=True)
class Survey:
    """`modules` are digests by name; `replaced` are `(place, value)` in a fixed order.

    `generated` is stock code that no file holds, such as the methods of named tuples.
    """

    modules: Mapping[str, int]
    replaced: tuple[tuple[str, Any], ...]
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
    latest = _Latest.surveyor
    if latest is None or latest.state() != _Latest.state:
        latest = _Latest.surveyor = _Surveyor()
        _Latest.result = latest.look()
        _Latest.state = latest.state()
    assert _Latest.result is not None
    return _Latest.result


class _Latest:
    """The last survey of this process, and what it looked at."""

    surveyor: _Surveyor | None = None
    result: Survey | None = None
    state: tuple[Any, ...] = ()


class _Surveyor:
    def __init__(self) -> None:
        self._digests: dict[str, list[str]] = {}
        self._replaced: dict[str, Any] = {}
        self._generated: set[types.CodeType] = set()
        self._functions: dict[int, str] = {}
        self._classes: set[int] = set()
        self._spaces: list[Mapping[str, Any]] = []
        self._met: list[types.FunctionType] = []
        self._containers: list[Any] = []

    def look(self) -> Survey:
        with collector_paused():
            for name, module in list(sys.modules.items()):
                if _is_looked_into(name) and issubclass(type(module), types.ModuleType):
                    self._look_into(name, types.ModuleType.__getattribute__(module, "__dict__"))
        digests = {
            name: zlib.crc32("\n".join(sorted(texts)).encode("utf-8", "surrogatepass"))
            for name, texts in self._digests.items()
        }
        return Survey(digests, tuple(sorted(self._replaced.items())), frozenset(self._generated))

    def state(self) -> tuple[Any, ...]:
        """Return something that differs once anything that was looked at is another object."""
        return (
            len(sys.modules),
            [list(map(id, space.values())) for space in self._spaces],
            list(map(_parts_of, self._met)),
            [list(map(id, each.values() if type(each) is dict else each)) for each in self._containers],
        )

    def _look_into(self, module: str, space: Mapping[str, Any]) -> None:
        self._spaces.append(space)
        texts = self._digests.setdefault(module, [])
        facade = module in _FACADES or module.startswith("tensorflow._api.")
        for name, value in list(space.items()):
            if name in _NOT_LOOKED_AT or name in HOST_METHODS:
                continue
            place = f"{module}.{name}"
            kind: Any = type(value)
            if place in _UNSETTLED or (place == _FLAGS and (value is None or _is_compiled(kind))):
                continue
            text = self._text(value, place)
            if text and (facade or issubclass(type(value), types.ModuleType)):
                self._digests[f"{place} ="] = [text]  # apart: it may be loaded in one process and not in another
            elif text:
                texts.append(f"{name}={text}")
        for name, token in space.get(OFFERED, {}).items():  # what is put off counts as if it were there
            text = "" if token.name else _module_text(token.module, f"{module}.{name}")
            if text:
                self._digests[f"{module}.{name} ="] = [text]

    def _look_into_class(self, kind: Any, module: str) -> None:
        """Add the members of a class to the digest of the module that it comes from."""
        self._classes.add(id(kind))
        texts = self._digests.setdefault(module, [])
        space = type.__getattribute__(kind, "__dict__")
        self._spaces.append(space)
        for name, value in list(space.items()):
            if name in _NOT_LOOKED_AT or name in HOST_METHODS or name.startswith("_api_export"):
                continue
            place = f"{module}.{kind.__qualname__}.{name}"
            if name == "_value2member_map_" and issubclass(kind, enum.Flag):
                self._containers.append(value)
                text = self._text(_named_members(kind, value), place)
            else:
                text = "" if place in _UNSETTLED else self._text(value, place)
            if text:
                texts.append(f"{kind.__qualname__}.{name}={text}")

    def _text(self, value: Any, place: str) -> str:
        """Return what stands for a value in the digest; remember it if it is not stock."""
        kind: Any = type(value)
        if kind is types.FunctionType:
            return self._functions.get(id(value)) or self._function(value, place)
        if kind in _SCALARS:
            return repr(value)
        if issubclass(kind, type):
            return self._class(value, place)
        if issubclass(kind, types.ModuleType):
            return _module_text(types.ModuleType.__getattribute__(value, "__dict__").get("__name__"), place)
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
        if kind in _STAND_INS or str(kind.__module__).startswith("unittest") or not _is_known(kind):
            self._replaced[place] = value
        return str(kind.__qualname__)

    def _function(self, function: types.FunctionType, place: str) -> str:
        code = function.__code__
        filename = code.co_filename
        if not is_stock_file(filename) or not _is_stock(function.__module__):
            self._replaced[place] = function
            return "replaced"
        if filename.startswith("<"):
            self._generated.add(code)
        self._met.append(function)
        self._functions[id(function)] = function.__qualname__  # it may lead to itself
        parts = [f"{function.__qualname__} {zlib.crc32(marshal.dumps(code, 0)):x}"]
        if function.__defaults__:
            parts.append(self._items(function.__defaults__, place))
        if function.__kwdefaults__:
            parts.append(self._items(function.__kwdefaults__.items(), place))
        if function.__closure__:
            parts.append(self._closure(function, place))
        wrapped = function.__dict__.get("__wrapped__") if function.__dict__ else None
        if wrapped is not None:
            parts.append(self._text(wrapped, f"{place}.__wrapped__"))
        text = self._functions[id(function)] = " ".join(parts)
        return text

    def _closure(self, function: types.FunctionType, place: str) -> str:
        found = []
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            found.append(self._text(content, place) if type(content) is types.FunctionType else _plain(content))
        return "; ".join(found)

    def _class(self, kind: Any, place: str) -> str:
        module = str(kind.__module__)
        if _is_looked_into(module):
            if id(kind) not in self._classes and not _is_compiled(kind):
                self._look_into_class(kind, module)
        elif not is_stock_module(module) and not _is_compiled(kind):
            self._replaced[place] = kind
        return f"class {module}.{kind.__qualname__}"

    def _container(self, value: Any, place: str) -> str:
        if len(value) > _LARGE:
            return ""
        self._containers.append(value)
        if type(value) is dict:
            return self._items([each for each in value.items() if type(each[0]) in _SCALARS], place, ordered=False)
        return self._items(value, place, ordered=type(value) in (list, tuple))

    def _items(self, items: Iterable[Any], place: str, *, ordered: bool = True) -> str:
        texts = [self._item(each, place) for each in items]
        return "; ".join(texts if ordered else sorted(texts))

    def _item(self, value: Any, place: str) -> str:
        if type(value) is tuple:
            return "(" + ", ".join(self._item(each, place) for each in value) + ")"
        if type(value) is types.FunctionType and is_stock_module(value.__module__):
            return self._functions.get(id(value)) or self._function(value, place)
        return _plain(value)


def _named_members(kind: Any, members: dict[Any, Any]) -> dict[Any, Any]:
    """Return the members of a flag without the combinations that were used so far, which it makes by itself."""
    named = set(map(id, kind._member_map_.values()))
    return {
        key: each
        for key, each in members.items()
        if id(each) in named or type(each) is not kind or vars(each).get("_value_") != key
    }


def _module_text(name: Any, place: str) -> str:
    return "" if f"{name}" == place else f"module {name}"


def _plain(value: Any) -> str:
    kind: Any = type(value)
    if kind in _SCALARS:
        return repr(value)
    if kind is types.FunctionType:
        code = value.__code__
        return f"{value.__module__}.{value.__qualname__} {zlib.crc32(marshal.dumps(code, 0)):x}"
    if issubclass(kind, type):
        return f"{value.__module__}.{value.__qualname__}"
    return str(kind.__qualname__)


@functools.lru_cache(maxsize=8192)
def _is_looked_into(module: str) -> bool:
    return module in _STANDARD or (root_of(module) in _PACKAGES and not module.startswith(_ELSEWHERE))


@functools.lru_cache(maxsize=8192)
def _is_stock(module: str | None) -> bool:
    return is_stock_module(module) or str(module).startswith("namedtuple_")


@functools.lru_cache(maxsize=8192)
def _is_known(kind: Any) -> bool:
    return is_stock_module(kind.__module__) or _is_compiled(kind)


@functools.lru_cache(maxsize=8192)
def _is_compiled(kind: Any) -> bool:
    """Whether a class is made by compiled code: pybind11's, protobuf's or Cython's modules and classes."""
    makers = f"{kind.__module__} {type(kind).__module__} {type(kind).__name__}"
    return any(name in makers for name in ("pybind11", "_cython", "google.", "nanobind", "fast_module_type"))
