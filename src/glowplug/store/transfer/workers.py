"""Does work on several threads for one that waits, and need not wait for them when something fails.

A request to a storage that does not answer cannot be interrupted. So whoever gives up, after a failure or because a
user pressed Ctrl-C, leaves the threads to themselves: they take no new work, end with the request they are in, and do
not keep the program from ending. What they must not touch from then on is behind a `Gate`.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator

Work = Callable[[], None]


class StoppedError(Exception):
    """The gate is closed: nobody wants what this thread has got."""


class Gate:
    """Threads pass it while they write. Once it is closed none does, and none is inside."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextlib.contextmanager
    def passed(self) -> Iterator[None]:
        """Be inside during the block; raise `StoppedError` where the gate is closed."""
        with self._changed:
            if self._closed:
                raise StoppedError
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Let nobody in any more, and wait for those who are inside."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)


class Workers:
    """Threads that take work in turn, until one fails. `tick` is called, by the thread that waits, meanwhile."""

    def __init__(self, count: int, name: str, tick: Callable[[], None]) -> None:
        self._count, self._name, self._tick = count, name, tick
        self._threads = 0
        self._unfinished = 0
        self._stopped = False
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def add(self, work: Work) -> None:
        """Have something done."""
        self._unfinished += 1
        self._work.put(work)
        if self._threads < min(self._count, self._unfinished):
            self._threads += 1
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def wait(self, most: int = 0) -> None:
        """Wait until no more than so many things are left to be done; raise the first failure."""
        while self._unfinished > most:
            self._tick()
            with contextlib.suppress(queue.Empty):
                failure = self._ended.get(timeout=0.1)
                self._unfinished -= 1
                if failure is not None:
                    raise failure

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        for _each in range(self._threads):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            if self._stopped:
                continue
            try:
                work()
            except BaseException as error:  # the end of a thread: who waits is told
                self._stopped = True
                self._ended.put(error)
            else:
                self._ended.put(None)
