"""Connections that receive much read one after the other."""

from __future__ import annotations

import asyncio
import itertools
import sys

import grpc
import uvloop

from glowplug.serve.rest.exchange import Budget, HttpSettings, Request, Response
from glowplug.serve.rest.http import Connection
from glowplug.serve.turns import TURN_BYTES, Turns
from tests.serve.rpc_server import EchoServer

BODY = bytes(16 << 20)
LARGEST_READ = 1 << 18  # what the event loop reads at a time is a little less


class Counting(Turns):
    """Counts the turns that were waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def wait(self, read):
        self.waits += 1
        super().wait(read)


def run(coroutine):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def test_few_have_their_turn_in_one_round_and_all_have_it_in_order():
    async def rounds():
        turns, seen, ended = Turns(), [], asyncio.Event()
        for number in range(5):
            turns.wait(lambda number=number: seen.append(number))
        turns.wait(ended.set)
        found = []
        while not ended.is_set():
            await asyncio.sleep(0)
            found.append(list(seen))
        return found

    found = run(rounds())
    assert found[-1] == [0, 1, 2, 3, 4]
    assert all(len(after) - len(before) <= 2 for before, after in itertools.pairwise(found))


async def served(settings, clients):
    """Have bodies sent by several clients at once; return what each was answered."""

    async def answer(request: Request) -> Response:
        return Response(200, str(len(request.body)).encode())

    async def ask(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(len(str(len(BODY)))) if b" 200 " in head else b""
        writer.close()
        return head[9:12], body

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answer, settings, set()), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await asyncio.wait_for(asyncio.gather(*(ask(port) for _ in range(clients))), 60)
    server.close()
    return found


def test_a_large_body_is_received_in_turns():
    turns = Counting()
    settings = HttpSettings(len(BODY), Budget(4 * len(BODY)), turns=turns)
    found = run(served(settings, 3))
    assert found == [(b"200", str(len(BODY)).encode())] * 3
    assert turns.waits >= 3 * len(BODY) // (TURN_BYTES + LARGEST_READ)


def test_what_is_dropped_is_dropped_in_turns():
    turns = Counting()
    settings = HttpSettings(1000, Budget(1000), turns=turns)
    found = run(served(settings, 2))
    assert found == [(b"413", b"")] * 2
    assert turns.waits > 2


def test_a_body_for_which_there_is_no_room_is_refused_by_its_length():
    async def refused():
        settings = HttpSettings(1000, budget, turns=Turns())
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(None, settings, set()), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\n")  # and nothing of the body
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        writer.close()
        server.close()
        return head[9:12]

    budget = Budget(1000)
    assert budget.take(500)
    assert run(refused()) == b"503"


def test_a_large_message_is_received_in_turns(monkeypatch):
    waits, wait = [], Turns.wait
    monkeypatch.setattr(Turns, "wait", lambda self, read: (waits.append(read), wait(self, read)))
    with EchoServer() as server:
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(server.address, options=options) as channel:
            assert channel.unary_unary("/test/Echo")(BODY, timeout=60) == BODY
    assert len(waits) >= len(BODY) // (TURN_BYTES + LARGEST_READ)


async def sent(data, settings, until):
    """Send data to a connection whose requests are never answered; return it once `until` holds of it."""

    async def never(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    loop, connections = asyncio.get_running_loop(), set()
    server = await loop.create_server(lambda: Connection(never, settings, connections), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(data)
    async with asyncio.timeout(60):
        while not (connections and until(next(iter(connections)))):
            await asyncio.sleep(0)
    return next(iter(connections)), writer


def test_a_body_in_tiny_chunks_takes_no_more_room_than_its_bytes():
    async def room():
        size, body = 2, 1 << 20
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        data = head + b"%x\r\nab\r\n" % size * (body // size)
        settings = HttpSettings(body, Budget(body), turns=Turns())
        connection, writer = await sent(data, settings, lambda one: one._parser._body_bytes == body)
        found = sum(map(sys.getsizeof, connection._parser._body))
        writer.close()
        return found / body

    assert run(room()) < 1.5


def test_of_thousands_of_requests_in_one_packet_few_are_held_at_a_time():
    async def held():
        request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        settings = HttpSettings(1000, Budget(1000), turns=Turns())
        connection, writer = await sent(request * 5000, settings, lambda one: one._waiting)
        for _ in range(100):
            await asyncio.sleep(0)
        found = len(connection._waiting)
        writer.close()
        return found

    assert run(held()) < 1000


def test_requests_in_one_packet_are_all_answered_in_order():
    async def answers():
        async def answer(request: Request) -> Response:
            return Response(200, request.path.encode())

        settings, count = HttpSettings(1000, Budget(1000), turns=Turns()), 3000
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(answer, settings, set()), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"".join(b"GET /%04d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(count)))
        found = []
        async with asyncio.timeout(60):
            for _ in range(count):
                await reader.readuntil(b"\r\n\r\n")
                found.append(int((await reader.readexactly(5))[1:]))
        writer.close()
        server.close()
        return found

    assert run(answers()) == list(range(3000))


def test_a_connection_goes_on_after_an_answer_that_was_taken_slowly():
    async def answers():
        async def answer(request: Request) -> Response:
            return Response(200, BODY)

        settings = HttpSettings(1000, Budget(1000), turns=Turns())
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(answer, settings, set()), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        found = []
        async with asyncio.timeout(60):
            for _ in range(3):
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await reader.readuntil(b"\r\n\r\n")
                found.append(len(await reader.readexactly(len(BODY))))
        writer.close()
        server.close()
        return found

    assert run(answers()) == [len(BODY)] * 3


async def half_asked(settings, head):
    """Connect, send the beginning of a request once the timer has run for a moment; return what is needed to go on."""

    async def answer(request: Request) -> Response:
        return Response(200, str(len(request.body)).encode())

    made: list[Connection] = []

    def factory() -> Connection:
        made.append(Connection(answer, settings, set()))
        return made[0]

    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    while not made or made[0]._timer is None:
        await asyncio.sleep(0)
    idle_until = made[0]._timer.when()
    await asyncio.sleep(0.01)
    writer.write(head)
    while not made[0]._parser.has_begun:
        await asyncio.sleep(0)
    return made[0], idle_until, reader, writer


def test_the_clock_of_a_request_begins_with_it():
    async def scenario():
        settings = HttpSettings(1 << 20, Budget(1 << 20))
        connection, idle_until, reader, writer = await half_asked(settings, b"POST / HTTP/1.1\r\nHost: x\r\n")
        assert connection._timer.when() > idle_until  # what was left of the wait for it is not all that it has
        writer.write(b"Content-Length: 2\r\n\r\nab")
        assert (await reader.readuntil(b"\r\n\r\n2")).startswith(b"HTTP/1.1 200 ")
        writer.close()

    run(asyncio.wait_for(scenario(), 60))


def test_a_slow_body_has_time_as_long_as_it_comes_and_is_told_when_it_does_not():
    async def scenario():
        settings = HttpSettings(1 << 23, Budget(1 << 23))
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
        connection, _, reader, writer = await half_asked(settings, head)
        for _ in range(3):
            before = connection._received
            writer.write(bytes(1_100_000))
            while connection._received < before + 1_100_000:
                await asyncio.sleep(0)
            connection._time_is_up()
        assert connection._refusal is None
        writer.write(bytes(10))
        while connection._parser._body_bytes < 3_300_010:
            await asyncio.sleep(0)
        connection._time_is_up()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"did not come in time" in answer
        assert settings.bodies.has(1 << 23)
        writer.close()

    run(asyncio.wait_for(scenario(), 60))
