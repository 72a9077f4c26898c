"""What `glowplug run` does around a program: switches its parts on, then becomes the program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from glowplug.imports.ledger import Ledger, seconds

from .program import execute

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from glowplug.core.target import Target
    from glowplug.imports.watch import Watcher

_TRACE_CACHE = "trace cache"


class Options(NamedTuple):
    """Which parts are on. `explain` is empty, `text` or `json`: how to say at exit what was applied."""

    imports: bool = True
    prefetch: bool = True
    trace_cache: bool = True
    explain: str = ""


def start(target: Target, options: Options) -> None:
    """Run the program in this process with everything the options ask for."""
    prepare(options)
    execute(target)


def prepare(options: Options, *, warm: bool = False) -> None:
    """Switch on what the options ask for, in the process that will be the program; a `warm` one has TensorFlow."""
    import atexit

    from glowplug.imports.watch import Watcher

    ledger, watcher = Ledger(), Watcher()
    watcher.install()
    if options.explain:
        atexit.register(ledger.tell, as_json=options.explain == "json")  # first: the last to be called
    if warm:
        ledger.add("standby", "TensorFlow and Keras were imported before the program was named")
    if options.trace_cache:
        _enable_trace_cache_with_keras(watcher, ledger)
    if options.prefetch and not warm:
        from glowplug.imports.prefetch import Prefetch

        atexit.register(Prefetch(watcher, ledger).finish)
    if options.imports and not warm:
        from glowplug.imports.accelerate import Acceleration

        atexit.register(Acceleration(watcher, ledger).finish)


def _enable_trace_cache_with_keras(watcher: Watcher, ledger: Ledger) -> None:
    """Have `train.enable()` called once the program has imported Keras and TensorFlow, and never otherwise.

    TensorFlow imports parts of Keras at the end of its own import: then it is called when that has ended too. Keras on
    another backend imports no TensorFlow, and neither do we.
    """
    under_way: list[str] = []

    def begin(spec: ModuleSpec) -> None:
        under_way.append(spec.name)

    def end(module: ModuleType | None) -> None:
        under_way.pop()
        if not under_way and "keras" in sys.modules and "tensorflow" in sys.modules:
            _enable_trace_cache(ledger)

    for name in ("keras", "tensorflow"):
        watcher.watch(name, before=begin, after=end)


def _enable_trace_cache(ledger: Ledger) -> None:
    import atexit
    from time import perf_counter_ns

    began = perf_counter_ns()
    try:
        from glowplug.train import switch

        if switch.current_caching() is not None:
            return
        switch.enable()
    except Exception as error:  # this is the program's import statement, which must not fail for our reasons
        ledger.refuse(
            _TRACE_CACHE, f"cannot be switched on: {type(error).__name__}: {error}; steps are traced as usual"
        )
        return
    took = perf_counter_ns() - began
    ledger.add(_TRACE_CACHE, f"switched on in {seconds(took)}", enable_ns=took)
    atexit.register(lambda: _count(switch.counts(), ledger))


def _count(counts: dict[str, int], ledger: Ledger) -> None:
    told = ", ".join(f"{number} {what}" for what, number in counts.items() if number) or "no step was run"
    ledger.add(_TRACE_CACHE, told, **counts)
