"""Processes of a server: they log to a file, end with whoever started them, and are stopped by their ids."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.05
_LOG_LINES = 15


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on now, all of them different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def start(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that is killed when the thread that calls this ends, even by SIGKILL."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of the kernel
        )


def stop(process: subprocess.Popen[bytes], *, patience_s: float = 2.0) -> None:
    """End a process: politely, and after a while not."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, *, timeout_s: float = 60
) -> None:
    """Return once a server answers; raises `AssertionError` with the end of its log when it ends, or takes too long.

    A server has no event for it that all of them would give, so it is asked again and again.
    """
    deadline = time.monotonic() + timeout_s
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            state = "ended" if process.poll() is not None else f"not ready after {timeout_s} s"
            raise AssertionError(f"{process.args}: {state}\n" + "\n".join(said))
        time.sleep(_POLL_S)


def listens(port: int) -> bool:
    """Say whether something accepts connections there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except OSError:
        return False


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
