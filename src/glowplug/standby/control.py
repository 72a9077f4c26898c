"""Asks the standbys of this user about themselves, or to stop. Used by the command line."""

from __future__ import annotations

import os
import select
from typing import Any

from glowplug.core.errors import StandbyError

from . import client, key, paths, wire


def names() -> list[str]:
    """Return the names of the standbys that answer."""
    try:
        directory = paths.open_directory(create=False)
    except FileNotFoundError:
        return []
    try:
        found = sorted(entry[: -len(".sock")] for entry in os.listdir(directory) if entry.endswith(".sock"))
    finally:
        os.close(directory)
    return [name for name in found if _answers(name)]


def status(name: str) -> dict[str, Any]:
    """Return what the standby says of itself, and in what it differs from this process."""
    answer = _ask(name, "status")
    components = answer.pop("key")
    kind, preload = components["kind"], components["preload"]
    here = key.components(kind, tuple(preload.split(",")) if preload else ())
    return {
        "name": name,
        "kind": kind,
        "preload": preload,
        **answer,
        "memory_bytes": _memory(answer["pid"]),
        "differs": key.difference(components, here),
    }


def stop(name: str) -> dict[str, Any]:
    """Let a standby take no more requests, and wait until it has ended if nothing runs."""
    answer = _ask(name, "stop")
    if not answer["runs"]:
        try:
            process = os.pidfd_open(answer["pid"])
        except ProcessLookupError:
            return {"name": name, **answer}
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.poll()
        os.close(process)
    return {"name": name, **answer}


def _answers(name: str) -> bool:
    connection = client.connect(name)
    if connection is None:
        return False
    connection.close()
    return True


def _ask(name: str, what: str) -> dict[str, Any]:
    connection = client.connect(name)
    if connection is None:
        raise StandbyError("the standby does not answer", seen=name, remedy="glowplug standby start")
    try:
        wire.send(connection, {"do": what})
        message, _ = wire.receive(connection)
    finally:
        connection.close()
    if message is None or "refused" in message:
        raise StandbyError("the standby refused", seen=message)
    return message


def _memory(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
