"""Wrappers of the probe: what they look like, and the room that they leave on the interpreter's frame stack."""

from __future__ import annotations

import importlib
import inspect
import resource
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from glowplug.probe import entry_files

CALLS = 400


@pytest.fixture
def patching(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(entry_files._ENTRY))
    yield importlib.import_module("_glowplug_shim.patching")
    for name in [name for name in sys.modules if name.startswith("_glowplug_shim")]:
        del sys.modules[name]


def small() -> None:
    pass


# A frame larger than that of `faults_at`: there is a depth at which the one fits and the other does not.
small.__code__ = small.__code__.replace(co_stacksize=64)


def faults_at(depth: int) -> int:
    """Return how many page faults a loop of calls makes, `depth` frames further down."""
    if depth:
        return faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        small()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def depths_that_fault(function: Callable[[int], int]) -> list[int]:
    return [depth for depth in range(200) if function(depth) >= CALLS // 2]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames are allocated one by one")
def test_what_a_roomy_wrapper_calls_crosses_no_chunk(patching: ModuleType) -> None:
    @patching.roomy
    def wrapper(depth: int) -> int:
        return faults_at(depth)

    assert depths_that_fault(faults_at), "this Python does not have what `roomy` avoids"
    assert depths_that_fault(wrapper) == []


def test_a_roomy_wrapper_is_otherwise_the_same(patching: ModuleType) -> None:
    def original(one: int, *more: int, named: str = "x", **others: Any) -> tuple[Any, ...]:
        """Text."""
        return one, more, named, others

    wrapper = patching.roomy(original)
    assert wrapper is original
    assert wrapper(1, 2, named="y", z=3) == (1, (2,), "y", {"z": 3})
    assert wrapper.__doc__ == "Text."
    with pytest.raises(TypeError):
        wrapper()


def test_a_wrapper_looks_like_what_it_wraps(patching: ModuleType) -> None:
    class Owner:
        def __init__(self, width: int) -> None:
            self.width = width

    original = Owner.__init__

    class Notes:
        def note(self, text: str) -> None:
            raise AssertionError(text)

    def make(function: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    assert patching.Patcher(Notes(), "Python").replace(Owner, "__init__", make)
    assert Owner(3).width == 3
    assert Owner.__init__ is not original
    assert inspect.getfullargspec(Owner.__init__).args == ["self", "width"]
    assert Owner.__init__.__qualname__ == original.__qualname__
