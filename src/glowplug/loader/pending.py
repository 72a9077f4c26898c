"""Work that goes on in a thread while its caller does something else, and can be awaited or waited for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")
Value = TypeVar("Value")


class Pending(Generic[Result]):
    """`await` it in a coroutine, or call `result()`. The thread does not keep a program from ending."""

    def __init__(self, work: Callable[[], Result], name: str) -> None:
        self._future: Future[Result] = Future()
        self._future.set_running_or_notify_cancel()  # whoever gives up waiting does not stop the others
        threading.Thread(target=self._run, args=(work,), name=name, daemon=True).start()

    def done(self) -> bool:
        """Say whether it has ended, well or not."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Result:
        """Wait for it, and return what it came to; raises `TimeoutError` after so many seconds."""
        return self._future.result(timeout)

    def __await__(self) -> Generator[object, None, Result]:
        import asyncio

        return asyncio.wrap_future(self._future).__await__()

    def dispose(self, take: Callable[[Result], None]) -> None:
        """Give what it comes to to `take`, since nobody waits for it any more; a failure is forgotten."""

        def ended(future: Future[Result]) -> None:
            if future.exception() is None:
                take(future.result())

        self._future.add_done_callback(ended)

    def _run(self, work: Callable[[], Result]) -> None:
        try:
            result = work()
        except BaseException as error:  # the end of a thread: who waits is told
            self._future.set_exception(error)
        else:
            self._future.set_result(result)


def in_loop(callback: Callable[[Value], object] | None) -> Callable[[Value], None] | None:
    """Return a callback for other threads that has this one called in the running event loop."""
    import asyncio

    if callback is None:
        return None
    loop = asyncio.get_running_loop()

    def tell(value: Value) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(callback, value)

    return tell
