"""Asks the standbys of this user about themselves, or to stop. For the command line, and to explain a plain start."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from glowplug.core.errors import StandbyError
from glowplug.standby import key, paths, wire
from glowplug.standby.connection import connect, is_dead, is_stopped

_ANSWER_S = 5.0
_END_S = 10.0


class Standby:
    """One that is there. `answer` is what it says of itself; None: it does not answer, and `problem` says why.

    `differs` names what it was built from that is otherwise here.
    """

    def __init__(
        self, name: str, pid: int, components: dict[str, str], answer: dict[str, Any] | None, problem: str = ""
    ) -> None:
        self.name = name
        self.pid = pid
        self.problem = problem
        self._components = components
        self._answer = answer
        preload = components.get("preload", "")
        here = key.components(components.get("kind", ""), tuple(preload.split(",")) if preload else ())
        self.differs = key.difference(components, here)

    def described(self) -> dict[str, Any]:
        """Return whose it is and what it holds, and in what it differs from what this process would start."""
        components = self._components
        interpreter, version, *_ = (*components.get("interpreter", "").split(" "), "", "")
        return {
            "name": self.name,
            "pid": self.pid,
            "kind": components.get("kind"),
            "preload": components.get("preload"),
            "interpreter": interpreter,
            "python": version,
            "environment": components.get("prefix"),
            "memory_bytes": _memory(self.pid),
            "differs": self.differs,
            **({"problem": self.problem} if self._answer is None else self._answer),
        }


def standbys() -> list[Standby]:
    """Return those that are there, whether they answer or not."""
    place = paths.open_place(create=False)
    if place is None:
        return []
    try:
        place.sweep()
        names = sorted(entry[: -len(".sock")] for entry in os.listdir(place.descriptor) if entry.endswith(".sock"))
        return [found for name in names if (found := _look(place, name)) is not None]
    finally:
        place.close()


def status(name: str) -> dict[str, Any]:
    """Return what the standby of that name says of itself."""
    for one in standbys():
        if one.name == name:
            return one.described()
    raise StandbyError("the standby does not stay", seen=name, remedy="see the log beside its socket")


def nearest(components: dict[str, str]) -> str:
    """Say, for a message, in what the standby that is most like this process differs from it."""
    different = [one.differs for one in standbys() if one.differs]
    if not different:
        return ""
    return f" that fits: the nearest differs in {min(different, key=lambda names: names.count(','))}"


def stop(standby: Standby) -> dict[str, Any]:
    """Let a standby take no more requests, and wait until it has ended if nothing runs; kill one that is stuck."""
    found = {"name": standby.name, "pid": standby.pid, "runs": 0}
    try:
        process = os.pidfd_open(standby.pid)
    except ProcessLookupError:
        return found
    try:
        answer = None if standby.problem else _ask(standby.name, "stop")
        if answer is not None:
            found["runs"] = answer["runs"]
            if answer["runs"] or wire.is_readable(process, time.monotonic() + _END_S):
                return found
        signal.pidfd_send_signal(process, signal.SIGKILL)
        wire.is_readable(process, time.monotonic() + _END_S)
    finally:
        os.close(process)
    place = paths.open_place(create=False)
    if place is not None:
        place.sweep()
        place.close()
    return {**found, "killed": True}


def _look(place: paths.Place, name: str) -> Standby | None:
    try:
        connection = connect(place, name)
    except StandbyError as error:
        return Standby(name, 0, _components(place, name), None, str(error))
    if connection is None:
        return None
    try:
        pid = wire.peer(connection)
        if is_dead(pid):
            return None
        if is_stopped(pid):
            return Standby(name, pid, _components(place, name), None, "it is stopped")
        answer = _exchange(connection, "status")
    finally:
        connection.close()
    silent = "it is stopped" if is_stopped(pid) else "it does not answer"  # it may have been stopped meanwhile
    return Standby(name, pid, _components(place, name), answer, "" if answer else silent)


def _components(place: paths.Place, name: str) -> dict[str, str]:
    """Return what a standby was built from: it has written it down, in case that it does not answer."""
    from ast import literal_eval

    try:
        with open(place.through(f"{name}.lock"), encoding="utf-8", errors="surrogateescape") as stream:
            found = literal_eval(stream.read())
    except (OSError, ValueError, SyntaxError):
        return {}
    return found if isinstance(found, dict) else {}


def _ask(name: str, what: str) -> dict[str, Any] | None:
    place = paths.open_place(create=False)
    if place is None:
        return None
    try:
        connection = connect(place, name)
    finally:
        place.close()
    if connection is None:
        return None
    try:
        return _exchange(connection, what)
    finally:
        connection.close()


def _exchange(connection: wire.Socket, what: str) -> dict[str, Any] | None:
    try:
        wire.send(connection, {"do": what}, wait=False)
        message, _ = wire.receive(connection, until=time.monotonic() + _ANSWER_S)
    except (OSError, StandbyError):  # among them: no answer in time
        return None
    return None if message is None or "refused" in message else message


def _memory(pid: int) -> int:
    """Return what a process takes of the memory, shared pages in proportion."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as stream:
            return sum(int(line.split()[1]) * 1024 for line in stream if line.startswith("Pss:"))
    except OSError:
        return 0
