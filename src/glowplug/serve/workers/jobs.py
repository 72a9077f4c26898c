"""A call on its way through the front end, and how calls are joined into a batch and taken apart again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Signature
from glowplug.serve.wire.calls import Arrays


@dataclass(slots=True, eq=False)
class Timing:
    """When a call was where, for those who asked: filled in on its way. Times are nanoseconds since the epoch."""

    waited_s: float = 0.0
    rows: int = 0  # of the batch that it was part of
    began_ns: int = 0
    ended_ns: int = 0
    pid: int = 0  # of the worker


@dataclass(slots=True, eq=False)
class Job:
    """One caller's call. `rows` is its batch size, or 0 when it cannot be joined with others."""

    signature: str
    inputs: Arrays
    outputs: tuple[str, ...]
    future: asyncio.Future[dict[str, NDArray[Any]]]
    rows: int
    deadline: float  # on the event loop's clock
    enqueued: float
    key: tuple[Any, ...] = ()
    timing: Timing | None = None

    def fail(self, error: RequestError) -> None:
        """Answer with an error, unless the caller has gone."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, eq=False)
class Batch:
    """Jobs that are run as one call."""

    jobs: list[Job]
    padding: int = 0
    timed: bool = False  # the worker is to say when it ran it
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = sum(job.rows for job in self.jobs)

    def is_wanted(self) -> bool:
        """Say whether somebody still waits for it."""
        return any(not job.future.done() for job in self.jobs)

    def leaves(self, now: float) -> None:
        """Note, for the calls that are timed, how long they waited. `now` is on the event loop's clock."""
        for job in self.jobs:
            if job.timing is not None:
                self.timed = True
                job.timing.waited_s, job.timing.rows = now - job.enqueued, self.rows

    def ran(self, times: NDArray[Any] | None) -> None:
        """Note, for the calls that are timed, what the worker measured."""
        for job in self.jobs:
            if job.timing is not None and times is not None:
                job.timing.began_ns, job.timing.ended_ns, job.timing.pid = times.tolist()

    def inputs(self) -> Arrays:
        """Return the inputs of all jobs, one after the other; padding repeats the last row."""
        first = self.jobs[0]
        if len(self.jobs) == 1 and not self.padding:
            return first.inputs
        joined = {}
        for name in first.inputs:
            parts = [job.inputs[name] for job in self.jobs]
            if self.padding:
                parts.append(np.repeat(parts[-1][-1:], self.padding, axis=0))
            joined[name] = np.concatenate(parts)
        return joined

    def deliver(self, outputs: Arrays) -> None:
        """Give each job its rows."""
        if len(self.jobs) == 1 and not self.padding:
            self._finish(self.jobs[0], dict(outputs))
            return
        whole = self.rows + self.padding
        for name, array in outputs.items():
            if not array.ndim or len(array) != whole:
                problem = f"output {name!r} has the shape {list(array.shape)} for a batch of {whole} rows"
                self.fail(RequestError(f"Batched output tensor has an unexpected shape: {problem}", code="INTERNAL"))
                return
        start = 0
        for job in self.jobs:
            self._finish(job, {name: array[start : start + job.rows] for name, array in outputs.items()})
            start += job.rows

    def fail(self, error: RequestError) -> None:
        """Answer every job with an error."""
        for job in self.jobs:
            job.fail(error)

    @staticmethod
    def _finish(job: Job, outputs: dict[str, NDArray[Any]]) -> None:
        if not job.future.done():
            job.future.set_result(outputs)


def batch_rows(inputs: Arrays) -> int:
    """Return the common first dimension of the inputs, or 0 where they have none."""
    sizes = {array.shape[0] if array.ndim else 0 for array in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else 0


def can_batch(signature: Signature) -> bool:
    """Say whether every input and output has a first dimension of any size."""
    ports = [*signature.inputs.values(), *signature.outputs.values()]
    return bool(signature.inputs) and all(p.spec.shape is not None and p.spec.shape[:1] == (None,) for p in ports)


def batch_key(signature: str, inputs: Arrays, outputs: Sequence[str]) -> tuple[Any, ...]:
    """Return what two calls must have in common to be run as one."""
    shapes = tuple((name, inputs[name].shape[1:]) for name in sorted(inputs))
    return signature, shapes, tuple(outputs)
