"""Writes every name that is reachable from `tf` and `tf.keras`, with what it is, as JSON: inventory.py FILE"""

import inspect
import json
import pickle
import sys
import types
from pathlib import Path

from reachable import names


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
        facts.append(pickled(value))
    return facts


def pickled(value: object) -> str:
    try:
        data = pickle.dumps(value)
    except Exception as error:
        return type(error).__name__
    try:
        found = pickle.loads(data)
    except Exception as error:
        return f"pickles, and cannot be read: {type(error).__name__}"
    return "pickles to itself" if found is value else f"pickles to {type(found).__module__}.{type(found).__qualname__}"


Path(sys.argv[1]).write_text(json.dumps({where: describe(value) for where, value in names()}))
