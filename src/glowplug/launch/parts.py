"""The parts of `glowplug run`, switched on in a process whose program is about to import TensorFlow or Keras."""

from __future__ import annotations

import atexit
import sys
from importlib.machinery import ModuleSpec
from time import perf_counter_ns
from types import ModuleType

from glowplug.imports.ledger import Ledger, seconds
from glowplug.imports.watch import Watcher

from .options import Options

_TRACE_CACHE = "trace cache"


class Parts:
    """What is on in this process; the ledger has what each part gave."""

    def __init__(self, options: Options, watcher: Watcher, *, warm: bool) -> None:
        self.ledger = Ledger()
        if warm:
            self.ledger.add("standby", "TensorFlow and Keras were imported before the program was named")
        if options.trace_cache:
            _enable_trace_cache_with_keras(watcher, self.ledger)
        if options.prefetch and not warm:
            from glowplug.imports.prefetch import Prefetch

            atexit.register(Prefetch(watcher, self.ledger).finish)
        if options.imports and not warm:
            from glowplug.imports.accelerate import Acceleration

            meanwhile = _import_trace_cache if options.trace_cache else lambda: None
            atexit.register(Acceleration(watcher, self.ledger, meanwhile).finish)


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


def _import_trace_cache() -> None:
    from glowplug.train import switch  # noqa: F401


def _enable_trace_cache(ledger: Ledger) -> None:
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
