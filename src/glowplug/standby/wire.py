"""Messages between a client, a standby and its children: packets on a unix socket, with descriptors beside them.

A packet is a dict of plain values in `marshal`'s form: that module is built into the interpreter, so it costs a client
nothing, and both ends are the same interpreter (it is part of the key) run by the same user (each end asks the kernel).
What can be long, a request, travels in a memory file, since a packet's size is bounded.
"""

from __future__ import annotations

import _socket
import marshal
import os
from collections.abc import Mapping, Sequence
from typing import Any

from glowplug.core.errors import StandbyError

Socket = _socket.socket

PACKET_BYTES = 64 * 1024
_MOST_DESCRIPTORS = 253  # SCM_MAX_FD of Linux
_INT = 4
_CREDENTIALS_BYTES = 12  # struct ucred: pid, uid, gid


def new_socket() -> Socket:
    """Return a socket that keeps packets apart."""
    return Socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)


def socket_pair() -> tuple[Socket, Socket]:
    """Return two connected ends; neither survives an exec."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)


def check_peer(connection: Socket) -> None:
    """Raise `StandbyError` unless the other end belongs to this user."""
    data = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    user = int.from_bytes(data[4:8], "little")
    if user != os.getuid():
        raise StandbyError("the other end belongs to another user", seen=f"uid {user}", remedy="nothing was run")


def send(connection: Socket, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one packet."""
    ancillary = []
    if descriptors:
        packed = b"".join(number.to_bytes(_INT, "little") for number in descriptors)
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)]
    connection.sendmsg([marshal.dumps(dict(message))], ancillary, _socket.MSG_NOSIGNAL)


def receive(connection: Socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next packet and its descriptors; the packet is None when the other end is gone."""
    space = _socket.CMSG_SPACE(_MOST_DESCRIPTORS * _INT)
    data, ancillary, _, _ = connection.recvmsg(PACKET_BYTES, space, _socket.MSG_CMSG_CLOEXEC)
    descriptors = []
    for level, kind, packed in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            usable = len(packed) - len(packed) % _INT
            descriptors += [int.from_bytes(packed[at : at + _INT], "little") for at in range(0, usable, _INT)]
    if not data:
        return None, descriptors
    try:
        message = marshal.loads(data)
    except (ValueError, EOFError, TypeError) as error:
        raise StandbyError("a message cannot be read", seen=error) from error
    if not isinstance(message, dict):
        raise StandbyError("a message is no message", seen=type(message).__name__)
    return message, descriptors


def memory_file(value: Mapping[str, Any]) -> int:
    """Return the descriptor of a memory file that holds `value`."""
    descriptor = os.memfd_create("glowplug-request", os.MFD_CLOEXEC)
    data = memoryview(marshal.dumps(dict(value)))
    while data:
        data = data[os.write(descriptor, data) :]
    return descriptor


def read_memory_file(descriptor: int) -> dict[str, Any]:
    """Return what a memory file holds."""
    size = os.fstat(descriptor).st_size
    data, at = [], 0
    while at < size:
        part = os.pread(descriptor, size - at, at)
        if not part:
            break
        data.append(part)
        at += len(part)
    value = marshal.loads(b"".join(data))
    if not isinstance(value, dict):
        raise StandbyError("a request is no request", seen=type(value).__name__)
    return value
