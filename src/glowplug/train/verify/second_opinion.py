"""Traces what was restored as well, later, and compares: a wrong restore does not stay unnoticed.

Tracing again costs what the cache has saved, so it waits. It runs between two steps, in the thread that runs them, once
the steps since the first have taken ten times as long as a trace does: so it never takes more than a tenth of their
time, and no other thread touches the model meanwhile. A program that ends sooner leaves it to its next run; an entry
that was never looked at is looked at when its program ends.

A difference removes the entry and stops the run with an error that names it.
"""

from __future__ import annotations

import atexit
import contextlib
import random
import time
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from glowplug.core.errors import WrongTraceError
from glowplug.train.collector import collector_paused
from glowplug.train.notes import logger

from .probation import Probation, mode
from .warned import Warned

if TYPE_CHECKING:
    from glowplug.train.fingerprint.walker import Walker
    from glowplug.train.trace.entry import Entry

_SHARE = 10  # a trace may take one part of so many of the time of all steps
# In the order of their restores: a trace of fewer shapes cannot be made once there is one of more.
_waiting: weakref.WeakKeyDictionary[SecondOpinion, None] = weakref.WeakKeyDictionary()


class SecondOpinion:
    """One restored function on probation: each of its steps goes through `around` until the opinion is `done`."""

    def __init__(
        self,
        label: str,
        entry: Entry,
        walker: Walker,
        trace: Callable[[], Any],
        walk: Callable[[], Walker],
        probation: Probation,
        report: Callable[[bool], None],
    ) -> None:
        """`trace` makes a new trace, `walk` a new walk; `report` is told whether the stored trace is right."""
        self._label = label
        self._entry = entry
        self._walker = walker
        self._trace = trace
        self._walk = walk
        self._probation = probation
        self._report = report
        self._first_ended_ns: int | None = None
        self._wait_ns = 0 if mode() == "always" else _SHARE * int(entry.plan.get("trace_ns", 0))
        self.done = False
        if not probation.verified:
            _waiting[self] = None
            atexit.register(_at_exit)

    def around(self, step: Callable[[], Any]) -> Any:
        """Run a step; before it, give the opinion if enough time has gone by. Raise `WrongTraceError` if it is bad."""
        if self._first_ended_ns is None:
            result = step()
            self._first_ended_ns = time.monotonic_ns()
            return result
        if not self.done and time.monotonic_ns() - self._first_ended_ns >= self._wait_ns:
            self.give()
        return step()

    def give(self) -> None:
        """Trace and compare now."""
        self.done = True
        _waiting.pop(self, None)
        try:
            found = self._difference()
        except Exception as error:  # a check must not fail a run: what cannot be traced now is left to the next one
            logger.info("glowplug: %s could not be traced again (%s)", self._label, error)
            return
        if not found:
            self._probation.found_right()
            self._report(True)
        elif self._walk().stream.components() == self._walker.stream.components():
            self._probation.forget()
            self._report(False)
            raise WrongTraceError(
                f"the trace that was restored for {self._label} is not what tracing gives now, and was removed",
                seen=found,
                remedy="run the program again: it will be traced; and report what its key had missed",
            )
        # Else the model is another by now: stock Keras, too, would go on with what it traced before.

    def _difference(self) -> str:
        from glowplug.train.fingerprint.contexts import name_counts_kept
        from glowplug.train.trace.restore import capture_plan
        from glowplug.train.trace.same import difference

        with _random_states_kept(), name_counts_kept(), collector_paused(), Warned(silent=True):
            concrete = self._trace()
        self._walker.code.wrappers.remember_traces()
        fresh = zlib.compress(concrete.graph.as_graph_def().SerializeToString(), 1)
        captures, constants = capture_plan(concrete, self._walker.variables, self._walker.tables)
        found = difference(self._entry.blobs["trace"], fresh)
        if found:
            return found
        if captures != self._entry.plan["captures"]:
            return "it captures other variables"
        return (
            "" if all(self._entry.blobs.get(name) == blob for name, blob in constants.items()) else "another constant"
        )


@contextlib.contextmanager
def _random_states_kept() -> Iterator[None]:
    import numpy as np

    states = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _at_exit() -> None:
    """In a program that ends: look at what has never been looked at."""
    import sys

    for opinion in list(_waiting):
        _waiting.pop(opinion, None)
        if mode() == "off":
            continue
        try:
            opinion.give()
        except WrongTraceError as error:
            print(f"glowplug: {error}", file=sys.stderr)
