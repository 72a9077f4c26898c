"""Processes with a model, for replicas: children of a standby of their node, so that each starts in milliseconds.

A replica itself runs nothing of TensorFlow. Where no standby can be had, a process is started plainly, and does the
same.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from glowplug.core.errors import StandbyError
from glowplug.serve.workers.spec import WorkerSpec
from glowplug.standby.client.request import Begun, begin

SOCKET = 3
PRELOAD = ("numpy", "glowplug.loader.hosting", "glowplug.serve.workers.worker", "glowplug.cluster.replicas.hosted")
_STARTING = 4  # at the same time


def host(spec: dict[str, Any]) -> int:
    """Be a worker of the server's: load, warm up, answer until the socket closes. Runs in the standby's child."""
    from glowplug.serve.workers.worker import main

    return main(socket.socket(fileno=SOCKET), WorkerSpec.from_json(spec))


class HostedWorkers:
    """Starts workers for the groups of a replica. With `standby` off, or none to be had, they are plain processes."""

    def __init__(self, *, standby: bool = True) -> None:
        self._standby = standby
        self._numbers = itertools.count(1)
        self._starting = ThreadPoolExecutor(_STARTING, "glowplug-workers")
        self._running: dict[int, Begun | subprocess.Popen[bytes]] = {}
        self._doomed: set[int] = set()
        self.notes: list[str] = []

    def spawn(self, spec: WorkerSpec, channel: socket.socket) -> int:
        """Ask for a worker at the other end of `channel`; returns the number that `kill` takes."""
        number = next(self._numbers)
        self._starting.submit(self._start, number, spec, os.dup(channel.fileno()))
        return number

    def kill(self, number: int) -> None:
        """End a worker at once."""
        running = self._running.get(number)
        if running is None:
            self._doomed.add(number)
        elif isinstance(running, Begun):
            running.signal(signal.SIGKILL)
        else:
            running.kill()

    def pids(self) -> dict[int, int]:
        """Return the processes that run, by number."""
        self._sweep()
        return {number: one.pid for number, one in list(self._running.items())}

    def close(self) -> None:
        """End all workers."""
        self._starting.shutdown(wait=False, cancel_futures=True)
        for number in list(self._running):
            self.kill(number)

    def _start(self, number: int, spec: WorkerSpec, descriptor: int) -> None:
        """Start a worker. If that fails its socket closes, which the group understands."""
        self._sweep()
        try:
            self._running[number] = self._from_standby(spec, descriptor) or _plainly(spec, descriptor)
        finally:
            os.close(descriptor)
        if number in self._doomed:
            self._doomed.discard(number)
            self.kill(number)

    def _from_standby(self, spec: WorkerSpec, descriptor: int) -> Begun | None:
        if not self._standby:
            return None
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            begun = begin(
                "glowplug.cluster.replicas.hosted:host",
                [spec.to_json()],
                start=True,
                kind="native",
                preload=PRELOAD,
                descriptors={0: nothing, 1: 2, 2: 2, SOCKET: descriptor},
                rehearsed=not (spec.intra_op_threads or spec.inter_op_threads),
            )
        except StandbyError as error:
            self.notes.append(f"started without a standby: {error}")
            return None
        finally:
            os.close(nothing)
        if isinstance(begun, Begun):
            return begun
        self.notes.append(f"started without a standby: {begun.reason}")
        return None

    def _sweep(self) -> None:
        """Forget workers that have ended."""
        for number, one in list(self._running.items()):
            if isinstance(one, Begun):
                if select.select([one.process], [], [], 0)[0]:
                    self._running.pop(number, None)
                    one.close()
            elif one.poll() is not None:
                self._running.pop(number, None)


def _plainly(spec: WorkerSpec, descriptor: int) -> subprocess.Popen[bytes]:
    code = f"import sys; from {__name__} import serve_plainly; serve_plainly(sys.argv[1], int(sys.argv[2]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(spec.to_json()), str(descriptor)],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else subprocess.DEVNULL,
        pass_fds=[descriptor],
    )


def serve_plainly(spec: str, descriptor: int) -> None:
    """Be a worker in a process that no standby forked."""
    from glowplug.serve.workers.worker import run_and_exit

    run_and_exit(socket.socket(fileno=descriptor), WorkerSpec.from_json(json.loads(spec)))


def _has_descriptor(stream: Any) -> bool:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(stream.fileno()) >= 0
    return False
