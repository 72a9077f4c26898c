"""How connections end whose clients are still sending: over real sockets, with short bounds where time is the point."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvloop

from glowplug.serve import lingering
from glowplug.serve.rest.exchange import Budget, HttpSettings, Request, Response
from glowplug.serve.rest.http import Connection
from glowplug.serve.rpc.http2 import frames
from tests.serve.rpc_server import EchoServer, Frames

LIMIT = 1000
MUCH = 50_000_000
LARGE_ANSWER = 30_000_000  # more than the kernel keeps for a client that does not read
LONG = 3600.0
TOO_LARGE = b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % MUCH


class RestServer:
    """The REST layer alone, on an event loop in a thread: `/large` answers with much, everything else with the path."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self.connections: set[Connection] = set()
        self._thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> RestServer:
        self._thread.start()
        self._server = self.run(self._start())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def _start(self) -> Any:
        settings = HttpSettings(LIMIT, Budget(2 * LIMIT))
        return await self.loop.create_server(
            lambda: Connection(self._answer, settings, self.connections), "127.0.0.1", 0
        )

    async def _answer(self, request: Request) -> Response:
        return Response(200, bytes(LARGE_ANSWER) if request.path == "/large" else request.path.encode())

    async def stop(self) -> None:
        self._server.close()
        for connection in list(self.connections):
            connection.drain()
        await self.until_closed()

    async def until_closed(self) -> None:
        while self.connections:
            await asyncio.sleep(0.01)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 30)


@pytest.fixture
def server() -> Iterator[RestServer]:
    with RestServer() as started:
        yield started


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set bounds by name; all others become so long that only the chosen one can end a connection."""

    def choose(**chosen: float) -> None:
        for name in ("_SILENCE_SECONDS", "_HURRIED_SECONDS", "_LONGEST_SECONDS", "_STALL_SECONDS", "_MAX_BYTES"):
            monkeypatch.setattr(lingering, name, chosen.pop(name.lower().strip("_"), LONG * 1e6))
        assert not chosen

    return choose


@contextmanager
def refused(server: RestServer) -> Iterator[socket.socket]:
    """Return a client that was refused, and to which the server listens on."""
    with server.connect() as client:
        client.sendall(TOO_LARGE)
        answer = b""
        while piece := client.recv(1 << 16):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert server.connections
        yield client


def send_for_ever(client: socket.socket) -> None:
    while True:
        client.sendall(bytes(1 << 16))


# what a client sees


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_sent_whole_and_refused(server, chunked):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    body = (bytes(1_000_000) for _ in range(MUCH // 1_000_000)) if chunked else bytes(MUCH)
    client.request(
        "POST", "/echo", body, encode_chunked=chunked, headers={"Transfer-Encoding": "chunked"} if chunked else {}
    )
    response = client.getresponse()
    assert response.status == 413
    assert b"--max-request-bytes" in response.read()
    client.close()
    server.run(server.until_closed())


@pytest.mark.parametrize(
    ("status", "head"),
    [
        (400, b"\0"),
        (431, b"GET / HTTP/1.1\r\nA: "),
        (431, b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: "),
        (431, b"GET /"),
        (200, b"GET / HTTP/1.0\r\n\r\n"),
    ],
)
def test_an_answer_reaches_a_client_that_sends_on(server, status, head):
    with server.connect() as client:
        client.sendall(head + b"a" * MUCH)
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1") == 1


def test_a_refusal_comes_behind_the_answers_before_it(server):
    with server.connect() as client:
        client.sendall(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nA" + bytes(MUCH))
        answer = client.makefile("rb").read()
    assert [line.split()[1] for line in answer.split(b"\n") if b"HTTP/1.1" in line] == [b"200", b"200", b"400"]


def test_a_slow_reader_gets_the_whole_answer(server, bounds):
    bounds(silence_seconds=0.01, longest_seconds=0.05)
    with server.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        client.recv(1)
        server.run(asyncio.sleep(0.3))  # well beyond what would end a connection whose answer is out
        assert server.connections
        assert client.makefile("rb").read().endswith(bytes(LARGE_ANSWER))


# bounds


def test_silence_ends_it(server, bounds):
    bounds(silence_seconds=0.05)
    with refused(server):
        server.run(server.until_closed())


def test_a_client_that_never_stops_is_cut_off(server, bounds):
    bounds(silence_seconds=0.2, longest_seconds=0.5)
    with refused(server) as client, pytest.raises(ConnectionError):
        send_for_ever(client)


def test_bytes_are_bounded(server, bounds):
    bounds(max_bytes=5_000_000)
    with refused(server) as client:
        client.sendall(bytes(4_000_000))
        assert server.connections
        with pytest.raises(ConnectionError):
            send_for_ever(client)


def test_a_client_that_takes_nothing_is_cut_off(server, bounds):
    bounds(silence_seconds=0.05, stall_seconds=0.2)
    with server.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        client.recv(1)
        server.run(server.until_closed())


# a server that ends


def test_a_silent_client_does_not_keep_the_server(server, bounds):
    bounds(hurried_seconds=0.05)
    with refused(server):
        server.run(server.stop())


def test_an_open_rpc_connection_does_not_keep_the_server(bounds):
    bounds(hurried_seconds=0.05)
    with EchoServer() as server, Frames(server) as idle, Frames(server) as asked, Frames(server) as broken:
        asked.call(1, b"x")
        asked.answer(1)
        broken.send(frames.frame(frames.PING, 0, 1, bytes(8)))
        assert broken.goaway() == frames.Code.PROTOCOL_ERROR
        idle.wait_for(frames.SETTINGS)
        assert server.run(server.open_connections()) == 3
        server.run(server._stop())
        assert server.run(server.open_connections()) == 0
