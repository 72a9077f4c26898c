"""The HTTP/2 layer against bare frames: good ones in unusual forms, and bad ones of every kind."""

from __future__ import annotations

import contextlib
import itertools
import struct

import grpc
import hpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glowplug.serve.rpc.http2 import frames
from glowplug.serve.rpc.http2.frames import Code, frame
from glowplug.serve.rpc.http2.headers import HeaderReader, literal
from tests.serve.rpc_server import HEAD, EchoServer, Frames, message

BLOCK = hpack.Encoder().encode(HEAD)  # its first use on a connection is good on any connection
END = frames.END_STREAM | frames.END_HEADERS
WAIT = hpack.Encoder().encode([(k, "/test/Wait" if k == ":path" else v) for k, v in HEAD])


@pytest.fixture(scope="module")
def server():
    with EchoServer() as started:
        yield started


def still_answers(server: EchoServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        assert channel.unary_unary("/test/Echo")(b"still there", timeout=20) == b"still there"


def fields(*changes: tuple[str, str], without: str = "", more: tuple[tuple[str, str], ...] = ()) -> bytes:
    """Return a block of the usual head with other values, without a field, or with more behind."""
    changed = dict(changes)
    kept = [(key, changed.get(key, value)) for key, value in HEAD if key != without]
    return hpack.Encoder().encode([*kept, *more])


def head(block: bytes, number: int = 1, flags: int = frames.END_HEADERS) -> bytes:
    return frame(frames.HEADERS, flags, number, block)


def wait(number: int) -> bytes:
    """Return the head of one of many calls: after the first, every field is in the table."""
    return head(WAIT if number == 1 else b"\x83\x86\xc1\xc0\xbf\xbe", number)


# A head that leaves the table as it is: the same bytes for any number.
WAIT_PLAIN = b"".join(
    b"\0" + bytes([len(key)]) + key.encode() + bytes([len(value)]) + value.encode()
    for key, value in [(k, "/test/Wait" if k == ":path" else v) for k, v in HEAD]
)


def many_fields(number: int, count: int) -> bytes:
    """Return a head with that many fields more, of four bytes and five, unlike that of any other number."""
    return head(WAIT_PLAIN + b"\0\x01n\x05%05d" % number + b"\0\x01a\x01b" * count, number)


def long_field(number: int) -> bytes:
    """Return a field of 12,000 bytes, another one for each number."""
    return b"\0\x01a\x7f\xe1\x5c" + b"%012000d" % number


def in_pieces(number: int) -> bytes:
    """Return a head in thirty frames."""
    last = frame(frames.CONTINUATION, frames.END_HEADERS, number, WAIT_PLAIN)
    return head(b"", number, 0) + frame(frames.CONTINUATION, 0, number) * 29 + last


# forms that are allowed


def test_one_call_after_the_other(server):
    with Frames(server) as client:
        for number in (1, 3, 5, 101):
            client.call(number, b"x" * number)
            first, data, last = client.answer(number)
            assert first[":status"] == "200"
            assert first["content-type"] == "application/grpc"
            assert data == message(b"x" * number)
            assert last == {"grpc-status": "0"}


def test_byte_by_byte(server):
    with Frames(server) as client:
        client.socket.setsockopt(6, 1, 1)
        for byte in client.head(1) + frame(frames.DATA, frames.END_STREAM, 1, message(b"slow")):
            client.send(bytes([byte]))
        assert client.answer(1)[1] == message(b"slow")


def test_padding_priority_and_continuation(server):
    content = b"\x05" + b"\0\0\0\0\x10" + BLOCK[:10] + bytes(5)
    with Frames(server) as client:
        client.send(
            frame(frames.HEADERS, frames.PADDED | frames.WITH_PRIORITY, 1, content)
            + frame(frames.CONTINUATION, 0, 1, BLOCK[10:20])
            + frame(frames.CONTINUATION, 0, 1)
            + frame(frames.CONTINUATION, frames.END_HEADERS, 1, BLOCK[20:])
            + frame(frames.DATA, frames.PADDED, 1, b"\x03" + message(b"abcdef")[:7] + bytes(3))
            + frame(frames.PRIORITY, 0, 1, b"\0\0\0\0\x10")
            + frame(0x77, 0xFF, 1, b"unknown")
            + frame(frames.DATA, frames.PADDED | frames.END_STREAM, 1, b"\xff" + message(b"abcdef")[7:] + bytes(255))
        )
        assert client.answer(1)[1] == message(b"abcdef")


def test_a_request_that_ends_with_trailers(server):
    with Frames(server) as client:
        client.send(client.head(1) + frame(frames.DATA, 0, 1, message(b"x")))
        client.send(frame(frames.HEADERS, END, 1, client.encoder.encode([("x-checksum", "1")])))
        assert client.answer(1)[1] == message(b"x")


def test_many_streams_at_once_are_answered_as_they_come(server):
    with Frames(server) as client:
        client.send(head(WAIT) + frame(frames.DATA, frames.END_STREAM, 1, message(b"60")))
        client.call(3, b"overtakes")
        assert client.answer(3)[1] == message(b"overtakes")


def test_pings_and_settings_are_acknowledged(server):
    with Frames(server) as client:
        client.wait_for(frames.SETTINGS)
        assert client.wait_for(frames.SETTINGS)[1] == frames.ACK
        client.send(frame(frames.PING, 0, 0, b"12345678"))
        assert client.wait_for(frames.PING) == (frames.PING, frames.ACK, 0, b"12345678")


def test_answers_stay_within_the_windows_and_the_frame_size(server):
    with Frames(server, {frames.INITIAL_WINDOW_SIZE: 10}) as client:
        client.call(1, b"70000", "/test/Zeros")
        client.wait_for(frames.HEADERS, 1)
        sizes = [len(client.wait_for(frames.DATA, 1)[3]), len(client.wait_for(frames.DATA, 1)[3])]
        assert sizes == [5, 5]
        client.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 110}))
        assert len(client.wait_for(frames.DATA, 1)[3]) == 100
        client.send(frames.window_update(1, 100_000))  # now the window of the connection is the smaller one
        seen = 110
        while seen < frames.FIRST_WINDOW:
            part = client.wait_for(frames.DATA, 1)[3]
            assert len(part) <= frames.SMALLEST_MAX_FRAME
            seen += len(part)
        assert seen == frames.FIRST_WINDOW
        client.call(3, b"9", "/test/Zeros")
        client.wait_for(frames.HEADERS, 3)
        client.send(frames.window_update(0, 100_000))
        while seen < 70_005:
            seen += len(client.wait_for(frames.DATA, 1)[3])
        assert client.wait_for(frames.HEADERS, 1)[1] & frames.END_STREAM
        assert client.wait_for(frames.DATA, 3)[3] == message(bytes(9))


