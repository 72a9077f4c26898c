"""Which code is stock: the standard library, numpy, TensorFlow, Keras and Glowplug itself.

Stock code is identified by its version, which is part of every key. All other code is hashed by value. A
stock package whose functions were replaced at run time counts as changed only where it was replaced:
`replacements` finds those places.
"""

from __future__ import annotations

import contextlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = frozenset(
    {
        "tensorflow",
        "keras",
        "tf_keras",  # it hooks itself into TensorFlow when it is imported
        "numpy",
        "glowplug",
        "ml_dtypes",
        "optree",
        "absl",
        "google",
        "wrapt",
        "h5py",
        "namex",
    }
    | {"packaging", "typing_extensions", "flatbuffers", "six", "opt_einsum", "gast"}
)

# What runs around a step, never inside its trace: tools that log runs replace exactly these.
HOST_METHODS = frozenset(
    {
        "fit",
        "evaluate",
        "predict",
        "compile",
        "train_on_batch",
        "test_on_batch",
        "predict_on_batch",
        "save",
        "save_weights",
        "load_weights",
        "load_model",
        "save_model",
        "export",
        "summary",
        "_make_function",
        "make_train_function",
        "make_test_function",
        "make_predict_function",
    }
)


def root_of(module: str | None) -> str:
    """Return the first part of a dotted module name."""
    return (module or "").partition(".")[0]


def is_stock_module(module: str | None) -> bool:
    """Whether code of this module is covered by the versions in the key."""
    root = root_of(module)
    return root in PACKAGES or root in sys.stdlib_module_names


@lru_cache(maxsize=8192)
def is_stock_file(filename: str) -> bool:
    """Whether a code object's file lies in a stock package or the standard library."""
    if filename.startswith("<"):
        # `<frozen importlib>`, and what the standard library compiles while it runs: `<string>` for named
        # tuples, `<__array_function__ internals>` for numpy. Whoever asks also checks the module.
        return True
    if filename.startswith(_package_folders()):
        return True
    # Site packages live inside the standard library's folder: there, only the packages above count.
    return filename.startswith(_stdlib_folders()) and "-packages/" not in filename


def is_stock_function(function: types.FunctionType) -> bool:
    """Whether a function comes, unreplaced, from stock code."""
    return is_stock_module(function.__module__) and is_stock_file(function.__code__.co_filename)


_stock_classes: dict[int, tuple[Any, bool]] = {}  # by id: a metaclass may say that two classes are equal


def is_stock_class(kind: Any) -> bool:
    """Whether a class comes from stock code, and was not made by it for a program.

    `dataclasses.make_dataclass` and `types.new_class` say that what they make is of the module `types`.
    """
    known = _stock_classes.get(id(kind))
    if known is None:
        if len(_stock_classes) > 8192:
            _stock_classes.clear()
        known = _stock_classes[id(kind)] = kind, _is_stock_class(kind)
    return known[1]


def _is_stock_class(kind: Any) -> bool:
    space = type.__getattribute__(kind, "__dict__")
    module = type.__getattribute__(kind, "__module__")
    if type(module) is not str or not is_stock_module(module):
        return False
    qualname = type.__getattribute__(kind, "__qualname__")
    if _at_home(module, qualname) is kind or _is_compiled(kind, space) or _is_member(module, kind):
        return True
    # Stock code makes classes inside functions, too: then it has written their methods.
    methods = [each for each in space.values() if type(each) is types.FunctionType]
    files = [each.__code__.co_filename for each in methods if each.__qualname__.startswith(f"{qualname}.")]
    written = len(files) == len(methods) > 0 and "<locals>" in qualname
    return written and all(is_stock_file(file) and not file.startswith("<") for file in files)


def _at_home(module: str, qualname: str) -> object:
    """Return what a module has under a name."""
    value: Any = sys.modules.get(module)
    for name in qualname.split("."):
        if not isinstance(value, (type, types.ModuleType)):
            return None
        value = vars(value).get(name)
    return value


def _is_member(module: str, kind: Any) -> bool:
    """Whether a class of the module holds this one: a named tuple made in a class body does not know where it is."""
    names = vars(sys.modules[module]) if module in sys.modules else {}
    holders = [each for each in list(names.values()) if type(each) is type and each.__module__ == module]
    return any(vars(holder).get(kind.__name__) is kind for holder in holders)


def _is_compiled(kind: Any, space: Any) -> bool:
    """No class statement makes a descriptor of a C function that belongs to the class itself."""
    kinds = (types.WrapperDescriptorType, types.MethodDescriptorType)
    return any(type(each) in kinds and each.__objclass__ is kind for each in space.values())


def registered_functions() -> Iterator[tuple[str, Any]]:
    """Yield `(place, function)` for what was registered with TensorFlow (gradients, conversions) and with `optree`.

    Libraries register theirs when they are imported, whether a step uses them or not: see `installed_stamp`.
    """
    from tensorflow.python.framework import ops, tensor_conversion_registry

    for name, entry in list(ops.gradient_registry._registry.items()):
        if _is_not_stock(entry["type"]):
            yield f"gradient of {name}", entry["type"]
    for priority, entries in sorted(tensor_conversion_registry._tensor_conversion_func_registry.items()):
        for kind, function in entries:
            if _is_not_stock(function):
                yield f"conversion {priority} of {kind}", function
    yield from _registered_with_trees()


def _is_not_stock(function: Any) -> bool:
    """Whether a registered function is the program's; TensorFlow registers functions, or none at all."""
    return function is not None and not (type(function) is types.FunctionType and is_stock_function(function))


def _registered_with_trees() -> Iterator[tuple[str, Any]]:
    """Keras takes structures apart with `optree`, which calls what it has for a class from compiled code."""
    registry = sys.modules.get("optree.registry")
    for entry in list(getattr(registry, "_NODETYPE_REGISTRY", {}).values()):
        kind = entry.type
        if not is_stock_module(kind.__module__):
            for name in ("type", "flatten_func", "unflatten_func"):
                yield f"{name} of {kind.__module__}.{kind.__qualname__} in {entry.namespace}", getattr(entry, name)


def installed_stamp(value: Any) -> str | None:
    """Return a text for a function or class of an installed package, which is its file; None for anything else."""
    if type(value) is types.FunctionType:
        filename = "" if value.__closure__ else value.__code__.co_filename
    elif issubclass(type(value), type):
        filename = str(getattr(sys.modules.get(value.__module__), "__file__", ""))
    else:
        filename = ""
    if "-packages/" not in filename:
        return None
    try:
        info = Path(filename).stat()
    except OSError:
        return None
    return f"{value.__module__}.{value.__qualname__} {info.st_size} {info.st_mtime_ns}"


@lru_cache(maxsize=1)
def _package_folders() -> tuple[str, ...]:
    """Return where the stock packages lie, whether they are loaded yet or not."""
    places: list[str] = []
    for name in sorted(PACKAGES):
        with contextlib.suppress(ImportError, ValueError):
            spec = find_spec(name)
            folders = None if spec is None else spec.submodule_search_locations
            places += [f"{Path(folder)}/" for folder in folders or ()]
            places += [spec.origin] if spec is not None and not folders and spec.origin else []
    return tuple(places)


@lru_cache(maxsize=1)
def _stdlib_folders() -> tuple[str, ...]:
    return tuple({str(Path(sysconfig.get_path(name))) + "/" for name in ("stdlib", "platstdlib")})
