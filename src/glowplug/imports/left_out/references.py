"""Makes the annotations of TensorFlow's op wrappers cheap.

Each wrapper has type variables whose constraints are written as strings, thousands in all and a few dozen different
ones; `typing` compiles each of them. While TensorFlow is imported, equal strings give one and the same `ForwardRef`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

_OURS = "_atypes."  # how the generated wrappers write them; all of them mean the same module


def share_references() -> Callable[[], None] | None:
    """Share forward references until the returned function is called."""
    stock: Any = getattr(typing, "_type_check", None)
    if stock is None:
        return None
    known: dict[str, Any] = {}

    def _type_check(arg: Any, *rest: Any, **options: Any) -> Any:
        if type(arg) is not str or not arg.startswith(_OURS):
            return stock(arg, *rest, **options)
        reference = known.get(arg)
        if reference is None:
            reference = known[arg] = stock(arg, *rest, **options)
        return reference

    typing._type_check = _type_check  # type: ignore[attr-defined]

    def restore() -> None:
        if typing._type_check is _type_check:  # type: ignore[attr-defined]
            typing._type_check = stock  # type: ignore[attr-defined]

    return restore
