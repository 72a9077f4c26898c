"""Which attributes code may read whose names begin with an underscore: those listed here, and those that a key holds.

Such names are where stock objects keep what is their own: numbers in the order in which things were made, addresses,
caches, first values. Nobody can list them all. So the world is closed: code of the program's own that reads one of them
must not run in a trace, unless the name

- is special to Python, and what stands there is a function of what a key holds: `ALLOWED`;
- is something of the program's own: a member of one of its classes, or an attribute that its code sets;
- was met by the walk, as an attribute that is in the key or as code of a class that is.

What is known to be in no key although the name is one of these is refused by `uses`.
"""

from __future__ import annotations

import types
from typing import Any

_OPERATORS = (
    "abs add and bool bytes call ceil complex contains delitem divmod eq float floor floordiv ge getitem gt iadd iand "
    "ifloordiv ilshift imatmul imod imul index int invert ior ipow irshift isub iter itruediv ixor le len length_hint "
    "lshift lt matmul missing mod mul ne neg next or pos pow radd rand rdivmod reversed rfloordiv rlshift rmatmul rmod "
    "rmul ror round rpow rrshift rshift rsub rtruediv rxor setitem sub truediv trunc xor"
)
_PROTOCOLS = (
    "aenter aexit aiter anext array array_function array_ufunc await class_getitem del delattr delete enter exit get "
    "getattr getattribute init init_subclass instancecheck mro_entries new post_init prepare set set_name "
    "setattr subclasscheck subclasshook"
)
# Texts of objects may show an address, which `texts` looks after.
_TEXTS = "format repr str"
# What functions, methods and classes are made of, as a key holds it; `uses` says what depends on types.
_PARTS = (
    "callback class defaults func kwdefaults members mro name qualname self version wrapped "
    "args bound constraints default forward_value metadata orig_bases origin parameters supertype"
)
_SPECIAL = frozenset(f"__{name}__" for name in f"{_OPERATORS} {_PROTOCOLS} {_TEXTS} {_PARTS}".split())
_OF_TRACES = frozenset(
    [
        "_keras_mask",  # a tensor in a trace has one where a layer of that trace has put it there
        # names, which are in a key where code reads them
        "_name",
        "_path",
        # of Keras' variables, as `variables` describes them
        "_aggregation",
        "_autocast",
        "_dtype",
        "_ndim",
        "_overwrite_with_gradient",
        "_shape",
        "_synchronization",
        "_trainable",
        "_value",
        # of named tuples, enumerations and data classes: their fields and members
        "_asdict",
        "_fields",
        "_field_defaults",
        "_make",
        "_replace",
        "_name_",
        "_value_",
    ]
)
ALLOWED = _SPECIAL | _OF_TRACES
# Public names that lead from a tensor to the graph that is being made: numbers, names, collections, seeds.
_TO_GRAPHS = frozenset({"graph", "outer_graph"})
_CODE = (types.FunctionType, property, staticmethod, classmethod)


def is_judged(name: str) -> bool:
    """Whether an attribute of this name may be read only if it is allowed, or held."""
    return name.startswith("_") or name in _TO_GRAPHS


def unknown_name(names: frozenset[str], held: set[str]) -> str | None:
    """Return the first of these names of attributes that is neither allowed nor held by a key."""
    return min((name for name in names - held if is_judged(name) and name not in ALLOWED), default=None)


def unknown_pieces(texts: set[str], held: set[str]) -> list[str]:
    """Return the texts from which the name of something that no key holds may be put together."""
    return sorted(each for each in texts if "__" in each or (is_judged(each) and each not in held | ALLOWED))


def names_of_code(kind: Any) -> set[str]:
    """Return what a stock class has under names of its own kind: code, which is judged when it runs."""
    members = type.__getattribute__(kind, "__dict__")
    return {name for name, each in members.items() if name.startswith("_") and name[:2] != "__" and type(each) in _CODE}