def test_a_peer_with_large_windows_gets_everything_without_another_word(server):
    with Frames(server, {frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW}) as client:  # as nginx and Envoy do
        client.send(frames.window_update(0, frames.MAX_WINDOW - frames.FIRST_WINDOW))
        client.call(1, b"5000000", "/test/Zeros")
        assert client.answer(1)[1] == message(bytes(5_000_000))


def test_a_window_that_shrinks_below_zero(server):
    with Frames(server, {frames.INITIAL_WINDOW_SIZE: 1000}) as client:
        client.call(1, b"2000", "/test/Zeros")
        client.wait_for(frames.DATA, 1)
        client.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}) + frames.window_update(1, 1005))
        assert len(client.wait_for(frames.DATA, 1)[3]) == 5
        client.send(frames.window_update(1, 1000))
        assert len(client.wait_for(frames.DATA, 1)[3]) == 1000
        assert client.wait_for(frames.HEADERS, 1)[1] & frames.END_STREAM


def test_a_peer_without_a_table_is_told_that_it_is_off(server):
    with Frames(server, {frames.HEADER_TABLE_SIZE: 0}) as client:
        for number in (1, 3):
            client.call(number, b"x")
            assert client.wait_for(frames.HEADERS, number)[3].startswith(b"\x20\x88")
            client.wait_for(frames.HEADERS, number)


def test_an_early_refusal_ignores_what_still_comes(server):
    with Frames(server) as client:
        client.send(client.head(1, path="/test/None") + frame(frames.DATA, 0, 1, bytes(1000)))
        assert client.answer(1)[2]["grpc-status"] == "12"
        assert client.wait_for(frames.RST_STREAM)[3] == struct.pack(">I", Code.NO_ERROR)
        client.send(frame(frames.DATA, 0, 1, bytes(1000)))
        client.send(frame(frames.HEADERS, END, 1, client.encoder.encode([("x-checksum", "1")])))
        client.call(3, b"next")
        assert client.answer(3)[1] == message(b"next")


