"""Puts the signatures of decorated functions off until somebody looks at them.

TensorFlow computes `inspect.signature` for every layer of decoration of every op wrapper, thousands of times, and
almost nobody ever reads one. While TensorFlow is imported, the modules that do so get a signature that is computed when
one of its two fields is first read, and that is an ordinary `inspect.Signature` from then on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from glowplug.imports.window import swap

# Attributes of a function that make `inspect` look at something else than its code.
_REDIRECTING = frozenset({"__wrapped__", "_partialmethod", "__partialmethod__", "__signature__"})

_pending: dict[int, tuple[inspect.Signature, Callable[[Any], inspect.Signature], Any]] = {}


class _Unread(inspect.Signature):
    """A signature that was not read yet. It has the layout of its base, whose instance it becomes."""

    __slots__ = ()

    def __init__(self, build: Callable[[Any], inspect.Signature], subject: Any) -> None:
        _pending[id(self)] = (self, build, subject)  # kept alive here, so that the number stays its own

    def __getattr__(self, name: str) -> Any:
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(f"'Signature' object has no attribute {name!r}")
        return getattr(_read(self), name)

    def __reduce__(self) -> Any:
        return _read(self).__reduce__()

    def __repr__(self) -> str:
        return repr(_read(self))

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        return _read(self).replace(**changes)


_Unread.__name__ = _Unread.__qualname__ = "Signature"
_Unread.__module__ = "inspect"


def _read(unread: inspect.Signature) -> inspect.Signature:
    entry = _pending.get(id(unread))
    if entry is not None:
        _, build, subject = entry
        whole: Any = build(subject)
        target: Any = unread
        target._parameters, target._return_annotation = whole._parameters, whole._return_annotation
        target.__class__ = inspect.Signature
        del _pending[id(unread)]
    return unread


def signature(target: Any) -> inspect.Signature:
    """Return what `inspect.signature` would, unread where the target is a plain function."""
    if type(target) is FunctionType:
        names = target.__dict__
        known = names.get("__signature__")
        if isinstance(known, inspect.Signature):
            return known
        if known is None and _REDIRECTING.isdisjoint(names):
            return _Unread(inspect.signature, target)
    return inspect.signature(target)


def getfullargspec(target: Any) -> inspect.FullArgSpec:
    """Return what `inspect.getfullargspec` would, straight from the code where the target is a plain function."""
    if type(target) is not FunctionType or "__signature__" in target.__dict__:
        return inspect.getfullargspec(target)
    code = target.__code__
    names, count, keywords = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    after = count + keywords
    varargs = varkw = None
    if code.co_flags & inspect.CO_VARARGS:
        varargs, after = names[after], after + 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        varkw, after = names[after], after + 1
    notes = target.__annotations__
    return inspect.FullArgSpec(
        args=list(names[:count]),
        varargs=varargs,
        varkw=varkw,
        defaults=target.__defaults__ or None,
        kwonlyargs=list(names[count : count + keywords]),
        kwonlydefaults=target.__kwdefaults__ or None,
        annotations={name: notes[name] for name in ("return", *names[:after]) if name in notes},
    )


def in_decorators(module: ModuleType) -> Callable[[], Callable[[], None]]:
    """Return how to patch `tensorflow.python.util.tf_decorator`."""

    def opening() -> Callable[[], None]:
        stock = module.fullargspec_to_signature
        stand_in = SimpleNamespace(**{**vars(inspect), "signature": signature})

        def fullargspec_to_signature(spec: inspect.FullArgSpec) -> inspect.Signature:
            return _Unread(stock, spec)

        return swap(module, inspect=stand_in, fullargspec_to_signature=fullargspec_to_signature)

    return opening


def in_inspection(module: ModuleType) -> Callable[[], Callable[[], None]]:
    """Return how to patch `tensorflow.python.util.tf_inspect`."""
    return lambda: swap(module, _getfullargspec=getfullargspec)
