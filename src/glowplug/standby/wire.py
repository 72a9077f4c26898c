"""Messages between a client, a standby and its children: packets on a unix socket, with descriptors beside them.

A packet is a digest and a dict of plain values in `marshal`'s form: that module is built into the interpreter, so it
costs a client nothing, and both ends are the same interpreter (it is part of the key) run by the same user (each end
asks the kernel). What the digest does not fit never reaches `marshal`. What can be long, a request, travels in a sealed
memory file, since a packet's size is bounded. No wait in here is without an end unless the caller says so.
"""

from __future__ import annotations

import _socket
import fcntl
import marshal
import os
import select
import time
from collections.abc import Mapping, Sequence
from typing import Any

from glowplug.core.errors import StandbyError

Socket = _socket.socket

PACKET_BYTES = 64 * 1024
MOST_DESCRIPTORS = 253  # SCM_MAX_FD of Linux
MOST_REQUEST_BYTES = 64 << 20
_DIGEST_BYTES = 16
_INT = 4
_CREDENTIALS_BYTES = 12  # struct ucred: pid, uid, gid
_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034


def new_socket() -> Socket:
    """Return a socket that keeps packets apart."""
    return Socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)


def socket_pair() -> tuple[Socket, Socket]:
    """Return two connected ends; neither survives an exec."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)


def peer(connection: Socket) -> int:
    """Return the process at the other end; raise `StandbyError` if it belongs to another user."""
    data = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    user = int.from_bytes(data[4:8], "little")
    if user != os.getuid():
        raise StandbyError("the other end belongs to another user", seen=f"uid {user}", remedy="nothing was run")
    return int.from_bytes(data[:4], "little")


def send(connection: Socket, message: Mapping[str, Any], descriptors: Sequence[int] = (), *, wait: bool = True) -> None:
    """Send one packet. Without `wait`, raise `BlockingIOError` where the other end has not read for long."""
    ancillary = []
    if descriptors:
        packed = b"".join(number.to_bytes(_INT, "little") for number in descriptors)
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)]
    flags = _socket.MSG_NOSIGNAL | (0 if wait else _socket.MSG_DONTWAIT)
    connection.sendmsg([_encoded(message)], ancillary, flags)


def receive(connection: Socket, *, until: float | None = None) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next packet and its descriptors; the packet is None when the other end is gone.

    Raises `TimeoutError` when the monotonic clock reaches `until`; without one it waits for as long as it takes.
    """
    if until is not None and not is_readable(connection.fileno(), until):
        raise TimeoutError("no answer")
    space = _socket.CMSG_SPACE(MOST_DESCRIPTORS * _INT)
    data, ancillary, flags, _ = connection.recvmsg(PACKET_BYTES, space, _socket.MSG_CMSG_CLOEXEC)
    descriptors = []
    for level, kind, packed in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            usable = len(packed) - len(packed) % _INT
            descriptors += [int.from_bytes(packed[at : at + _INT], "little") for at in range(0, usable, _INT)]
    try:
        if flags & (_socket.MSG_CTRUNC | _socket.MSG_TRUNC):
            raise StandbyError("a message came incomplete", seen=f"{len(data)} bytes, {len(descriptors)} descriptors")
        return _decoded(data) if data else None, descriptors
    except BaseException:
        for number in descriptors:
            os.close(number)
        raise


def is_readable(descriptor: int, until: float) -> bool:
    """Wait until there is something to read, or the monotonic clock reaches `until`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0, int((until - time.monotonic()) * 1000) + 1)))


def memory_file(value: Mapping[str, Any]) -> int:
    """Return the descriptor of a memory file that holds `value` and cannot change any more."""
    data = memoryview(_encoded(value))
    if len(data) > MOST_REQUEST_BYTES:
        raise StandbyError("a request is too long", seen=f"{len(data)} bytes", remedy="pass large values in files")
    descriptor = os.memfd_create("glowplug-request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    while data:
        data = data[os.write(descriptor, data) :]
    fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEALS)
    return descriptor


def read_memory_file(descriptor: int) -> dict[str, Any]:
    """Return what a memory file holds. A file of another kind is refused before it is read: that could take long."""
    size = os.fstat(descriptor).st_size
    try:
        sealed = fcntl.fcntl(descriptor, _F_GET_SEALS) & _SEALS == _SEALS
    except OSError:
        sealed = False
    if not sealed or size > MOST_REQUEST_BYTES:
        raise StandbyError("a request is in no sealed memory file", seen=f"{size} bytes")
    return _decoded(os.pread(descriptor, size, 0))


def _encoded(message: Mapping[str, Any]) -> bytes:
    data = marshal.dumps(dict(message))
    return _digest(data) + data


def _decoded(data: bytes) -> dict[str, Any]:
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if digest != _digest(body):
        raise StandbyError("a message cannot be read", seen=f"{len(data)} bytes that are none of ours")
    try:
        message = marshal.loads(body)
    except (ValueError, EOFError, TypeError) as error:
        raise StandbyError("a message cannot be read", seen=error) from error
    if not isinstance(message, dict):
        raise StandbyError("a message is no message", seen=type(message).__name__)
    return message


def _digest(data: bytes) -> bytes:
    from _blake2 import blake2b  # `hashlib` would load OpenSSL (5 ms)

    return bytes(blake2b(data, digest_size=_DIGEST_BYTES).digest())
