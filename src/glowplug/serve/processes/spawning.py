"""The front end's side of the control channel: asks the supervisor for processes and hears what becomes of them."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glowplug.serve.workers.spec import WorkerSpec

from . import control


class Processes:
    """Starts workers and commands through the supervisor. `on_drain` is called when the server is to stop."""

    def __init__(self, channel: socket.socket, on_drain: Callable[[], None]) -> None:
        self._channel = channel
        self._on_drain = on_drain
        self._numbers = itertools.count(1)
        self._commands: dict[int, asyncio.Future[int]] = {}
        self._doomed: set[int] = set()
        self.pids: dict[int, int] = {}
        asyncio.get_running_loop().add_reader(channel.fileno(), self._receive)

    def spawn(self, spec: WorkerSpec, channel: socket.socket) -> int:
        """Ask for a worker at the other end of `channel`; returns the number that `kill` takes."""
        number = next(self._numbers)
        self._send({"op": "spawn", "number": number, "spec": spec.to_json()}, channel.fileno())
        return number

    def kill(self, number: int) -> None:
        """End a worker at once."""
        if number in self.pids:
            self._send({"op": "kill", "pid": self.pids[number]})
        else:
            self._doomed.add(number)

    async def run(self, command: list[str], log: Path) -> int:
        """Run a command at low priority, its output in `log`; returns its exit code."""
        number = next(self._numbers)
        self._commands[number] = asyncio.get_running_loop().create_future()
        self._send({"op": "run", "number": number, "argv": command, "log": str(log)})
        try:
            return await self._commands[number]
        except asyncio.CancelledError:
            self.kill(number)
            raise

    def _send(self, document: dict[str, Any], descriptor: int | None = None) -> None:
        try:
            control.send(self._channel, document, descriptor)
        except OSError:  # without a supervisor there is nothing left to serve with
            self._on_drain()

    def _receive(self) -> None:
        document, _ = control.receive(self._channel)
        if document is None:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._on_drain()
        elif document["event"] == "drain":
            self._on_drain()
        elif document["event"] == "started":
            self.pids[document["number"]] = document["pid"]
            if document["number"] in self._doomed:
                self._doomed.discard(document["number"])
                self.kill(document["number"])
        elif document["event"] == "exited":
            self.pids.pop(document["number"], None)
            waiting = self._commands.pop(document["number"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(document["code"])
