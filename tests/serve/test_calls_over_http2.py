"""The gRPC layer against the real grpcio client."""

from __future__ import annotations

import asyncio
import gzip
import struct
import threading
import zlib
from concurrent import futures

import grpc
import pytest

from glowplug.serve.rpc.http2 import frames
from glowplug.serve.rpc.wire import percent_encoded, read_timeout
from glowplug.serve.wire.limits import Limits
from tests.serve.rpc_server import HEAD, EchoServer, Frames, message

UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@pytest.fixture(scope="module")
def server():
    with EchoServer() as started:
        yield started


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.address, options=UNLIMITED) as made:
        yield made


def code(call, *arguments, **options):
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, timeout=options.pop("timeout", 20), **options)
    return caught.value.code().name, caught.value.details()


@pytest.mark.parametrize("size", [0, 1, 16379, 16380, 65531, 65532, 100_000, 5_000_000])
def test_messages_of_any_size(channel, size):
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert channel.unary_unary("/test/Echo")(data, timeout=20) == data


def test_hundreds_of_megabytes_both_ways(server, channel):
    data = b"0123456789abcdef" * (300 << 16)  # 300 MiB
    assert channel.unary_unary("/test/Echo")(data, timeout=120) == data
    assert server.run(server.held_bytes()) == 0


@pytest.mark.parametrize("kind", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compression_both_ways(server, kind):
    with grpc.insecure_channel(server.address, options=UNLIMITED, compression=kind) as channel:
        for data in (b"short", b"long" * 10_000, b"longer" * 1_000_000):
            assert channel.unary_unary("/test/Echo")(data, timeout=20) == data


def test_a_large_answer_to_a_compressed_request_is_compressed(server):
    head = [*HEAD, ("grpc-encoding", "gzip"), ("grpc-accept-encoding", "identity, gzip")]
    packed = gzip.compress(b"z" * 100_000)
    with Frames(server) as client:
        client.send(client.head(1, head))
        client.send(frames.frame(frames.DATA, frames.END_STREAM, 1, b"\1" + message(packed)[1:]))
        first, data, last = client.answer(1)
    assert first["grpc-encoding"] == "gzip"
    assert data[0] == 1
    assert gzip.decompress(data[5:]) == b"z" * 100_000
    assert last["grpc-status"] == "0"


def test_a_bomb_is_not_unpacked():
    with EchoServer(Limits(request_bytes=1 << 20, tensor_bytes=1 << 20)) as small, Frames(small) as client:
        client.send(client.head(1, [*HEAD, ("grpc-encoding", "gzip")]))
        bomb = gzip.compress(bytes(50 << 20))
        client.send(frames.frame(frames.DATA, frames.END_STREAM, 1, b"\1" + message(bomb)[1:]))
        assert client.answer(1)[2]["grpc-status"] == "8"


@pytest.mark.parametrize(
    ("encoding", "flag", "data", "status"),
    [
        ("snappy", 1, b"x", "12"),
        ("identity", 1, b"x", "13"),
        ("gzip", 1, b"not gzip", "13"),
        ("gzip", 1, b"\x1f\x8b\x08\0\0\0\0\0\0\3", "13"),
        ("gzip", 1, gzip.compress(b"one", mtime=0) * 2, "13"),
        ("gzip", 1, gzip.compress(b"one", mtime=0) + b"behind", "13"),
        ("deflate", 1, zlib.compress(b"one") + b"behind", "13"),
        ("gzip", 1, gzip.compress(b"one", mtime=0), "0"),
        ("gzip", 0, b"plain", "0"),
    ],
)
def test_encodings(server, encoding, flag, data, status):
    with Frames(server) as client:
        client.send(client.head(1, [*HEAD, ("grpc-encoding", encoding)]))
        client.send(frames.frame(frames.DATA, frames.END_STREAM, 1, bytes([flag]) + message(data)[1:]))
        first, _, last = client.answer(1)
    assert last["grpc-status"] == status
    assert first["grpc-accept-encoding"] == "identity, deflate, gzip"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"content-type": "application/json"}, "415"),
        ({"content-type": "application/grpcx"}, "415"),
        ({":method": "GET"}, "405"),
        ({"te": ""}, "200"),
        ({"content-type": "application/grpc+proto"}, "200"),
        ({"content-type": "application/grpc; charset=utf-8"}, "200"),
    ],
)
def test_what_is_no_call(server, change, status):
    fields = [(key, change.get(key, value)) for key, value in HEAD if change.get(key, value)]
    with Frames(server) as client:
        client.send(client.head(1, fields) + frames.frame(frames.DATA, frames.END_STREAM, 1, message(b"x")))
        assert client.answer(1)[0][":status"] == status


