"""Lookup tables: what a key says of them, and the handle a restored graph is bound to.

A table is its contents, which a step can see while it is traced (the size of a vocabulary becomes a shape). One that
cannot change after it was filled is bound like a variable; one that can is never an argument of a stored graph.
"""

from __future__ import annotations

import hashlib
from typing import Any

from .errors import NoKeyError

# What TensorFlow itself keeps on a table. Anything else was put there by someone.
_OWN_ATTRIBUTES = frozenset(
    {
        "_checkpoint",
        "_default_value",
        "_init_op",
        "_initializer",
        "_is_anonymous",
        "_key_dtype",
        "_name",
        "_resource_device",
        "_resource_handle_value",
        "_self_destruction_context",
        "_self_name_based_restores",
        "_self_saveable_object_factories",
        "_self_setattr_tracking",
        "_self_unconditional_checkpoint_dependencies",
        "_self_unconditional_deferred_dependencies",
        "_self_unconditional_dependency_names",
        "_self_update_uid",
        "_shared_name",
        "_table_name",
        "_value_dtype",
        "_value_shape",
    }
)


def is_table(value: object) -> bool:
    """Whether `value` is a hash table of TensorFlow's own, and not of a class derived from it."""
    from tensorflow.python.ops import lookup_ops

    return type(value) in (lookup_ops.StaticHashTable, lookup_ops.MutableHashTable)


def is_constant(table: Any) -> bool:
    """Whether a table keeps its contents once it was filled."""
    from tensorflow.python.ops import lookup_ops

    return type(table) is lookup_ops.StaticHashTable


def table_handle(table: Any) -> Any:
    """Return the resource that stands for a table in a graph."""
    return table.resource_handle


def table_spec(table: Any) -> str:
    """Describe a table by its types, its default and its contents, whatever their order."""
    added = vars(table).keys() - _OWN_ATTRIBUTES
    if added:
        raise NoKeyError(f"a lookup table has an attribute {min(added)} that is not TensorFlow's")
    kind = f"{type(table).__name__} {table.key_dtype.name} -> {table.value_dtype.name}"
    return f"{kind} default {table._default_value.numpy()!r} contents {_contents(table)}"


def _contents(table: Any) -> str:
    import numpy as np
    from tensorflow.python.framework import errors

    try:
        keys, values = (np.asarray(part.numpy()) for part in table.export())
    except errors.FailedPreconditionError:
        return "not filled"
    rows = sorted((_encoded(key), _encoded(value)) for key, value in zip(keys, values, strict=True))
    whole = hashlib.sha256()
    for row in rows:
        for part in row:
            whole.update(b"%d\0%s" % (len(part), part))
    return f"{len(rows)} {whole.hexdigest()}"


def _encoded(value: Any) -> bytes:
    import numpy as np

    return value if isinstance(value, bytes) else np.asarray(value).tobytes()
