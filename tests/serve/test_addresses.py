"""On which addresses a port is listened on: those that a user of uvicorn or of TensorFlow Serving expects."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import socket
from contextlib import asynccontextmanager, closing

import pytest

from glowplug.core.errors import UsageError
from glowplug.serve import addresses
from glowplug.serve.listening import Listener
from glowplug.serve.log import Log
from tests.serve.server import free_port


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


class Greeting(asyncio.Protocol):
    def connection_made(self, transport):
        transport.write(b"hello")
        transport.close()


@asynccontextmanager
async def listening(host, port):
    stream = io.StringIO()
    listener = Listener(Greeting, Log(as_json=True, access=False, stream=stream), "none")
    try:
        await listener.open_port(host, port)
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        listener.close()


async def answers(address, port):
    try:
        reader, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    return await reader.read() == b"hello"


def run(coroutine):
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(coroutine, 20))


@needs_ipv6
@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("::", (True, True)),
        ("[::]", (True, True)),
        ("", (True, True)),
        ("0.0.0.0", (True, False)),
        ("127.0.0.1", (True, False)),
        ("::1", (False, True)),
        ("[::1]", (False, True)),
    ],
)
def test_who_can_connect(host, expected):
    async def scenario():
        port = free_port()
        async with listening(host, port) as events:
            assert (await answers("127.0.0.1", port), await answers("::1", port)) == expected
            assert events() == []

    run(scenario())


@needs_ipv6
def test_a_name_with_several_addresses(monkeypatch):
    async def resolve(host, port):
        return [(socket.AF_INET6, ("::1", port)), (socket.AF_INET, ("127.0.0.1", port))]

    async def both():
        port = free_port()
        async with listening("both.example", port):
            assert await answers("127.0.0.1", port)
            assert await answers("::1", port)

    monkeypatch.setattr(addresses, "_resolve", resolve)
    run(both())


def test_addresses_of_a_name_that_this_machine_does_not_have_are_left_out(monkeypatch):
    async def resolve(host, port):
        return [(socket.AF_INET, ("192.0.2.1", port)), (socket.AF_INET, ("127.0.0.1", port))]

    async def scenario():
        port = free_port()
        async with listening("both.example", port):
            assert await answers("127.0.0.1", port)

    monkeypatch.setattr(addresses, "_resolve", resolve)
    run(scenario())


@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_a_machine_without_ipv6_listens_on_ipv4_and_says_so(monkeypatch, code):
    bound = addresses._bound

    def without(family, address):
        if family == socket.AF_INET6:
            raise OSError(code, "there is no IPv6")
        return bound(family, address)

    async def scenario():
        port = free_port()
        async with listening("::", port) as events:
            assert await answers("127.0.0.1", port)
            assert [one["event"] for one in events()] == ["listening_without_ipv6"]

    monkeypatch.setattr(addresses, "_bound", without)
    run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::"])
def test_a_port_that_is_taken_is_said_in_one_line(host):
    async def scenario(port):
        with pytest.raises(UsageError, match="choose another port") as caught:
            async with listening(host, port):
                raise AssertionError("it listens")
        assert "\n" not in str(caught.value)

    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1" if host != "::" else "0.0.0.0", 0))
        other.listen()
        run(scenario(other.getsockname()[1]))


def test_one_address_that_is_taken_is_enough_to_refuse(monkeypatch):
    async def resolve(host, port):
        return [(socket.AF_INET, ("127.0.0.2", port)), (socket.AF_INET, ("127.0.0.1", port))]

    async def scenario(port):
        with pytest.raises(UsageError, match="choose another port"):
            async with listening("two.example", port):
                raise AssertionError("it listens")
        with closing(socket.socket()) as again:  # the other one was let go
            again.bind(("127.0.0.2", port))

    monkeypatch.setattr(addresses, "_resolve", resolve)
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        run(scenario(other.getsockname()[1]))


@pytest.mark.parametrize(("host", "remedy"), [("192.0.2.1", "address of this machine"), ("a..b", "address of this")])
def test_a_host_that_is_none_of_ours(host, remedy):
    async def scenario():
        with pytest.raises(UsageError, match=remedy):
            async with listening(host, free_port()):
                raise AssertionError("it listens")

    run(scenario())
