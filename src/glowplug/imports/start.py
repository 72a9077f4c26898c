"""What `glowplug run` does around a program: switches its parts on, then becomes the program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from .ledger import Ledger, seconds
from .program import Target, execute

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from .watch import Watcher

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


def prepare(options: Options) -> None:
    """Switch on what the options ask for, in the process that will be the program."""
    import atexit

    from .watch import Watcher

    ledger, watcher = Ledger(), Watcher()
    watcher.install()
    if options.explain:
        atexit.register(ledger.tell, as_json=options.explain == "json")  # first: the last to be called
    warm = _is_standby_child()
    if warm:
        ledger.add("standby", "TensorFlow and Keras were imported before the program was named")
    if options.trace_cache:
        _enable_trace_cache_with_keras(watcher, ledger)
    if options.prefetch and not warm:
        from .prefetch import Prefetch

        atexit.register(Prefetch(watcher, ledger).finish)
    if options.imports and not warm:
        from .accelerate import Acceleration

        atexit.register(Acceleration(watcher, ledger).finish)


def _is_standby_child() -> bool:
    parking = sys.modules.get("glowplug.standby.parking")
    return parking is not None and bool(parking.parked("tensorflow"))


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
    from importlib import import_module
    from time import perf_counter_ns

    began = perf_counter_ns()
    try:
        switch = import_module("glowplug.train.switch")  # by name: training is a layer above this one
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
    atexit.register(lambda: _count(switch, ledger))


def _count(switch: ModuleType, ledger: Ledger) -> None:
    counts: dict[str, int] = switch.counts()
    told = ", ".join(f"{number} {what}" for what, number in counts.items() if number) or "no step was run"
    ledger.add(_TRACE_CACHE, told, **counts)
