"""Watches a loop: counts what TensorFlow makes in each round, and which line of the program made it.

Counting is by hooks on the constructors, set on entering and taken off on leaving. Of graph operations, variables
and functions those still alive are counted; of traces all that were made.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

from .growth_report import WARM_UP, Place, Report, judge

Item = TypeVar("Item")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# By files, not by module names: a name can be forged by exec, and the line is what the reader needs.
_NOT_THE_PROGRAM = ("/tensorflow/", "/keras/", "/tf_keras/", "/glowplug/train/", "/importlib/", "/contextlib.py")


class Watch:
    """A loop under watch: call `round()` at the end of each round, or iterate over `rounds(...)`."""

    def __init__(self) -> None:
        self._samples: dict[str, list[int]] = {}
        self._alive: dict[str, dict[int, Any]] = {"variables": {}, "functions": {}}
        self._made: Counter[str] = Counter()
        self._places: dict[str, Counter[tuple[str, int]]] = {}
        self._undo: list[tuple[Any, str, Any]] = []
        self._rounds = 0

    def __enter__(self) -> Watch:
        from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
        from tensorflow.python.framework.func_graph import FuncGraph
        from tensorflow.python.framework.ops import Graph
        from tensorflow.python.ops.ref_variable import RefVariable
        from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

        self._hook(FuncGraph, "__init__", "traces")
        self._hook(Function, "__init__", "functions")
        self._hook(BaseResourceVariable, "__init__", "variables")
        self._hook(RefVariable, "__init__", "variables")
        self._hook(Graph, "_create_op_internal", "graph_operations")
        self._hook(threading.Thread, "start", "threads")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for owner, name, plain in reversed(self._undo):
            setattr(owner, name, plain)
        self._undo.clear()

    def round(self) -> None:
        """Take a sample: one round is over."""
        self._rounds += 1
        counts = {
            "graph_operations": self._made["graph_operations"],
            "traces": self._made["traces"],
            "functions": len(self._alive["functions"]),
            "variables": len(self._alive["variables"]),
            "threads": len(os.listdir("/proc/self/task")),  # noqa: PTH208 - names alone, as cheap as can be
            "rss_bytes": int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES,
        }
        for name, value in counts.items():
            self._samples.setdefault(name, []).append(value)

    def rounds(self, items: Iterable[Item]) -> Iterator[Item]:
        """Iterate, and take a sample after each item."""
        for item in items:
            yield item
            self.round()

    def report(self) -> Report:
        """Return what grew so far; its text names each thing and the lines that made it."""
        places = {
            name: tuple(Place(file, line, made) for (file, line), made in counter.most_common())
            for name, counter in self._places.items()
        }
        # Nothing tells which line a page belongs to. What grows in memory is mostly what is made and kept.
        together = sum((self._places.get(name, Counter()) for name in ("variables", "functions", "traces")), Counter())
        places["rss_bytes"] = tuple(Place(file, line, made) for (file, line), made in together.most_common())
        return judge(dict(self._samples), places)

    def _hook(self, owner: Any, name: str, what: str) -> None:
        plain = getattr(owner, name)

        def hooked(made: Any, *arguments: Any, **options: Any) -> Any:
            result = plain(made, *arguments, **options)
            self._note(made, what)
            return result

        # Whoever asks for the signature or the source of the constructor gets the real one's.
        hooked.__wrapped__ = plain  # type: ignore[attr-defined]
        hooked.__name__ = name
        self._undo.append((owner, name, plain))
        setattr(owner, name, hooked)

    def _note(self, made: Any, what: str) -> None:
        from tensorflow.python.framework.func_graph import FuncGraph

        if what == "graph_operations" and isinstance(made, FuncGraph):
            return  # counted as one trace
        self._made[what] += 1
        alive = self._alive.get(what)
        if alive is not None:
            key = id(made)  # a variable has no hash
            alive[key] = weakref.ref(made, partial(_forget, alive, key))
        if self._rounds >= WARM_UP:
            place = _place(sys._getframe(2))
            if place is not None:
                self._places.setdefault(what, Counter())[place] += 1


def watch() -> Watch:
    """Return a watch for a `with` block around a loop."""
    return Watch()


def _forget(alive: dict[int, Any], key: int, _: object) -> None:
    alive.pop(key, None)


def _place(frame: FrameType | None) -> tuple[str, int] | None:
    """Return the innermost line that is the program's own."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<") and not any(part in file for part in _NOT_THE_PROGRAM):
            return file, frame.f_lineno
        frame = frame.f_back
    return None
