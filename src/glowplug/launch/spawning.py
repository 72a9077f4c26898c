"""`glowplug.spawn`: a function in a process of its own that starts warm."""

from __future__ import annotations

import marshal
import os
import select
import signal
from types import TracebackType
from typing import Any

from glowplug.core.errors import UsageError
from glowplug.standby import identity
from glowplug.standby.client.request import Begun, Declined, begin

from .warm import COMPANION, PRELOAD


class Spawned:
    """A running function. Use it like a `subprocess.Popen`; leaving its `with` block ends it."""

    def __init__(self, begun: Begun) -> None:
        self._begun = begun
        self.pid = begun.pid
        self.returncode: int | None = None

    def wait(self, timeout_s: float | None = None) -> int:
        """Return its exit code, or minus the signal that ended it. Raises `TimeoutError` after `timeout_s`."""
        if self.returncode is not None:
            return self.returncode
        poll = select.poll()
        poll.register(self._begun.connection.fileno(), select.POLLIN)
        while self.returncode is None:
            if not poll.poll(None if timeout_s is None else timeout_s * 1000):
                raise TimeoutError(f"process {self.pid} still runs after {timeout_s} s")
            message = self._begun.message()
            if message is None:
                self._end(self._begun.end())
            elif "ended" in message:
                self._end(message["ended"])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; harmless when it has ended."""
        if self.returncode is None:
            self._begun.signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Spawned:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.returncode is None:
            self.kill()
            self.wait()

    def _end(self, code: int) -> None:
        self.returncode = code
        self._begun.close()


def spawn(target: str, *arguments: Any, preload: tuple[str, ...] = PRELOAD) -> Spawned:
    """Call `package.module:function` in a child of a standby, which is started where there is none.

    The child has this process's working directory, environment, limits and standard streams, and imports the target
    itself. Arguments are plain values: None, numbers, strings, bytes, and lists, tuples, sets and dicts of them. The
    exit code is the function's result if that is a number, else zero; an exception is printed and gives 1.
    """
    module, _, function = target.partition(":")
    if not module or not function:
        raise UsageError("a target is package.module:function", seen=target)
    try:
        marshal.dumps(arguments)
    except ValueError as error:
        raise UsageError("arguments must be plain values", seen=error, remedy="pass paths or bytes instead") from None
    begun = begin(
        "glowplug.launch.child:call",
        [target, list(arguments), os.getcwd()],  # noqa: PTH109 - a string is what is sent
        start=True,
        kind="python",
        preload=preload,
        companion=COMPANION,
        descriptors={number: number for number in identity.open_standard()},
        program=None,
    )
    if isinstance(begun, Declined):
        from glowplug.core.errors import StandbyError

        raise StandbyError("no standby runs the function", seen=begun.reason)
    return Spawned(begun)
