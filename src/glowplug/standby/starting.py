"""Starts a standby and waits until it is ready. Runs in a client, and in a standby that replaces itself."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from glowplug.core.errors import StandbyError

from . import connection, key, paths, wire

IDLE_S = 1800.0
READY_S = 120.0  # how long a caller waits: an import from a cold disk takes most of a minute
_FORK_S = 30.0
_TURN_S = 0.5  # for who does not wait: others hold the turn for moments, to look, or until theirs is ready
_IDLE = "GLOWPLUG_STANDBY_IDLE"


def start(
    kind: str, preload: tuple[str, ...], companion: str = "", *, idle_s: float | None = None, wait: bool = True
) -> str:
    """Start a standby of this process's key, unless one is starting or there already; return its name.

    It imports `preload` and calls `companion`, a `package.module:function`, with it. Raises `StandbyError` if it cannot
    start or is not ready in time. It outlives this process, and ends when it has been idle for `idle_s`. Without
    `wait`, it is left to itself.
    """
    until = time.monotonic() + (READY_S if wait else _TURN_S)
    components = key.components(kind, preload)
    name = key.digest(components)
    limit = _idle_limit() if idle_s is None else float(idle_s)
    settings = {"kind": kind, "preload": preload, "companion": companion, "idle_s": limit, "name": name}
    with _standard_numbers_taken():
        place = paths.open_place(create=True)
        assert place is not None
        try:
            _start_in(place, {**settings, "key": components}, until, wait=wait)
            place.sweep()
        finally:
            place.close()
    return name


def _start_in(place: paths.Place, settings: dict[str, Any], until: float, *, wait: bool) -> None:
    name = settings["name"]
    turn = place.lock(f"{name}.turn", wait_until=until)  # one starts it, the others find it when their turn comes
    if turn is None:
        if wait:
            raise StandbyError("another start of the standby has not ended", seen=f"{READY_S:.0f} s")
        return
    try:
        if not _is_served(place, name, until):
            # Who does not wait leaves the turn to the new standby, which keeps it until it is ready.
            _start(settings, place, None if wait else turn, until)
    finally:
        os.close(turn)


@contextlib.contextmanager
def _standard_numbers_taken() -> Iterator[None]:
    """Give none of our descriptors a number that the new process needs for its own streams."""
    taken = []
    while (number := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) < 3:
        taken.append(number)
    os.close(number)
    try:
        yield
    finally:
        for number in taken:
            os.close(number)


def _is_served(place: paths.Place, name: str, until: float) -> bool:
    """Tell whether there is one; wait for one that still imports, since whoever started it was killed."""
    while True:
        lock = place.lock(f"{name}.lock")
        if lock is not None:
            os.close(lock)
            return False
        found = connection.connect(place, name)
        if found is not None:
            dead = connection.is_dead(wire.peer(found))
            found.close()
            if not dead:
                return True
        if time.monotonic() >= until:
            raise StandbyError("the standby is not ready in time", seen=f"{READY_S:.0f} s")
        time.sleep(0.02)


def _start(settings: dict[str, Any], place: paths.Place, turn: int | None, until: float) -> None:
    ready, report = os.pipe2(os.O_CLOEXEC)
    here = os.path.dirname(os.path.abspath(__file__))
    settings |= {"root": os.path.dirname(os.path.dirname(here)), "path": key.search_path()}
    name = settings["name"]
    log = os.open(f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=place.descriptor)
    told = _settings_file({**settings, "ready": report, "turn": turn, "place": place.descriptor})
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, os.path.join(here, "server", "boot.py")],
            stdin=told,
            stdout=log,
            stderr=log,
            env=os.environ,  # as this process sees it: `glowplug run` leaves more to the children of its programs
            cwd="/",
            pass_fds=[report, place.descriptor, *([] if turn is None else [turn])],
            start_new_session=True,
        )
    finally:
        for descriptor in (log, report, told):
            os.close(descriptor)
    try:
        process.wait(_FORK_S)  # it forks first of all, so that the standby is nobody's child
        if turn is None:
            _await_ready(ready, until, f"{place.path}/{name}.log")
    except subprocess.TimeoutExpired:
        process.kill()
        raise StandbyError("the interpreter does not start", seen=f"{_FORK_S:.0f} s") from None
    except KeyboardInterrupt:  # whoever wants none any more finds none a moment later
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        os.close(ready)


def _await_ready(ready: int, until: float, log: str) -> None:
    if not wire.is_readable(ready, until):
        raise StandbyError("the standby is not ready in time", seen=f"{READY_S:.0f} s", remedy=f"see {log}")
    answer = os.read(ready, 4096)
    if answer != b"\n":
        raise StandbyError(
            "the standby cannot start",
            seen=answer.decode(errors="replace") or f"it ended at once; see {log}",
            remedy="run without it, or change what it preloads",
        )


def _settings_file(settings: dict[str, Any]) -> int:
    """Return a memory file for the new standby's standard input: everybody could read a command line."""
    descriptor = os.memfd_create("glowplug-standby", os.MFD_CLOEXEC)
    data = memoryview(repr(settings).encode("utf-8", "surrogateescape"))
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _idle_limit() -> float:
    text = os.environ.get(_IDLE, "")
    try:
        return float(text) if text else IDLE_S
    except ValueError:
        raise StandbyError(f"{_IDLE} is no number of seconds", seen=text) from None
