"""A TCP relay between a client and a server: counts what passes, and can slow it down or cut it off.

It runs in a thread of its own. Requests are those of HTTP/1.1, told by the method with which a client speaks.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

_METHODS = (b"GET ", b"PUT ", b"HEAD ", b"POST ", b"DELETE ")
_PIECE = 1 << 16


@dataclass(slots=True)
class Counts:
    """What has passed. `received_bytes` came from the server, headers included."""

    connections: int = 0
    most_at_once: int = 0
    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Relay:
    """`counts` may be replaced by new ones at any moment; so may the faults."""

    def __init__(self, target_port: int, address: str = "127.0.0.1") -> None:
        self.target_port = target_port
        self.address = address
        self.port = 0
        self.counts = Counts()
        self.bytes_per_s: float | None = None  # of each connection, from the server
        self.cut_after_bytes: int | None = None  # from the server, over all connections: then each is cut off
        self.refuses = False  # new connections end at once
        self._open = 0
        self._loop = asyncio.new_event_loop()

    async def _serve(self, started: threading.Event) -> None:
        server = await asyncio.start_server(self._relay, self.address, 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        async with server:
            await server.serve_forever()

    async def _relay(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self.refuses:
            to_client.transport.abort()
            return
        self._open += 1
        self.counts.connections += 1
        self.counts.most_at_once = max(self.counts.most_at_once, self._open)
        to_server: asyncio.StreamWriter | None = None
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self.target_port)
            ways = [self._loop.create_task(one) for one in (self._up(client, to_server), self._down(server, to_client))]
            _, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in left:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):  # the latter at the end of the relay
            pass
        finally:
            self._open -= 1
            for one in (to_client, to_server):
                if one is not None:
                    one.transport.abort()

    async def _up(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while data := await client.read(_PIECE):
            self.counts.requests += data.startswith(_METHODS)
            self.counts.sent_bytes += len(data)
            to_server.write(data)
            await to_server.drain()

    async def _down(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while data := await server.read(_PIECE):
            self.counts.received_bytes += len(data)
            if self.cut_after_bytes is not None and self.counts.received_bytes > self.cut_after_bytes:
                return
            to_client.write(data)
            await to_client.drain()
            if self.bytes_per_s:
                await asyncio.sleep(len(data) / self.bytes_per_s)
        await to_client.drain()

    def _run(self, started: threading.Event) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._task = self._loop.create_task(self._serve(started))
            self._loop.run_until_complete(self._task)
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left))
        self._loop.close()


@contextlib.contextmanager
def relaying(target_port: int, address: str = "127.0.0.1") -> Iterator[Relay]:
    """A relay to that port of this machine for the length of a block; its own is `port`."""
    relay, started = Relay(target_port, address), threading.Event()
    thread = threading.Thread(target=relay._run, args=(started,), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield relay
    finally:
        relay._loop.call_soon_threadsafe(relay._task.cancel)
        thread.join(30)