@pytest.mark.parametrize("sent", [[], [message(b"a"), message(b"b")], [message(b"abc")[:6]], [b"\0\0"]])
def test_other_than_one_message(server, sent):
    with Frames(server) as client:
        client.send(client.head(1) + b"".join(frames.frame(frames.DATA, 0, 1, one) for one in sent))
        client.send(frames.frame(frames.DATA, frames.END_STREAM, 1))
        assert client.answer(1)[2]["grpc-status"] in ("12", "13")


def test_a_message_that_is_too_large_is_not_received():
    with EchoServer(Limits(request_bytes=1 << 20, tensor_bytes=1 << 20)) as small:
        with Frames(small) as client:  # refused by its prefix
            client.send(client.head(1) + frames.frame(frames.DATA, 0, 1, b"\0\x7f\xff\xff\xff"))
            assert client.answer(1)[2]["grpc-status"] == "8"
        with Frames(small) as client:  # many that are not finished
            client.send(client.head(1) + client.head(3) + client.head(5) + client.head(7))
            for part in [b"\0\0\x1f\xff\xff", *[bytes(65000)] * 30]:
                for number in (1, 3, 5, 7):
                    client.send(frames.frame(frames.DATA, 0, number, part))
            trailers = client.decoder.decode(client.wait_for(frames.HEADERS)[3])
            assert ("grpc-status", "8") in trailers
        with grpc.insecure_channel(small.address, options=UNLIMITED) as channel:
            name, text = code(channel.unary_unary("/test/Echo"), bytes(3 << 20))
            assert name == "RESOURCE_EXHAUSTED"
            assert "larger" in text
            assert len(channel.unary_unary("/test/Echo")(bytes(2 << 20), timeout=20)) == 2 << 20


def test_messages_that_never_end_do_not_keep_others_out_for_good():
    small = Limits(request_bytes=1 << 16, tensor_bytes=1 << 15)
    held = b"\0" + struct.pack(">I", 60_000) + bytes(50_000)
    with EchoServer(small, patience_s=0.2) as server, Frames(server) as client, Frames(server) as other:
        for number in (1, 3):
            client.send(client.head(number) + frames.frame(frames.DATA, 0, number, held))
        for number in (1, 3):
            seen = client.wait_for(frames.HEADERS, number)
            assert b"did not come in time" in seen[3]
        assert server.run(server.held_bytes()) == 0
        whole = b"\0" + struct.pack(">I", 50_000) + bytes(50_000)
        other.send(other.head(1) + frames.frame(frames.DATA, 0, 1, whole[:30_000]))
        other.send(frames.frame(frames.DATA, frames.END_STREAM, 1, whole[30_000:]))
        assert other.answer(1)[2]["grpc-status"] == "0"


def test_a_message_that_comes_slowly_and_ends_is_answered():
    with EchoServer(patience_s=0.5) as server, Frames(server) as client:
        client.send(client.head(1))
        part = bytes(1 << 16)
        size = 40 * len(part)
        client.send(frames.frame(frames.DATA, 0, 1, b"\0" + struct.pack(">I", size)))
        for _ in range(40):
            client.send(frames.frame(frames.DATA, 0, 1, part))
        client.send(frames.frame(frames.DATA, frames.END_STREAM, 1))
        client.send(frames.window_update(0, 1 << 24) + frames.window_update(1, 1 << 24))
        assert client.answer(1)[2]["grpc-status"] == "0"


def test_errors_keep_their_text(channel):
    text = 'ümläut 100 % \n\t\x7f 漢字 "quoted" ' + "x" * 100
    assert code(channel.unary_unary("/test/Fail"), text.encode()) == ("FAILED_PRECONDITION", text)
    assert code(channel.unary_unary("/test/None"), b"")[0] == "UNIMPLEMENTED"


def test_a_very_long_text_is_cut_between_characters():
    cut = percent_encoded("漢" * 5000)
    assert 4000 < len(cut) <= 4096
    assert len(cut) % 3 == 0


def test_a_deadline_stops_the_handler(server, channel):
    assert code(channel.unary_unary("/test/Wait"), b"3600", timeout=0.5)[0] == "DEADLINE_EXCEEDED"
    assert server.waiting.acquire(timeout=20)
    assert server.cancelled.acquire(timeout=20)


def test_the_server_keeps_the_deadline_itself(server):
    with Frames(server) as client:
        client.send(client.head(1, [*HEAD, ("grpc-timeout", "50m")], path="/test/Wait"))
        assert client.answer(1)[2]["grpc-status"] == "4"  # the message never came


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"1H", 3600), (b"2M", 120), (b"3S", 3), (b"4m", 0.004), (b"5u", 5e-6), (b"6n", 6e-9)]
    + [(wrong, None) for wrong in (b"", b"1", b"S", b"-1S", b"123456789S", b"1x", b"1.5S")],
)
def test_timeouts(text, seconds):
    assert read_timeout(text) == (None if seconds is None else pytest.approx(seconds))


