"""The gRPC layer alone, on an event loop in a thread, with methods that need no model; and a client of bare frames."""

from __future__ import annotations

import asyncio
import io
import socket
import struct
import threading
from typing import Any

import hpack
import uvloop

from glowplug.core.errors import RequestError
from glowplug.serve.log import Log
from glowplug.serve.rpc.http2 import frames
from glowplug.serve.rpc.methods import Method
from glowplug.serve.rpc.server import RpcServer
from glowplug.serve.wire.limits import Limits

HEAD = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/test/Echo"),
    (":authority", "here"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]


class EchoServer:
    """`/test/Echo`, `Zeros` (as many as asked for), `Wait` (for seconds, or to be let go), `Fail` (with a text), and
    `Chat` (streams).
    """

    def __init__(self, limits: Limits | None = None, unix: str = "", patience_s: float = 75.0) -> None:
        self.loop = uvloop.new_event_loop()
        self.log = io.StringIO()
        self.waiting, self.cancelled = threading.Semaphore(0), threading.Semaphore(0)
        self.let_go = asyncio.Event()
        self.peers: list[str] = []
        self._limits, self._unix, self._patience_s = limits or Limits(), unix, patience_s
        self._thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> EchoServer:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        assert "defect" not in self.log.getvalue(), self.log.getvalue()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    async def _start(self) -> None:
        methods = {
            "/test/Echo": Method(unary=self._echo),
            "/test/Zeros": Method(unary=self._zeros),
            "/test/Wait": Method(unary=self._wait),
            "/test/Fail": Method(unary=self._fail),
            "/test/Chat": Method(streaming=self._chat),
        }
        log = Log(as_json=True, access=False, stream=self.log)
        self.rpc = RpcServer(methods, self._limits, log, patience_s=self._patience_s)
        if self._unix:
            self._server = await self.loop.create_unix_server(self.rpc.connection, self._unix)
            self.address = f"unix:{self._unix}"
        else:
            self._server = await self.loop.create_server(self.rpc.connection, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]
            self.address = f"127.0.0.1:{self.port}"

    async def _stop(self) -> None:
        self._server.close()
        await self.rpc.drain(5)

    async def _echo(self, data: bytes, call: Any) -> bytes:
        self.peers.append(call.peer)
        return data

    async def _zeros(self, data: bytes, call: Any) -> bytes:
        return bytes(int(data))

    async def _wait(self, data: bytes, call: Any) -> bytes:
        self.waiting.release()
        try:
            await asyncio.wait_for(self.let_go.wait(), float(data or b"3600"))
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.cancelled.release()
            raise
        return b"waited"

    async def _fail(self, data: bytes, call: Any) -> bytes:
        raise RequestError(data.decode(), code="FAILED_PRECONDITION")

    async def _chat(self, call: Any) -> None:
        async for data in call.messages():
            await call.send(data)

    async def open_connections(self) -> int:
        return len(self.rpc._connections)

    def wait_until_idle(self) -> None:
        """Wait until no connection is left."""
        self.run(_until_empty(self.rpc._connections))

    async def held_bytes(self) -> int:
        return self.rpc._bounds.held_bytes


async def _until_empty(connections: set[Any]) -> None:
    while connections:
        await asyncio.sleep(0.01)


def message(data: bytes) -> bytes:
    """Return a message with gRPC's prefix."""
    return struct.pack(">BI", 0, len(data)) + data


class Frames:
    """A client that sends what it is told and returns frames as (type, flags, stream, payload)."""

    def __init__(self, server: EchoServer, settings: dict[int, int] | None = None, *, greet: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), 20)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self._input = self.socket.makefile("rb")
        if greet:
            self.send(frames.PREFACE + frames.settings(settings or {}))

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def head(self, number: int, fields: Any = None, flags: int = frames.END_HEADERS, **changed: str) -> bytes:
        """Return a HEADERS frame; `changed` replaces pseudo fields by name."""
        chosen = [(key, changed.get(key.lstrip(":"), value)) for key, value in (fields or HEAD)]
        return frames.frame(frames.HEADERS, flags, number, self.encoder.encode(chosen))

    def call(self, number: int, data: bytes, path: str = "/test/Echo") -> None:
        self.send(self.head(number, path=path) + frames.frame(frames.DATA, frames.END_STREAM, number, message(data)))

    def read(self) -> tuple[int, int, int, bytes] | None:
        """Return the next frame, `None` at the end."""
        try:
            head = self._input.read(9)
            if len(head) < 9:
                return None
            word, flags, number = frames.HEAD.unpack(head)
            return word & 0xFF, flags, number, self._input.read(word >> 8)
        except ConnectionResetError:
            return None

    def wait_for(self, kind: int, number: int | None = None) -> tuple[int, int, int, bytes]:
        """Return the next frame of a type, skipping others."""
        while True:
            found = self.read()
            assert found is not None, f"no frame of type {kind}"
            if found[0] == kind and number in (None, found[2]):
                return found

    def answer(self, number: int) -> tuple[dict[str, str], bytes, dict[str, str]]:
        """Return head, data and trailers of an answer, in a connection with one call at a time."""
        blocks, data = [], b""
        while True:
            found = self.read()
            assert found is not None, "the connection ended"
            kind, flags, where, payload = found
            if kind == frames.HEADERS:
                assert where == number
                blocks.append(dict(self.decoder.decode(payload)))
            elif kind == frames.DATA:
                assert where == number
                data += payload
            assert kind not in (frames.RST_STREAM, frames.GOAWAY), found
            if kind == frames.HEADERS and flags & frames.END_STREAM:
                return blocks[0], data, blocks[-1]

    def goaway(self) -> int:
        """Return the code with which the connection is ended, and see that it is."""
        code = struct.unpack(">I", self.wait_for(frames.GOAWAY)[3][4:8])[0]
        while self.read() is not None:
            pass
        return int(code)
