"""Imports what children shall find ready, and proves that this started no thread. Runs in the standby."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

from glowplug.core.errors import StandbyError
from glowplug.standby.child import pools
from glowplug.standby.child.withheld import WithheldModules, withhold


def thread_count() -> int:
    """Return how many threads the kernel sees in this process."""
    return len(os.listdir("/proc/self/task"))


def assert_one_thread() -> None:
    """Raise `StandbyError` if a fork now would lose threads, and the locks they hold."""
    count = thread_count()
    if count != 1:
        raise StandbyError(
            "a standby must not fork with more than one thread",
            seen=f"{count} threads: {', '.join(_thread_names())}",
            remedy="leave the package that starts threads out of the preload list",
        )


def import_all(kind: str, preload: tuple[str, ...], companion: str = "") -> WithheldModules | None:
    """Import the list in order, call the companion, warm what is safe, and leave one thread and frozen memory."""
    gc.disable()
    roots: dict[str, list[str]] = {}
    variables: dict[str, dict[str, str]] = {}
    at_first, environment = set(sys.modules), dict(os.environ)
    for name in preload:
        import_module(name)
        roots[name] = [each for each in sys.modules if each not in at_first]
        variables[name] = {key: value for key, value in os.environ.items() if environment.get(key) != value}
    os.environ.clear()
    os.environ.update(environment)  # what the imports set is the programs' (and would change the key of a successor)
    _warm(kind)
    if kind == "python":
        from glowplug.standby.child import vetting  # noqa: F401 - every child needs it
    if companion:
        module, _, function = companion.partition(":")
        getattr(import_module(module), function)(preload)
        if preload:
            roots[preload[-1]] = [each for each in sys.modules if each not in at_first]
    pools.end()
    assert_one_thread()
    if kind != "python":
        return None
    withheld = withhold(roots, _stays)
    for name, settings in variables.items():
        withheld.sets(name, settings)
    return withheld


def freeze() -> None:
    """Move everything out of the collector's sight, so that a child's collection does not copy the heap."""
    gc.collect()
    gc.freeze()


def _warm(kind: str) -> None:
    if kind == "native":
        from glowplug.runtime.library import is_installed, open_library

        if is_installed() or "ai_edge_litert" not in sys.modules:  # without both, this says what is missing
            open_library()
    if kind == "native" or "tensorflow" in sys.modules:
        from .warming import warm

        warm()


def _stays(name: str) -> bool:
    """Tell which modules stay visible: the standard library's are not worth hiding, ours are in use."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top == "glowplug" or top.startswith("__")


def _thread_names() -> list[str]:
    found = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm", encoding="utf-8", errors="replace") as stream:
            found.append(stream.read().strip())
    return found
