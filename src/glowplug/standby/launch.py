"""Starts a standby and waits until it is ready. Runs in a client, and in a standby that replaces itself."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import Any

from glowplug.core.errors import StandbyError

from . import key, paths

IDLE_S = 1800.0
_IDLE = "GLOWPLUG_STANDBY_IDLE"


def launch(
    kind: str, preload: tuple[str, ...], companion: str = "", *, idle_s: float | None = None, wait: bool = True
) -> str:
    """Start a standby of this process's key, unless one is starting or there already; return its name.

    It imports `preload` and calls `companion`, a `package.module:function`, with it. Raises `StandbyError` if it cannot
    start. It outlives this process, and ends when it has been idle for `idle_s`.
    """
    components = key.components(kind, preload)
    name = key.digest(components)
    directory = paths.open_directory(create=True)
    turn = os.open(f"{name}.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)  # one starts it, the others find it when their turn comes
        if not _is_served(directory, name):
            # Who does not wait leaves the turn to the new standby, which keeps it until it is ready.
            _start(kind, preload, companion, components, name, directory, idle_s, turn=None if wait else turn)
    finally:
        os.close(turn)
        os.close(directory)
    return name


def _is_served(directory: int, name: str) -> bool:
    try:
        lock = os.open(f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        from .client import connect

        connection = connect(name)
        if connection is not None:
            connection.close()
        return connection is not None
    finally:
        os.close(lock)
    return False


def _start(
    kind: str,
    preload: tuple[str, ...],
    companion: str,
    components: dict[str, str],
    name: str,
    directory: int,
    idle_s: float | None,
    *,
    turn: int | None,
) -> None:
    ready, report = os.pipe2(os.O_CLOEXEC)
    settings: dict[str, Any] = {
        "root": os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
        "path": key.search_path(),
        "kind": kind,
        "preload": preload,
        "companion": companion,
        "idle_s": _idle_limit() if idle_s is None else float(idle_s),
        "ready": report,
        "turn": turn,
        "key": components,
    }
    boot = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")
    log = os.open(f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=directory)
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, boot, repr(settings)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            pass_fds=[report] if turn is None else [report, turn],
            start_new_session=True,
        )
    finally:
        os.close(log)
        os.close(report)
    process.returncode = 0  # it outlives us: without this, Popen warns that it still runs
    try:
        answer = os.read(ready, 4096) if turn is None else b"\n"
    finally:
        os.close(ready)
    if answer != b"\n":
        raise StandbyError(
            "the standby cannot start",
            seen=answer.decode(errors="replace") or f"it ended at once; see {paths.location()}/{name}.log",
            remedy="run without it, or change what it preloads",
        )


def _idle_limit() -> float:
    text = os.environ.get(_IDLE, "")
    try:
        return float(text) if text else IDLE_S
    except ValueError:
        raise StandbyError(f"{_IDLE} is no number of seconds", seen=text) from None
