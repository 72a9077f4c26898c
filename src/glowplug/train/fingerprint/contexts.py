"""What is in force while a step is traced and no object leads to: Keras' state of this thread, TensorFlow's scopes."""

from __future__ import annotations

import collections
import contextlib
import decimal
import locale
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .walker import Walker

# Counters of automatic names, switches for saving, and a generator that is captured as a variable where it is used.
_NOT_IN_KEYS = frozenset({"object_name_uids", "tracking_on", "nnx_enabled", "global_seed_generator"})
COUNTS = "counts of names"  # the component of a key that a trace may change: it is about what is made next
_FLAGS = (bool, int, float, str)  # which say something even if they are off; lists and tables of scopes do not
SYMBOLS = ("keras_tensor", "scratch_graph")  # what Keras makes to build a model ahead of a step
_OF_SAVING = "saving_attr_skipset_"  # which attributes saving passes over, by class, once something was saved


def visit_contexts(walker: Walker) -> None:
    """Add to the key whatever Keras keeps for this thread, by value, and the names that are in force."""
    from keras.src.backend.common import global_state
    from keras.src.dtype_policies.dtype_policy import dtype_policy
    from tensorflow.python.eager import context

    dtype_policy()  # made when it is first asked for, which a trace may be the first to do
    previous = walker.stream.enter("settings of this thread")
    state = vars(global_state.GLOBAL_STATE_TRACKER)
    for name in sorted(state.keys() - _NOT_IN_KEYS):
        if (state[name] or type(state[name]) in _FLAGS) and not name.startswith(_OF_SAVING):
            walker.stream.emit("state", name.encode())
            walker.visit(state[name], f"keras {name}")
    walker.stream.leaf("tensorflow name scope", "scope", context.context().scope_name or "")
    for name, value in _settings_of_libraries():
        walker.stream.emit("setting", name.encode())
        walker.visit(value, name)
    walker.stream.enter(previous)


def automatic_names() -> Iterator[tuple[str, int]]:
    """Yield how far Keras has counted for names: what is made in a trace has the next one.

    Symbolic tensors and scratch graphs are left out: Keras makes them to build a model, ahead of a step or in it.
    """
    from keras.src.backend.common import global_state

    for name, count in sorted(global_state.get_global_attribute("object_name_uids", {}).items()):
        if name not in SYMBOLS:
            yield str(name), int(count)


def counted_names() -> dict[str, int]:
    """Return how far Keras has counted for all names."""
    return dict(_name_counts())


def count_on(before: Mapping[str, int], more: Mapping[str, int]) -> None:
    """Count as far as a trace did that was begun at `before`: what is made next has the names that it would have."""
    counts = _name_counts()
    for name, times in more.items():
        counts[name] = max(counts[name], before.get(name, 0) + times)


@contextlib.contextmanager
def name_counts_kept(names: Collection[str] = ()) -> Iterator[None]:
    """What is made inside takes no name away from what is made later: no name at all, or none of these."""
    before = counted_names()
    try:
        yield
    finally:
        counts = _name_counts()
        for name in names or list(counts):
            counts.pop(name, None)
            if name in before:
                counts[name] = before[name]


def _name_counts() -> Any:
    from keras.src.backend.common import global_state

    made: dict[str, int] = collections.defaultdict(int)
    return global_state.get_global_attribute("object_name_uids", made, set_to_default=True)


def _settings_of_libraries() -> Iterator[tuple[str, object]]:
    """Yield what decides how numbers are calculated and written by functions that are admitted."""
    fields = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    for name, arithmetic in (("decimal context", decimal.getcontext()), ("new contexts", decimal.DefaultContext)):
        yield name, [getattr(arithmetic, field) for field in fields]
        yield f"{name} traps", sorted(signal.__name__ for signal, on in arithmetic.traps.items() if on)
        yield f"{name} flags", sorted(signal.__name__ for signal, on in arithmetic.flags.items() if on)
    yield "numpy errors", np.geterr()
    yield "what numpy calls on errors", np.geterrcall()
    yield "size of numpy's buffers", np.getbufsize()
    yield "numpy print options", np.get_printoptions()
    yield "locale of numbers", locale.setlocale(locale.LC_NUMERIC)
    errors = [each for each in warnings.filters if each[0] == "error"]
    yield "warnings that are errors", [(each[1], each[3:], f"{each[2].__module__}.{each[2]}") for each in errors]
    yield "other warnings", getattr(warnings, "defaultaction", "")
    yield "tables in trees that keep their order", _ordered_namespaces()
    yield "depth of calls", sys.getrecursionlimit()
    yield "longest integer in a text", sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0


def _ordered_namespaces() -> list[str]:
    """Return the namespaces in which `optree` takes dictionaries apart in their own order, not by their keys."""
    optree = sys.modules.get("optree")
    registry = sys.modules.get("optree.registry")
    asked = getattr(getattr(optree, "_C", None), "is_dict_insertion_ordered", None)
    if asked is None:
        return []
    entries = list(getattr(registry, "_NODETYPE_REGISTRY", {}).values())
    return sorted(name for name in {"", "keras", *(str(entry.namespace) for entry in entries)} if asked(name))