# forms that are not


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (Code.PROTOCOL_ERROR, frame(frames.DATA, 0, 0, b"x")),
        (Code.PROTOCOL_ERROR, frame(frames.DATA, 0, 1, b"x")),  # idle
        (Code.PROTOCOL_ERROR, frame(frames.HEADERS, END, 0, BLOCK)),
        (Code.PROTOCOL_ERROR, frame(frames.HEADERS, END, 2, BLOCK)),
        (Code.PROTOCOL_ERROR, head(WAIT, 5) + frame(frames.HEADERS, END, 3, b"")),  # numbers only grow
        (Code.PROTOCOL_ERROR, head(WAIT, 3) + head(b"\x83\x86\xc1\xc0\xbf\xbe", 1)),
        (Code.STREAM_CLOSED, head(WAIT, 1, END) + frame(frames.HEADERS, END, 1, b"")),
        (Code.STREAM_CLOSED, head(WAIT, 1, END) + head(b"\x83\x86\xc1\xc0\xbf\xbe", 1)),  # a second head
        (Code.STREAM_CLOSED, head(WAIT) + frames.reset(1, Code.CANCEL) + head(b"\x83\x86\xc1\xc0\xbf\xbe", 1)),
        (Code.PROTOCOL_ERROR, head(fields((":path", "/none"))) + frame(frames.DATA, frames.PADDED, 1, b"\x09abc")),
        (Code.PROTOCOL_ERROR, head(BLOCK[:5], 1, 0) + frame(frames.PING, 0, 0, bytes(8))),
        (Code.PROTOCOL_ERROR, head(BLOCK[:5], 1, 0) + frame(frames.CONTINUATION, 4, 3, BLOCK[5:])),
        (Code.PROTOCOL_ERROR, head(BLOCK[:5], 1, 0) + frame(0x77, 0, 1, b"")),
        (Code.PROTOCOL_ERROR, frame(frames.CONTINUATION, 4, 1, BLOCK)),
        (Code.PROTOCOL_ERROR, frame(frames.HEADERS, END | frames.PADDED, 1, b"\xff" + BLOCK[:9])),
        (Code.FRAME_SIZE_ERROR, frame(frames.HEADERS, END | frames.PADDED, 1)),
        (Code.FRAME_SIZE_ERROR, frame(frames.HEADERS, END | frames.WITH_PRIORITY, 1, b"\0\0")),
        (Code.PROTOCOL_ERROR, head(WAIT) + frame(frames.DATA, frames.PADDED, 1, b"\x09abc")),
        (Code.COMPRESSION_ERROR, head(b"\xff\xff\xff\xff\x0f")),
        (Code.COMPRESSION_ERROR, head(b"\x00\x7f")),
        (Code.COMPRESSION_ERROR, head(b"\x3f\xe1\xff\x03" + BLOCK)),  # a larger table than we allow
        (Code.COMPRESSION_ERROR, head(b"\x20" * 3 + BLOCK)),
        (Code.COMPRESSION_ERROR, head(BLOCK + b"\x20")),
        (Code.COMPRESSION_ERROR, head(b"\x40\x01a\x7f\x81\x1e" + b"b" * 4000 + b"\xbe" * 200)),  # a bomb
        (Code.PROTOCOL_ERROR, frame(frames.PRIORITY, 0, 0, bytes(5))),
        (Code.FRAME_SIZE_ERROR, frame(frames.PRIORITY, 0, 1, bytes(4))),  # idle
        (Code.PROTOCOL_ERROR, frame(frames.RST_STREAM, 0, 1, bytes(4))),  # idle
        (Code.PROTOCOL_ERROR, frame(frames.RST_STREAM, 0, 0, bytes(4))),
        (Code.FRAME_SIZE_ERROR, head(WAIT) + frame(frames.RST_STREAM, 0, 1, bytes(3))),
        (Code.PROTOCOL_ERROR, frame(frames.SETTINGS, 0, 1)),
        (Code.FRAME_SIZE_ERROR, frame(frames.SETTINGS, 0, 0, bytes(5))),
        (Code.FRAME_SIZE_ERROR, frame(frames.SETTINGS, frames.ACK, 0, bytes(6))),
        (Code.PROTOCOL_ERROR, frames.settings({frames.ENABLE_PUSH: 2})),
        (Code.PROTOCOL_ERROR, frames.settings({frames.MAX_FRAME_SIZE: 16383})),
        (Code.PROTOCOL_ERROR, frames.settings({frames.MAX_FRAME_SIZE: 1 << 24})),
        (Code.FLOW_CONTROL_ERROR, frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 31})),
        (
            Code.FLOW_CONTROL_ERROR,
            head(WAIT)
            + frames.window_update(1, (1 << 31) - 65536)
            + frames.settings({frames.INITIAL_WINDOW_SIZE: 99999}),
        ),
        (Code.PROTOCOL_ERROR, frame(frames.PUSH_PROMISE, 4, 1, bytes(4))),
        (Code.PROTOCOL_ERROR, frame(frames.PING, 0, 1, bytes(8))),
        (Code.FRAME_SIZE_ERROR, frame(frames.PING, 0, 0, bytes(7))),
        (Code.PROTOCOL_ERROR, frame(frames.GOAWAY, 0, 1, bytes(8))),
        (Code.FRAME_SIZE_ERROR, frame(frames.GOAWAY, 0, 0, bytes(7))),
        (Code.PROTOCOL_ERROR, frame(frames.WINDOW_UPDATE, 0, 1, b"\0\0\0\1")),  # idle
        (Code.PROTOCOL_ERROR, frames.window_update(0, 0)),
        (Code.FRAME_SIZE_ERROR, frame(frames.WINDOW_UPDATE, 0, 0, bytes(3))),
        (Code.FLOW_CONTROL_ERROR, frames.window_update(0, (1 << 31) - 1)),
        (Code.FRAME_SIZE_ERROR, frames.HEAD.pack((1 << 16) + 1 << 8, 0, 1)),
        # floods
        (Code.ENHANCE_YOUR_CALM, head(b"", 1, 0) + frame(frames.CONTINUATION, 0, 1) * 1000),
        (Code.ENHANCE_YOUR_CALM, head(b"", 1, 0) + frame(frames.CONTINUATION, 0, 1, bytes(16384)) * 3),
        (Code.ENHANCE_YOUR_CALM, frame(frames.PING, 0, 0, bytes(8)) * 20_000),
        (Code.ENHANCE_YOUR_CALM, frames.settings({frames.INITIAL_WINDOW_SIZE: 5}) * 20_000),
        (Code.ENHANCE_YOUR_CALM, head(WAIT) + frame(frames.DATA, 0, 1) * 20_000),
        (Code.ENHANCE_YOUR_CALM, head(WAIT) + frames.window_update(1, 1) * 20_000),
        (Code.ENHANCE_YOUR_CALM, frame(0x77, 0, 0) * 20_000),
        (Code.ENHANCE_YOUR_CALM, b"".join(wait(n) + frames.reset(n, Code.CANCEL) for n in range(1, 40_000, 2))),
        # floods of few frames that hold much
        (Code.ENHANCE_YOUR_CALM, frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 5) * 5000) * 3),
        (Code.ENHANCE_YOUR_CALM, frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 99, 5) * 5000) * 3),
        (Code.ENHANCE_YOUR_CALM, frame(0x77, 0, 0, bytes(1 << 16)) * 200),
        (Code.ENHANCE_YOUR_CALM, frame(frames.GOAWAY, 0, 0, bytes(1 << 16)) * 200),
        (Code.ENHANCE_YOUR_CALM, b"".join(many_fields(n, 400) for n in range(1, 101, 2))),
        (Code.ENHANCE_YOUR_CALM, b"".join(head(WAIT_PLAIN + long_field(n), n) for n in range(1, 101, 2))),
        (Code.ENHANCE_YOUR_CALM, b"".join(in_pieces(n) for n in range(1, 1001, 2))),
        (Code.ENHANCE_YOUR_CALM, head(WAIT) + frame(frames.DATA, 0, 1, b"x") * 20_000),
        (Code.ENHANCE_YOUR_CALM, head(fields((":path", "/none"))) + frame(frames.DATA, 0, 1, b"x") * 20_000),
    ],
)
def test_what_ends_the_connection(server, code, data):
    with Frames(server) as client:
        client.send(data)
        assert client.goaway() == code
    still_answers(server)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (Code.STREAM_CLOSED, head(WAIT, 1, END) + frame(frames.DATA, 0, 1, b"x")),
        (Code.PROTOCOL_ERROR, head(WAIT) + frames.window_update(1, 0)),
        (Code.FLOW_CONTROL_ERROR, head(WAIT) + frames.window_update(1, (1 << 31) - 1)),
        (Code.FRAME_SIZE_ERROR, head(WAIT) + frame(frames.PRIORITY, 0, 1, bytes(4))),
        (Code.PROTOCOL_ERROR, head(WAIT) + frame(frames.HEADERS, frames.END_HEADERS, 1, b"")),
        (Code.PROTOCOL_ERROR, head(WAIT) + frame(frames.HEADERS, END, 1, b"\x82")),  # a pseudo field in trailers
        (Code.PROTOCOL_ERROR, head(fields(without=":method"))),
        (Code.PROTOCOL_ERROR, head(fields(without=":scheme"))),
        (Code.PROTOCOL_ERROR, head(fields(without=":path"))),
        (Code.PROTOCOL_ERROR, head(fields((":path", "")))),
        (Code.PROTOCOL_ERROR, head(fields(more=((":method", "POST"),)))),
        (Code.PROTOCOL_ERROR, head(b"\x83" + BLOCK)),  # twice
        (Code.PROTOCOL_ERROR, head(b"\x88" + BLOCK)),  # a field of answers
        (Code.PROTOCOL_ERROR, head(BLOCK + b"\0\x01A\x01b")),
        (Code.PROTOCOL_ERROR, head(fields(more=(("connection", "close"),)))),
        (Code.PROTOCOL_ERROR, head(fields(("te", "gzip")))),
        *((Code.PROTOCOL_ERROR, head(BLOCK + literal(b"x", value))) for value in (b"a\0b", b"a\r\nb", b"\n")),
        *(
            (Code.PROTOCOL_ERROR, head(BLOCK + literal(name, b"v")))
            for name in (b"x y", b"a:b", b"a\0", b"\xc3\xa9", b"")
        ),
        (Code.PROTOCOL_ERROR, head(fields((":path", "/test/Echo\r\nx: y")))),
        *(
            (Code.PROTOCOL_ERROR, head(fields(more=(("content-length", one),))))
            for one in ("-1", "+5", "5, 5", "x", "")
        ),
        (Code.PROTOCOL_ERROR, head(WAIT) + frame(frames.HEADERS, END, 1, literal(b"x", b"a\nb"))),
        (
            Code.PROTOCOL_ERROR,
            head(fields(more=(("content-length", "7"),))) + frame(frames.DATA, frames.END_STREAM, 1, message(b"x")),
        ),
        (
            Code.REFUSED_STREAM,
            b"".join(wait(number) for number in range(1, 2 * 1024 + 2, 2)),
        ),
    ],
)
def test_what_ends_a_stream(server, code, data):
    with Frames(server) as client:
        client.send(data)
        assert client.wait_for(frames.RST_STREAM)[3] == struct.pack(">I", code)
        client.send(frame(frames.PING, 0, 0, b"12345678"))
        assert client.wait_for(frames.PING)[1] == frames.ACK
    still_answers(server)


