"""What a survey asks of single objects: whether they are the same as before or stock, and how they are written down."""

from __future__ import annotations

import functools
import marshal
import operator
import sys
import types
import zlib
from typing import Any

from .scope import UNSETTLED, is_looked_into
from .trusted import is_stock_function, is_stock_module

SCALARS = frozenset({bool, int, float, complex, str, bytes, type(None)})
_EMPTY = object()


def are_same(before: list[Any], now: list[Any]) -> bool:
    """Whether two lists hold the same objects: equal ones may differ, as 1 and 1.0 do."""
    return len(before) == len(now) and all(map(operator.is_, before, now))


def items_of(container: Any) -> list[Any]:
    """Return all that a container holds, keys included."""
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def parts_of(functions: list[types.FunctionType]) -> list[list[Any]]:
    """Return what makes functions what they are, each kind of part in a list: code, defaults, contents of closures."""
    cells = [cell for each in functions if each.__closure__ for cell in each.__closure__]
    return [
        [each.__code__ for each in functions],
        [each.__defaults__ for each in functions],
        [each.__kwdefaults__ for each in functions],
        list(map(_content, cells)),
    ]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def named_members(kind: Any, members: dict[Any, Any]) -> dict[Any, Any]:
    """Return the members of a flag without the combinations that were used so far, which it makes by itself."""
    named = set(map(id, kind._member_map_.values()))
    return {
        key: each
        for key, each in members.items()
        if id(each) in named or type(each) is not kind or vars(each).get("_value_") != key
    }


def is_users(value: Any, kind: Any) -> bool:
    """Whether something is a function, a class or an object of the program's own."""
    if kind is types.FunctionType:
        return not is_stock_function(value) and not _is_generated(value.__module__)
    if issubclass(kind, type):
        return not is_stock_module(value.__module__) and not is_compiled(value)
    return not is_known(kind)


def _is_generated(module: str | None) -> bool:
    """Whether a module is what TensorFlow makes of a library of operations, or stands for a generated class."""
    made = sys.modules.get(str(module))
    return str(module).startswith("namedtuple_") or (made is not None and "_IS_TENSORFLOW_PLUGIN" in vars(made))


def module_text(name: Any, place: str) -> str:
    """Return what stands for a module; nothing where it is what the place is called."""
    return "" if f"{name}" == place else f"module {name}"


def plain_text(value: Any) -> str:
    """Return a text for a value, which says all if it is plain, and where it comes from if it is not."""
    kind: Any = type(value)
    if kind in SCALARS:
        return repr(value)
    if kind is types.FunctionType:
        code = value.__code__
        return f"{value.__module__}.{value.__qualname__} {zlib.crc32(marshal.dumps(code, 0)):x}"
    if issubclass(kind, type):
        return f"{value.__module__}.{value.__qualname__}"
    return str(kind.__qualname__)


@functools.lru_cache(maxsize=8192)
def has_state(kind: Any) -> bool:
    """Whether what instances of a class hold may matter to a step."""
    looked_into = is_looked_into(kind.__module__) and not is_compiled(kind)
    return looked_into and bool(kind.__dictoffset__) and f"{kind.__module__}.{kind.__qualname__}" not in UNSETTLED


@functools.lru_cache(maxsize=8192)
def is_stock_name(module: str | None) -> bool:
    """Whether a function that says it is of this module may be stock."""
    return is_stock_module(module) or str(module).startswith("namedtuple_")


@functools.lru_cache(maxsize=8192)
def is_known(kind: Any) -> bool:
    """Whether a class is stock, or compiled."""
    return is_stock_module(kind.__module__) or is_compiled(kind)


@functools.lru_cache(maxsize=8192)
def is_compiled(kind: Any) -> bool:
    """Whether a class is made by compiled code: pybind11's, protobuf's or Cython's modules and classes."""
    makers = f"{kind.__module__} {type(kind).__module__} {type(kind).__name__}"
    return any(name in makers for name in ("pybind11", "_cython", "google.", "nanobind", "fast_module_type"))
