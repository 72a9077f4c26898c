"""The gRPC server: methods behind HTTP/2 connections, on the front end's event loop."""

from __future__ import annotations

import asyncio

from glowplug.serve.access import Gate
from glowplug.serve.heap import Heap
from glowplug.serve.log import Log
from glowplug.serve.wire.limits import Limits

from .call import Bounds, Call
from .http2.connection import Application, Connection
from .http2.inflow import MAX_FRAME_BYTES
from .methods import Head, Methods, read_head
from .wire import ANSWER

_PROTOBUF_BYTES = (1 << 31) - 1  # no message can be larger
_POLL_SECONDS = 0.01


class RpcServer:
    """Makes a protocol for each connection, and knows those that are open. Without a gate every call is let in."""

    def __init__(
        self,
        methods: Methods,
        limits: Limits,
        log: Log,
        gate: Gate | None = None,
        heap: Heap | None = None,
        patience_s: float = 75.0,
    ) -> None:
        self._log, self._gate = log, gate
        # A tensor may take more bytes on the wire than in memory, and a message may hold several.
        message_bytes = min(_PROTOBUF_BYTES, max(2 * limits.tensor_bytes, limits.request_bytes, MAX_FRAME_BYTES))
        self._bounds = Bounds(message_bytes, 2 * message_bytes, 2 * limits.request_bytes, patience_s, heap or Heap())
        self._connections: set[Connection[Head]] = set()
        self._application: Application[Head] = Application(
            lambda fields: read_head(methods, fields), self._open, ANSWER, self._defect
        )

    def _open(self, connection: Connection[Head], number: int, head: Head) -> Call:
        return Call(connection, number, head, self._bounds, self._log, self._gate)

    def _defect(self, error: Exception) -> None:
        self._log.event("defect", error=f"{type(error).__name__}: {error}", method="HTTP/2")

    def connection(self) -> Connection[Head]:
        """Return the protocol of a new connection."""
        return Connection(self._application, self._connections)

    async def drain(self, seconds: float) -> None:
        """Finish the calls that are here, for at most so long."""
        for connection in list(self._connections):
            connection.drain()
        deadline = asyncio.get_running_loop().time() + seconds
        while self._connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
        for connection in list(self._connections):
            connection.abort()