def test_cancelling_stops_the_handler(server, channel):
    call = channel.unary_unary("/test/Wait").future(b"3600")
    assert server.waiting.acquire(timeout=20)
    call.cancel()
    assert server.cancelled.acquire(timeout=20)


def test_a_client_that_goes_away_stops_the_handler(server):
    with Frames(server) as client:
        client.call(1, b"3600", "/test/Wait")
        assert server.waiting.acquire(timeout=20)
    assert server.cancelled.acquire(timeout=20)


def test_more_streams_on_one_channel_than_run_at_once(server):
    async def ask() -> list[bytes]:
        async with grpc.aio.insecure_channel(server.address) as channel:
            call = channel.unary_unary("/test/Echo")
            return await asyncio.gather(*(call(str(number).encode(), timeout=60) for number in range(3000)))

    assert asyncio.run(ask()) == [str(number).encode() for number in range(3000)]


def test_two_hundred_channels(server):
    channels = [
        grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(200)
    ]
    calls = [
        channel.unary_unary("/test/Echo").future(str(n).encode(), timeout=60) for n, channel in enumerate(channels)
    ]
    assert [call.result() for call in calls] == [str(number).encode() for number in range(200)]
    assert server.run(server.open_connections()) >= 200
    for channel in channels:
        channel.close()


def test_messages_in_both_directions_of_one_stream(channel):
    go_on = threading.Event()

    def ask():
        yield b"first"
        assert go_on.wait(20)
        yield from (b"x" * (1 << size) for size in range(20))

    answers = channel.stream_stream("/test/Chat")(ask(), timeout=60)
    assert next(answers) == b"first"
    go_on.set()
    assert [len(answer) for answer in answers] == [1 << size for size in range(20)]


def test_a_stream_that_nobody_reads_does_not_fill_the_memory(server):
    with Frames(server, {frames.INITIAL_WINDOW_SIZE: 0}) as client:
        client.send(client.head(1, path="/test/Chat") + frames.frame(frames.DATA, 0, 1, message(b"x")))
        assert (":status", "200") in client.decoder.decode(client.wait_for(frames.HEADERS, 1)[3])
        for _ in range(40):
            client.send(frames.frame(frames.DATA, 0, 1, message(b"x") * 100))
        client.send(frames.window_update(1, 6))  # the message that is half out comes before the status
        assert client.wait_for(frames.DATA, 1)[3] == message(b"x")
        assert ("grpc-status", "8") in client.decoder.decode(client.wait_for(frames.HEADERS, 1)[3])


def test_drain_finishes_calls_and_refuses_new_ones():
    with EchoServer() as server, grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary("/test/Wait").future(b"0.5", timeout=20)
        watch = channel.stream_stream("/test/Chat")(iter(threading.Event().wait, True), timeout=20)
        assert server.waiting.acquire(timeout=20)
        server.run(server._stop())
        assert call.result() == b"waited"
        assert watch.code() == grpc.StatusCode.UNAVAILABLE
        assert server.run(server.open_connections()) == 0


def test_drain_says_the_last_stream_a_round_trip_later():
    with EchoServer() as server, Frames(server) as client:
        client.call(1, b"", "/test/Wait")
        assert server.waiting.acquire(timeout=20)
        with futures.ThreadPoolExecutor(1) as pool:
            stopping = pool.submit(server.run, server._stop())
            assert client.wait_for(frames.GOAWAY)[3] == b"\x7f\xff\xff\xff" + bytes(4)
            ping = client.wait_for(frames.PING)
            client.call(3, b"in time")
            client.send(frames.frame(frames.PING, frames.ACK, 0, ping[3]))
            client.call(5, b"too late")
            assert client.wait_for(frames.DATA, 3)[3] == message(b"in time")
            assert client.wait_for(frames.GOAWAY)[3] == b"\0\0\0\3" + bytes(4)
            server.loop.call_soon_threadsafe(server.let_go.set)
            assert client.wait_for(frames.DATA, 1)[3] == message(b"waited")
            assert client.wait_for(frames.HEADERS, 1)
            assert client.read() is None
            stopping.result(20)


def test_who_asks(server, channel, socket_folder):
    channel.unary_unary("/test/Echo")(b"", timeout=20)
    assert server.peers[-1].startswith("ipv4:127.0.0.1:")
    with EchoServer(unix=str(socket_folder / "s")) as local, grpc.insecure_channel(local.address) as other:
        other.unary_unary("/test/Echo")(b"", timeout=20)
        assert local.peers == ["unix:"]


def test_a_repeated_head_is_read_once(server):
    with Frames(server) as client:
        for number in range(1, 9, 2):
            client.call(number, b"x")
            client.answer(number)
        connection = next(iter(server.rpc._connections))
        assert len(connection._headers._remembered) == 1