def test_a_client_that_sends_on_learns_why_the_connection_ends(server):
    with Frames(server) as client:
        client.send(frame(frames.PING, 0, 1, bytes(8)) + frame(frames.DATA, 0, 1, bytes(16384)) * 3000)
        assert client.goaway() == Code.PROTOCOL_ERROR


def test_a_flood_of_heads_leaves_room_for_others():
    with EchoServer() as server:
        turn, turns = 0, []
        make = server.rpc._application.open_stream

        def tick():
            nonlocal turn
            turn += 1
            server.loop.call_soon(tick)

        def opened(connection, number, read):
            turns.append(turn)
            return make(connection, number, read)

        object.__setattr__(server.rpc._application, "open_stream", opened)
        server.loop.call_soon_threadsafe(tick)
        with Frames(server) as client:
            client.send(b"".join(many_fields(number, 50) for number in range(1, 2001, 2)))
            client.send(frame(frames.PING, 0, 0, b"all done"))
            assert client.wait_for(frames.PING)[3] == b"all done"
    assert len(turns) == 1000
    assert len(set(turns)) > 15  # 370 kB come in a few reads; a turn used to take all that had come


def test_a_peer_that_does_not_read_is_not_listened_to():
    with EchoServer() as server, Frames(server) as client:
        client.socket.settimeout(5)
        first = head(fields((":path", "/" + "\N{SNOWMAN}" * 70)), 1, END)
        others = (head(b"\x83\x86\xc1\xc0\xbf\xbe", number, END) for number in range(3, 800_000, 2))
        client.send(first)
        with contextlib.suppress(TimeoutError):  # the server has stopped reading
            for chunk in iter(lambda: b"".join(itertools.islice(others, 1000)), b""):
                client.send(chunk)
        still_answers(server)
        for connection in list(server.rpc._connections):  # the one that asks on has gone, or has nothing to wait for
            assert connection._transport.get_write_buffer_size() < 4 << 20


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"\x16\x03\x01\x02", b"PRI * HTTP/2.0\r\n\r\nXX"]
)
def test_what_is_not_http2(server, data):
    with Frames(server, greet=False) as client:
        client.send(data)
        assert client.goaway() == Code.PROTOCOL_ERROR


