"""The workers of one loaded version: hands them calls, joins calls into batches, and replaces workers that die.

Runs in the front end's event loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from glowplug.core.errors import ModelError, RequestError
from glowplug.core.manifest import Signature
from glowplug.serve.wire.calls import Arrays

from . import packets
from .batching import Batching
from .deadlines import Deadlines
from .jobs import Batch, Job, Timing, batch_key, batch_rows, can_batch
from .patience import Patience
from .spec import WorkerSpec, signatures_from_json

_DEPTH = 2  # calls that a worker has at once: one that runs, and the next one already in its socket
_FIRST_BACKOFF_S, _LAST_BACKOFF_S = 0.1, 30.0
_HEALTHY_S = 5.0


class Spawner(Protocol):
    """Whoever can fork a worker: the supervisor, in the end."""

    def spawn(self, spec: WorkerSpec, channel: socket.socket) -> int:
        """Ask for a worker at the other end of `channel`; returns the number that `kill` takes."""

    def kill(self, number: int) -> None:
        """End a worker at once."""


class Observer(Protocol):
    """Whoever counts what happens."""

    def batch_sent(self, rows: int, padding: int, waited_s: float) -> None:
        """Learn that a batch went to a worker."""

    def worker_died(self, reason: str) -> None:
        """Learn that a worker ended on its own."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How many workers, how calls are joined, how many calls may wait, and how long a worker may be busy with one that
    nobody waits for (0: for ever).
    """

    instances: int = 1
    batching: Batching = field(default_factory=Batching)
    max_queue: int = 1000
    patience_s: float = 0.0


class _Link(asyncio.Protocol):
    """The front end's end of one worker's socket."""

    def __init__(self, group: Group, place: int) -> None:
        self.group, self.place = group, place
        self.number = 0
        self.ready = self.answered = False
        self.report: dict[str, Any] = {}
        self.failure = ""
        self.running: dict[int, Batch] = {}
        self.started = self.since = group._loop.time()
        self.transport: asyncio.Transport | None = None
        self._splitter = packets.Splitter(self._receive)
        self._outgoing: list[packets.Buffer] = []
        self._next = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        if self.group._closing:  # which began before there was anything to close
            self.group._end(self)

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)
        self.group._dispatch()

    def connection_lost(self, exc: Exception | None) -> None:
        self.group._worker_gone(self)

    def give(self, batch: Batch) -> None:
        """Take a batch for this worker; it is on its way after `send`."""
        self._next = (self._next + 1) & 0xFFFFFFFF
        if not self.running:
            self.since = self.group._loop.time()
        self.running[self._next] = batch
        job = batch.jobs[0]
        outputs = (*job.outputs, packets.TIMES) if batch.timed else job.outputs
        self._outgoing += packets.pack(packets.CALL, self._next, (job.signature, outputs), batch.inputs())

    def send(self) -> None:
        """Send what was given: two small calls at once wake the worker once."""
        pieces, self._outgoing = self._outgoing, []
        assert self.transport is not None
        self.transport.writelines(pieces)

    def is_forsaken(self) -> bool:
        """Whether nobody waits any more for the call that it runs: the first, since it runs one after the other."""
        first = next(iter(self.running.values()), None)
        return first is not None and not first.is_wanted()

    def _receive(self, kind: int, number: int, head: bytes, payload: memoryview) -> None:
        self.since = self.group._loop.time()
        document, arrays = packets.unpack(head, payload, lazily=True)
        if kind == packets.ANSWER:
            batch = self.running.pop(number)
            self.answered = True
            if batch.timed:
                batch.ran(arrays.pop(packets.TIMES, None))
            batch.deliver(arrays)
        elif kind == packets.FAILURE and number:
            batch = self.running.pop(number)
            batch.ran(arrays.get(packets.TIMES))
            self.group._batch_failed(batch, RequestError(document["error"], code=document["code"]))
        elif kind == packets.FAILURE:
            self.failure = document["error"]
        elif kind == packets.READY:
            self.ready, self.report = True, document
            self.group._worker_ready(self)


class Group:
    """Workers with the same model."""

    def __init__(self, spec: WorkerSpec, settings: GroupSettings, spawner: Spawner, observer: Observer) -> None:
        self._spec, self._settings, self._spawner, self._observer = spec, settings, spawner, observer
        self._loop = asyncio.get_running_loop()
        self._links: list[_Link | None] = [None] * settings.instances
        self._queue: deque[Job] = deque()
        self._patience = Patience(settings.patience_s, self._living, self._give_up)
        self._deadlines = Deadlines(self._unanswered, self._patience.look)
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._all_ready: asyncio.Future[None] = self._loop.create_future()
        self._backoffs_s = [0.0] * settings.instances
        self.signatures: Mapping[str, Signature] = {}
        self._batchable: dict[str, bool] = {}
        self._timed = False  # somebody wants to know when calls are run
        self.problem = ""
        self.restarts = 0
        self.reports: dict[int, dict[str, Any]] = {}

    async def start(self) -> None:
        """Start every worker and wait until all are warm; raises `ModelError` when one cannot load."""
        for place in range(self._settings.instances):
            self._start(place)
        try:
            await self._all_ready
        except BaseException:
            self.close()
            raise
        self.settled()

    def settled(self) -> None:
        """From now on, workers that are replaced start at full priority."""
        self._spec = WorkerSpec.from_json({**self._spec.to_json(), "background": False})

    @property
    def ready(self) -> bool:
        """Whether at least one worker can answer."""
        return any(link is not None and link.ready for link in self._links)

    @property
    def progress(self) -> tuple[int, int]:
        """How many workers are warm, and how many there are to be."""
        return sum(link is not None and link.ready for link in self._links), len(self._links)

    @property
    def numbers(self) -> list[int]:
        """The numbers by which the spawner knows the workers."""
        return [link.number for link in self._links if link is not None]

    @property
    def waiting(self) -> int:
        """How many calls wait for a worker."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many calls are with workers."""
        return sum(len(batch.jobs) for batch in self._running())

    def _running(self) -> Iterator[Batch]:
        return (batch for link in self._links if link is not None for batch in link.running.values())

    def _living(self) -> Iterator[_Link]:
        return (link for link in self._links if link is not None and link.ready)

    def _unanswered(self) -> Iterator[Job]:
        yield from self._queue
        for batch in self._running():
            yield from batch.jobs

    def submit(
        self,
        signature: str,
        inputs: Arrays,
        outputs: tuple[str, ...],
        timeout_s: float,
        timing: Timing | None = None,
    ) -> asyncio.Future[dict[str, NDArray[Any]]]:
        """Queue a call and return its future answer. `timing` is filled in on the way, where it is given."""
        if self._closing:
            raise RequestError("this version is being unloaded", remedy="try again", code="UNAVAILABLE")
        if len(self._queue) >= self._settings.max_queue:
            raise RequestError(
                "too many requests are waiting",
                seen=f"{len(self._queue)} in the queue",
                remedy="try again later",
                code="RESOURCE_EXHAUSTED",
            )
        now = self._loop.time()
        rows = self._rows(signature, inputs)
        job = Job(signature, inputs, outputs, self._loop.create_future(), rows, now + timeout_s, now)
        if rows:
            job.key = batch_key(signature, inputs, outputs)
        if timing is not None:
            job.timing, self._timed = timing, True
        self._deadlines.watch(job.deadline)
        self._queue.append(job)
        self._dispatch()
        return job.future

    def _rows(self, signature: str, inputs: Arrays) -> int:
        batching = self._settings.batching
        if not batching.enabled or not self._batchable.get(signature):
            return 0
        rows = batch_rows(inputs)
        if rows > batching.max_batch_size:
            raise RequestError(
                f"Task size {rows} is larger than maximum input batch size {batching.max_batch_size}",
                remedy="send fewer rows at once",
            )
        return rows

    def _dispatch(self) -> None:
        """Hand out what can be handed out."""
        given = list[_Link]()
        while self._queue:
            link = self._least_loaded()
            if link is None:
                break
            batch = self._next_batch()
            if batch is None:
                break
            now = self._loop.time()
            self._observer.batch_sent(batch.rows, batch.padding, now - batch.jobs[0].enqueued)
            if self._timed:
                batch.leaves(now)
            link.give(batch)
            if link not in given:
                given.append(link)
        for link in given:
            link.send()

    def _least_loaded(self) -> _Link | None:
        best: _Link | None = None
        for link in self._links:
            if link is not None and link.ready and len(link.running) < _DEPTH:
                if not link.running:
                    return link
                if best is None or len(link.running) < len(best.running):
                    best = link
        return best

    def _next_batch(self) -> Batch | None:
        """Return the next batch to run; `None` when the first job waits for company."""
        while self._queue and self._queue[0].future.done():  # expired or abandoned
            self._queue.popleft()
        if not self._queue:
            return None
        first = self._queue[0]
        if not first.rows:
            return Batch([self._queue.popleft()])
        batching = self._settings.batching
        chosen, rows, kept = list[Job](), 0, deque[Job]()
        for job in self._queue:
            if job.future.done():
                continue
            if job.key == first.key and rows + job.rows <= batching.max_batch_size:
                chosen.append(job)
                rows += job.rows
            else:
                kept.append(job)
        wait = first.enqueued + batching.timeout_s - self._loop.time()
        if rows < batching.max_batch_size and wait > 0 and not self._closing:
            if self._timer is None:
                self._timer = self._loop.call_later(wait, self._timer_fired)
            return None
        self._queue = kept
        return Batch(chosen, padding=batching.padded(rows) - rows)

    def _batch_failed(self, batch: Batch, error: RequestError) -> None:
        """Run the calls of a batch that TensorFlow refused one by one: the fault of one is not that of the others."""
        if len(batch.jobs) == 1:
            batch.fail(error)
        else:
            for job in reversed(batch.jobs):
                job.rows = 0
                self._queue.appendleft(job)

    def _give_up(self, link: _Link) -> None:
        """End a worker that has been busy for too long. The calls behind the one that it runs have not begun."""
        number, *behind = link.running
        for one in reversed(behind):
            self._queue.extendleft(reversed(link.running.pop(one).jobs))
        link.ready = False
        link.failure = (
            f"call {number} took longer than {self._settings.patience_s:g} s, and nobody waits for it any more"
        )
        self._spawner.kill(link.number)

    def _timer_fired(self) -> None:
        self._timer = None
        self._dispatch()

    async def drain(self) -> None:
        """Take no more calls, finish those that somebody waits for, then end the workers."""
        self._closing = True
        self._dispatch()
        if wanted := [job.future for job in self._unanswered() if not job.future.done()]:
            await asyncio.wait(wanted)
        self.close()

    def close(self) -> None:
        """End the workers at once; calls that wait fail."""
        self._closing = True
        for link in self._links:
            if link is not None and link.transport is not None:
                self._end(link)
        for job in self._queue:
            job.fail(RequestError("this version was unloaded", remedy="try again", code="UNAVAILABLE"))
        self._queue.clear()

    def _end(self, link: _Link) -> None:
        assert link.transport is not None
        link.transport.close()
        if not link.ready or link.running:  # it would not notice before its call ends, if that ends
            self._spawner.kill(link.number)

    def _start(self, place: int) -> None:
        if self._closing:
            return
        ours, theirs = socket.socketpair()
        link = _Link(self, place)
        self._links[place] = link
        link.number = self._spawner.spawn(self._spec, theirs)
        theirs.close()
        ours.setblocking(False)
        opening = self._loop.create_task(self._loop.create_unix_connection(lambda: link, sock=ours))
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _worker_ready(self, link: _Link) -> None:
        if not self.signatures:
            self.signatures = signatures_from_json(link.report["signatures"])
            self._batchable = {name: can_batch(one) for name, one in self.signatures.items()}
        self.reports[link.place] = link.report
        self.problem = ""
        if not self._all_ready.done() and all(one is not None and one.ready for one in self._links):
            self._all_ready.set_result(None)

    def _worker_gone(self, link: _Link) -> None:
        """A worker's socket closed: its calls fail in a way that may be retried, and another one takes its place."""
        for batch in link.running.values():
            batch.fail(
                RequestError("the worker stopped before it answered; the request may be retried", code="UNAVAILABLE")
            )
        link.running.clear()
        if self._links[link.place] is link:
            self._links[link.place] = None
        if self._closing:
            self._dispatch()
            return
        reason = link.failure or "the worker stopped without a message"
        if not self._all_ready.done():
            self._all_ready.set_exception(ModelError("the model cannot be loaded", seen=reason))
            return
        self.restarts += 1
        self._observer.worker_died(reason)
        delay = 0.0
        if not link.answered and self._loop.time() - link.started < _HEALTHY_S:  # it never was of use
            delay = self._backoffs_s[link.place]
        self._backoffs_s[link.place] = min(max(delay * 2, _FIRST_BACKOFF_S), _LAST_BACKOFF_S)
        if delay:
            self.problem = f"{reason}; starting again in {delay:.1f} s"
            self._loop.call_later(delay, self._start, link.place)
        else:
            self._start(link.place)
