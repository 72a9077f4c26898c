"""Turns a freshly forked process into the caller's program. Everything here runs in the child."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import sys
import termios
import time
from importlib import import_module
from typing import Any, NoReturn

from glowplug.core.errors import GlowplugError, StandbyError
from glowplug.standby import confinement, identity, wire

from . import randomness
from .withheld import WithheldModules

_OUT_OF_THE_WAY = 100  # descriptors of ours move here, so that those of the caller get their own numbers
_BEGIN_S = 60.0  # a client gives up sooner
_kept: list[Any] = []  # the standby's streams: dropping them would close 0, 1 and 2


class Child:
    """What the standby hands to its child: the request, the connection to the client and the descriptors."""

    def __init__(self, connection: wire.Socket, request: dict[str, Any], descriptors: list[int]) -> None:
        self.connection = connection
        self.request = request
        self.descriptors = descriptors  # working directory, then what `request["descriptors"]` numbers


def make_room() -> None:
    """Let the kernel enlarge the table of descriptors. In a process with threads it waits for all processors then."""
    os.close(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY))


def run(child: Child, withheld: WithheldModules | None) -> int:
    """Become the caller, call what the request names, and return its exit code (or minus a signal).

    Nothing that anybody could notice is done before the client has said that it counts on this child.
    """
    request = child.request
    try:
        _become(child)
        randomness.renew(withheld)
        function = _resolve(request["call"])
        refusal = _vet(request, withheld)
    except (GlowplugError, OSError, ImportError, AttributeError) as error:
        refusal = str(error)
    try:
        if refusal is not None:
            wire.send(child.connection, {"refused": refusal})
            os._exit(0)
        itself = os.pidfd_open(os.getpid())
        wire.send(child.connection, {"ready": os.getpid()}, [itself])
        os.close(itself)
        message, _ = wire.receive(child.connection, until=time.monotonic() + _BEGIN_S)
        if message is None or message.get("do") != "begin":
            os._exit(0)
        wire.send(child.connection, {"started": True})
    except (GlowplugError, OSError):  # the client has gone, or given up
        os._exit(0)
    result = function(*request["arguments"])
    code = result if isinstance(result, int) else 0
    with contextlib.suppress(OSError):
        wire.send(child.connection, {"leaving": code}, wait=False)  # for a client whose standby died meanwhile
    _kept.append(child.connection.detach())  # open until the process has gone, without a warning about it
    return code


def leave(code: int) -> NoReturn:
    """End through the interpreter's own way out, which runs exit handlers and finalisation."""
    if code == -2:  # as Python does after an uncaught KeyboardInterrupt: finalise, then die by SIGINT
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
    sys.exit(code)


def _become(child: Child) -> None:
    request = child.request
    gc.enable()  # it was off while the standby imported
    os.setsid()
    _arrange_descriptors(child)
    if request["terminal"]:
        terminal = next(number for number in range(3) if os.isatty(number))
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    _new_streams()
    identity.put_on(request)
    identity.put_on_signals(request)
    different = confinement.difference(confinement.read(), request["confinement"])
    if different:
        raise StandbyError("the standby's child cannot be given what its caller has", seen=different)
    if not confinement.can_see(wire.peer(child.connection)):
        raise StandbyError("the kernel keeps the standby's child and its caller apart")


def _arrange_descriptors(child: Child) -> None:
    directory, *given = child.descriptors
    os.fchdir(directory)
    os.close(directory)
    moved = fcntl.fcntl(child.connection.fileno(), fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    child.connection.close()
    child.connection = wire.Socket(fileno=moved)
    aside = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for number in given]
    for number in given:
        os.close(number)
    numbers = child.request["descriptors"]
    for source, number in zip(aside, numbers, strict=True):
        os.dup2(source, number)
        os.close(source)
    for number in range(3):
        if number not in numbers:
            os.close(number)


def _new_streams() -> None:
    """Open the standard streams again: whether they are terminals, and can seek, is decided when they are made."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        old = getattr(sys, f"__{name}__")
        _kept.append(old)
        stream: Any = None
        try:
            os.fstat(number)
        except OSError:
            pass
        else:
            stream = _stream(old, number, mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _stream(old: Any, number: int, mode: str) -> Any:
    import io

    unbuffered = mode == "w" and bool(old.write_through)  # python -u
    raw: Any = open(number, f"{mode}b", buffering=0 if unbuffered else -1, closefd=False)  # noqa: SIM115
    plain = raw if unbuffered else raw.raw
    plain.name = f"<{'stdin' if number == 0 else 'stdout' if number == 1 else 'stderr'}>"
    stream = io.TextIOWrapper(
        raw,
        encoding=old.encoding,
        errors=old.errors,
        newline=None if mode == "r" else "\n",
        line_buffering=not unbuffered and (plain.isatty() or number == 2),
        write_through=unbuffered,
    )
    stream.mode = mode  # type: ignore[misc]
    return stream


def _resolve(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _vet(request: dict[str, Any], withheld: WithheldModules | None) -> str | None:
    program = request.get("program")
    if program is None or withheld is None:
        return None
    from .vetting import objection

    kind, name = program
    return objection(kind, name, withheld)