def test_the_first_frame_must_be_settings(server):
    with Frames(server, greet=False) as client:
        client.send(frames.PREFACE + frame(frames.PING, 0, 0, bytes(8)))
        assert client.goaway() == Code.PROTOCOL_ERROR


frame_bytes = st.builds(
    lambda kind, flags, number, payload, size: (
        struct.pack(">I", (len(payload) if size is None else size) << 8 | kind) + bytes([flags]) + number + payload
    ),
    st.integers(0, 10),
    st.integers(0, 255),
    st.sampled_from([b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\3", b"\0\0\0\5", b"\0\0\0\2", b"\xff\xff\xff\xff"]),
    st.one_of(st.binary(max_size=40), st.just(BLOCK), st.just(WAIT), st.just(message(b"x")), st.just(bytes(8))),
    st.none() | st.none() | st.none() | st.integers(0, 70_000),
)
near = st.sampled_from(
    [
        head(BLOCK),
        head(WAIT, 3),
        frame(frames.DATA, frames.END_STREAM, 1, message(b"x")),
        frame(frames.DATA, 0, 3, message(b"x")[:4]),
        frames.window_update(1, 100),
        frames.reset(3, Code.CANCEL),
    ]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(near | frame_bytes, min_size=1, max_size=12), st.booleans())
def test_any_frames(server, parts, whole):
    with Frames(server) as client:
        try:
            for part in [b"".join(parts)] if whole else parts:
                client.send(part)
            client.socket.shutdown(1)
        except OSError:
            pass
        while client.read() is not None:
            pass


def test_nothing_is_left_behind(server):
    still_answers(server)
    server.wait_until_idle()
    assert server.run(server.held_bytes()) == 0
    assert "defect" not in server.log.getvalue()


# the memory for header blocks

names = st.sampled_from(["x-a", "x-b", "x-c", "user-agent"])
lists = st.lists(st.tuples(names, st.sampled_from(["1", "2", "long" * 20, "y" * 3000])), max_size=4)


@settings(max_examples=100)
@given(st.lists(st.tuples(lists, st.booleans(), st.none() | st.integers(0, 4096)), min_size=1, max_size=30))
def test_a_remembered_block_means_what_it_says_now(sequence):
    encoder, plain = hpack.Encoder(), hpack.Decoder()
    reader = HeaderReader(list)
    for extra, huffman, size in sequence:
        if size is not None:
            encoder.header_table_size = size
        for _ in range(3):
            block = encoder.encode([*HEAD, *extra], huffman=huffman)
            assert reader.request(block)[0] == [tuple(field) for field in plain.decode(block, raw=True)]


def test_the_same_bytes_with_another_table():
    reader = HeaderReader(dict)
    base = b"\x83\x86\x84"  # POST, http, /
    assert reader.request(base + b"\x40\x01a\x01" + b"1")[0][b"a"] == b"1"
    assert reader.request(base + b"\xbe")[0][b"a"] == b"1"
    assert reader.request(base + b"\xbe")[0][b"a"] == b"1"  # remembered
    reader.trailers(b"\x40\x01a\x01" + b"2")  # another entry at the same index
    assert reader.request(base + b"\xbe")[0][b"a"] == b"2"
