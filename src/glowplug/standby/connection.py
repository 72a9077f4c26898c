"""Connects to a standby by its name. Runs in the client, and wherever it must be known whether one is there."""

from __future__ import annotations

from glowplug.core.errors import StandbyError

from . import paths, wire


def connect(place: paths.Place, name: str) -> wire.Socket | None:
    """Return a connection to the standby of that name, or None if it does not run.

    Raises `StandbyError` if it belongs to another user or has more callers than it can take.
    """
    connection = wire.new_socket()
    connection.setblocking(False)  # a standby that accepts nobody would keep us waiting
    try:
        connection.connect(place.through(f"{name}.sock"))
        connection.setblocking(True)
        wire.peer(connection)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except BlockingIOError:
        connection.close()
        raise StandbyError("the standby accepts nobody", seen=name, remedy="glowplug standby stop") from None
    except BaseException:
        connection.close()
        raise
    return connection


def is_stopped(pid: int) -> bool:
    """Tell whether a process has been stopped (SIGSTOP, Ctrl-Z, a debugger)."""
    return _state(pid) in (b"T", b"t")


def is_dead(pid: int) -> bool:
    """Tell whether a process has ended, be it that nobody has asked how."""
    return _state(pid) in (b"Z", b"X", b"")


def _state(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            return stream.read(4096).rpartition(b")")[2].split(None, 1)[0]
    except OSError:
        return b""
