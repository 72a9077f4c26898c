"""The channel between supervisor and front end: small JSON messages, each with at most one descriptor.

Front end to supervisor: `spawn` (with the worker's end of a socket), `kill`, `run` (a command, at low priority),
`listening`. Supervisor to front end: `started`, `exited`, `drain`.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

_MAX_BYTES = 1 << 16


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends. Messages keep their boundaries and arrive whole."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, document: dict[str, Any], descriptor: int | None = None) -> None:
    """Send one message. The descriptor stays open on this side."""
    data = json.dumps(document).encode()
    if len(data) > _MAX_BYTES:
        raise ValueError(f"a control message of {len(data)} bytes")
    socket.send_fds(channel, [data], [] if descriptor is None else [descriptor])


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, int | None]:
    """Return the next message and its descriptor, or `None` when the other side is gone."""
    data, descriptors, _, _ = socket.recv_fds(channel, _MAX_BYTES, 1)
    if not data:
        for descriptor in descriptors:
            os.close(descriptor)
        return None, None
    return json.loads(data), descriptors[0] if descriptors else None
