"""One version of a model: its state, its group of workers, and what happened to it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from glowplug.serve.workers.group import Group

from .sources import Source


class State(IntEnum):
    """TensorFlow Serving's states, with its numbers."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(slots=True, eq=False)
class Version:
    """A version that was found on disk. `error` says why it ended; `code` is gRPC's for it."""

    model: str
    number: int
    source: Source
    state: State = State.START
    group: Group | None = None
    loading: Group | None = None
    engine: str = ""
    error: str = ""
    code: str = "OK"
    began: float = field(default_factory=time.monotonic)
    ready_after_s: float = 0.0
    first_answer_s: float = 0.0
    packed: bool = False
    waiting_for: str = ""  # what has not arrived yet
    elsewhere: bool = False  # all of it is still at a URL
    vouched_for: bool = False  # it came from a URL, and its mirror has seen to it that it may be run
    attempts: int = 0  # loads that failed, of these very files
    retry_at: float = 0.0
    refused_stamp: str = ""  # of changed files that could not be loaded in place of those that are served
    coming_stamp: str = ""  # of the changed files that are being loaded, or were last
    overdue: str = ""  # what takes so long that others no longer wait for it
    task: asyncio.Task[None] | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether it waits to be loaded, is being loaded, or is being replaced."""
        return self.task is not None and not self.task.done()

    @property
    def is_being_loaded(self) -> bool:
        """Whether it waits for its first load, or is in it."""
        return self.is_at_work and self.state in (State.START, State.LOADING)

    def describe(self) -> dict[str, Any]:
        """Return what the status shows beyond TensorFlow Serving's: engine, workers, warm-up, trouble."""
        shown: dict[str, Any] = {"engine": self.engine, "state": self.state.name}
        if self.state is State.LOADING and self.loading is not None:
            elapsed = time.monotonic() - self.began
            ready, total = self.loading.progress
            shown |= {"workers_ready": ready, "workers_wanted": total, "elapsed_s": round(elapsed, 3)}
            if ready:
                shown["eta_s"] = round(elapsed / ready * (total - ready), 3)
        if self.group is not None:
            reports = list(self.group.reports.values())
            shown |= {
                "workers": len(self.group.numbers),
                "restarts": self.group.restarts,
                "load_ns": max((one["load_ns"] for one in reports), default=0),
                "warmup": reports[0]["warmup"] if reports else [],
                "warmup_ns": max((one["warmup_ns"] for one in reports), default=0),
                "notes": reports[0]["notes"] if reports else [],
            }
        problem = (self.group.problem if self.group is not None else "") or self.overdue
        if problem:
            shown["problem"] = problem
        if self.state is State.AVAILABLE:
            shown["ready_after_s"] = round(self.ready_after_s, 3)
        if self.error:
            shown["error"] = self.error
        if self.waiting_for:
            shown["waiting_for"] = self.waiting_for
        return shown
