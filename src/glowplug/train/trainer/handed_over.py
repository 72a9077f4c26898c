"""Watches what a step of the user's own hands to the compiled loss and metrics.

They are made for the structure of what they are first given. Built ahead, that is what the model returns. A step may
hand them something else, and only its trace tells. Then they are put back and built for what they are given, as stock
Keras would have done, and the trace is made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_METHODS = ("call", "update_state")  # of the loss, and of the metrics


@dataclass(frozen=True, slots=True)
class BuiltAhead:
    """A loss or metrics, the attributes that it had before it was built, and what it was built for."""

    part: Any
    before: dict[str, Any]
    given: tuple[Any, Any]

    def build_for(self, given: tuple[Any, Any]) -> BuiltAhead:
        """Build it again, for something else."""
        put_back(self.part, self.before)
        build_by_use(self.part, *given)
        return BuiltAhead(self.part, self.before, given)


def build_by_use(part: Any, y_true: Any, y_pred: Any) -> None:
    """Build a loss or metrics by using them on specifications, as Keras' trainer does: a call of the loss gives its
    variables their names, and what is in them may be built by its first use.
    """
    from keras.src import backend

    backend.compute_output_spec(part if _method(part) == "call" else part.update_state, y_true, y_pred)


class _OtherwiseError(Exception):
    """Ends a trace; whoever catches it looks at what was noted instead."""


def state_of(part: Any) -> dict[str, Any]:
    """Return the attributes of a loss or of metrics, to be put back: each with its items if it is a list."""
    return {name: (value, list(value) if isinstance(value, list) else None) for name, value in vars(part).items()}


def put_back(part: Any, before: dict[str, Any]) -> None:
    """Give a loss or metrics the attributes that they had. Keras' tracker holds on to lists, so these stay the same."""
    vars(part).clear()
    for name, (value, items) in before.items():
        if items is not None:
            list.__setitem__(value, slice(None), items)
        vars(part)[name] = value


def trace_watched(trace: Callable[[], Any], built: list[BuiltAhead]) -> Any:
    """Make a trace in which loss and metrics are given what they were built for."""
    for _ in built:
        noted: dict[int, tuple[Any, Any]] = {}
        for number, each in enumerate(built):
            vars(each.part)[_method(each.part)] = _watching(each, number, noted)
        try:
            return trace()
        except BaseException:
            if not noted:
                raise
        finally:
            for each in built:
                vars(each.part).pop(_method(each.part), None)
        for number, given in noted.items():
            built[number] = built[number].build_for(given)
    return trace()


def _watching(built: BuiltAhead, number: int, noted: dict[int, tuple[Any, Any]]) -> Callable[..., Any]:
    stock = getattr(built.part, _method(built.part))

    def watching(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        given = (_described(y_true), _described(y_pred))
        if not _same_structure(given, built.given):
            noted[number] = given
            raise _OtherwiseError
        return stock(y_true, y_pred, sample_weight)

    return watching


def _method(part: Any) -> str:
    return next(name for name in _METHODS if hasattr(type(part), name))


def _described(value: Any) -> Any:
    from keras.src import backend, tree

    def describe(each: Any) -> Any:
        return each if each is None else backend.KerasTensor(tuple(each.shape), backend.standardize_dtype(each.dtype))

    return tree.map_structure(describe, value)


def _same_structure(one: Any, other: Any) -> bool:
    from keras.src import tree

    try:
        tree.assert_same_structure(one, other)
    except (TypeError, ValueError):
        return False
    return True
