"""Reads which classes were registered as subclasses of an abstract one: `isinstance` knows, no attribute shows it."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import abc
import collections.abc
import contextlib
import functools
import types
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError

from .trusted import is_stock_function, is_stock_module


def registered_subclasses(kind: Any) -> list[type[Any]]:
    """Return the classes that `kind.register` was called with and that are alive, in a fixed order."""
    if "_abc_impl" not in type.__getattribute__(kind, "__dict__"):
        return []
    found = [each for each in (reference() for reference in _abc._get_dump(kind)[0]) if each is not None]
    names = [(str(each.__module__), str(each.__qualname__)) for each in found]
    counts = Counter(names)
    if any(counts[name] > 1 and not _is_compiled(each) for name, each in zip(names, found, strict=True)):
        raise NoKeyError(f"{kind.__qualname__} has two registered subclasses of one name")
    return [each for _, each in sorted(zip(names, found, strict=True), key=lambda pair: pair[0])]


def remembered_answers(kind: Any) -> list[str]:
    """Return what was found out about a class of the program's before, and would be found out otherwise now.

    A hook that decides who is a subclass is asked once about each class. What hooks of the program's own have said is
    returned as it is: they are not run here.
    """
    found = [f"{base.__qualname__} {said}" for base in _stock_hooks() for said in _outdated(base, kind)]
    if _has_own_hook(kind):
        _, positive, negative, version = _abc._get_dump(kind)
        answers = [(True, positive), *([(False, negative)] if version == abc.get_cache_token() else [])]
        alive = [(said, each()) for said, references in answers for each in references]
        found += [f"{said} {each.__module__}.{each.__qualname__}" for said, each in alive if each is not None]
    return sorted(found)


def _has_own_hook(kind: Any) -> bool:
    if "_abc_impl" not in type.__getattribute__(kind, "__dict__"):
        return False
    spaces = [type.__getattribute__(base, "__dict__") for base in type.__getattribute__(kind, "__mro__")]
    hook = next((space["__subclasshook__"] for space in spaces if "__subclasshook__" in space), None)
    return type(hook) is not types.ClassMethodDescriptorType and not (
        type(hook) is classmethod and type(hook.__func__) is types.FunctionType and is_stock_function(hook.__func__)
    )


def _outdated(base: Any, kind: Any) -> Iterator[bool]:
    """Yield what an abstract class of the standard library remembers of a class, if it is not so any more."""
    _, positive, negative, version = _abc._get_dump(base)
    reference = weakref.ref(kind)
    if reference in positive:
        if not _is_subclass(base, kind):
            yield True
    elif version == abc.get_cache_token() and reference in negative and _is_subclass(base, kind):
        yield False


def _is_subclass(base: Any, kind: Any) -> bool:
    """Whether a class counts as a subclass, asked anew. No code of the program's is run."""
    mro = type.__getattribute__(kind, "__mro__")
    if base in mro:
        return True
    if type(base) is not abc.ABCMeta:
        return False
    if is_stock_module(base.__module__) and base.__subclasshook__(kind) is True:
        return True
    registered = [each for each in (reference() for reference in _abc._get_dump(base)[0]) if each is not None]
    subclasses: Any = type.__subclasses__  # the method of a class may be another
    below = [*registered, *subclasses(base)]
    return any(each is not base and _is_subclass(each, kind) for each in below)


@functools.lru_cache(maxsize=1)
def _stock_hooks() -> tuple[Any, ...]:
    """Return the abstract classes of the standard library that look at the methods that a class has."""
    places = (*vars(collections.abc).values(), *vars(contextlib).values())
    return tuple({each: None for each in places if type(each) is abc.ABCMeta and "__subclasshook__" in vars(each)})


def _is_compiled(kind: Any) -> bool:
    """Whether a class was made by compiled code and has none of the program's.

    Every extension module of Cython's that uses arrays registers an `array` of its own, all of one name. No class
    statement makes a descriptor of a C function that belongs to the class itself.
    """
    members = type.__getattribute__(kind, "__dict__").values()
    return any(
        type(each) in (types.WrapperDescriptorType, types.MethodDescriptorType) and each.__objclass__ is kind
        for each in members
    ) and all(is_stock_function(each) for each in members if type(each) is types.FunctionType)
