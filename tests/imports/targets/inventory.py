"""Prints every name that is reachable from `tf` and `tf.keras`, with what it is, as JSON: inventory.py FILE"""

import inspect
import json
import pickle
import sys
import types
from pathlib import Path

import keras
import tensorflow as tf

seen: dict[str, list[object]] = {}
visited: set[int] = set()


def describe(value: object) -> list[object]:
    kind = type(value)
    facts: list[object] = [f"{kind.__module__}.{kind.__qualname__}"]
    if isinstance(value, type) or inspect.isroutine(value):
        facts += [getattr(value, "__module__", None), getattr(value, "__qualname__", None), bool(value.__doc__)]
        try:
            facts.append(str(inspect.signature(value)) if " at 0x" not in str(inspect.signature(value)) else "address")
        except (TypeError, ValueError) as error:
            facts.append(type(error).__name__)
    if not isinstance(value, types.ModuleType):
        try:
            pickle.dumps(value)
            facts.append("pickles")
        except Exception as error:
            facts.append(type(error).__name__)
    return facts


def walk(path: str, module: types.ModuleType) -> None:
    if id(module) in visited:
        return
    visited.add(id(module))
    for name in sorted(dir(module)):
        if name in ("__builtins__", "__cached__", "__loader__", "__spec__", "__warningregistry__"):
            continue
        where = f"{path}.{name}"
        try:
            value = getattr(module, name)
        except Exception as error:
            seen[where] = [f"raises {type(error).__name__}"]
            continue
        seen[where] = describe(value)
        named = getattr(value, "__name__", "") or ""
        is_page = named.startswith(("tensorflow._api", "keras.", "tensorflow.keras")) and "keras.src" not in named
        if isinstance(value, types.ModuleType) and is_page:
            walk(where, value)


walk("tf", tf)
walk("tf.keras", tf.keras)
walk("keras", keras)
Path(sys.argv[1]).write_text(json.dumps(seen))
