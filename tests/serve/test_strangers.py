"""What strangers send: every request gets an answer that says whose fault it is, and none is a defect of ours."""

from __future__ import annotations

import socket
import struct

import grpc
import pytest

from glowplug.serve.wire.messages import message, serving

PREDICT = b"/v1/models/half:predict"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" % PREDICT
BODY = b'{"instances":[2.0]}'


def post(*fields: bytes, body: bytes = b"{}") -> bytes:
    head = [b"POST %s HTTP/1.1" % PREDICT, b"Host: x", *fields]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


RAW = {
    # two lengths: where the next request begins is a matter of opinion
    "length and chunks": (post(b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + GET), [400]),
    "two lengths": (post(b"Content-Length: 2", b"Content-Length: 3", body=b"{}}"), [400]),
    "a list of lengths": (post(b"Content-Length: 2, 2"), [400]),
    "a signed length": (post(b"Content-Length: +2"), [400]),
    "a length beyond numbers": (post(b"Content-Length: 99999999999999999999999"), [400]),
    "a length of 5,000 digits": (post(b"Content-Length: " + b"0" * 5000 + b"2"), [400]),
    "chunked twice": (post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=GET), [400]),
    "nearly chunked": (post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n" + GET), [501]),
    "a blank before the colon": (post(b"Content-Length : 2"), [400]),
    "a folded field": (post(b"A: b\r\n c", b"Content-Length: 2"), [400]),
    "line ends of one byte": (GET.replace(b"\r\n", b"\n"), [400]),
    "a negative chunk": (CHUNKED + b"-1\r\n{}\r\n0\r\n\r\n", [400]),
    "chunks of a byte": (CHUNKED + b"1\r\n \r\n" * 5000 + b"13\r\n" + BODY + b"\r\n0\r\n\r\n", [200]),
    "trailers without end": (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"a: b\r\n" * 20_000, [431]),
    "a field of a megabyte": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"b" * (1 << 20), [431]),
    "20,000 fields": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 20_000, [431]),
    "a method of nobody's": (b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
    "a trace": (b"TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [404]),
    "a version of nobody's": (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", [400]),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "TLS": (bytes.fromhex("16030100a5010000a10303") + bytes(100), [400]),
    "a websocket": (
        GET.replace(b"Host", b"Upgrade: websocket\r\nConnection: Upgrade\r\nHost") + b"\x81\x05hello",
        [200, 400],
    ),
    "a way out": (b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [404]),
    "a label that leads out": (
        post(b"Content-Length: 19", b"Connection: close", body=BODY).replace(b":pre", b"/labels/..%2f..%2fx:pre"),
        [400],
    ),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", RAW)
def test_over_http(server, name):
    data, statuses = RAW[name]
    answer = b""
    with socket.create_connection(("127.0.0.1", server.rest_port), 60) as client:
        client.sendall(data)
        while piece := client.recv(1 << 16):
            answer += piece
    found = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert found == statuses
    assert not any(event["event"] == "defect" for event in server.events)
    assert not server.other_output


def tensor(*sizes, dtype=1, **values):
    request = serving("PredictRequest")()
    request.model_spec.name = "half"
    proto = request.inputs["x"]
    proto.dtype = dtype
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    for field, value in values.items():
        setattr(proto, field, value) if isinstance(value, bytes) else getattr(proto, field).extend(value)
    return request.SerializeToString()


def infer(shape, **values):
    request = message("inference.ModelInferRequest")(model_name="half", **values)
    request.inputs.add(name="x", datatype="FP32", shape=shape)
    return request.SerializeToString()


MESSAGES = {
    "a product beyond 64 bits": tensor(1 << 32, 1 << 32, float_val=[1.0]),
    "a product that wraps to nothing": tensor(1 << 62, 4, float_val=[1.0]),
    "a negative size": tensor(-1, float_val=[1.0]),
    "two negative sizes": tensor(-2, -2, float_val=[1.0]),
    "nothing of very much": tensor(0, 1 << 62),
    "300 dimensions": tensor(*[1] * 300, float_val=[1.0]),
    "a gigabyte of one number": tensor(1 << 28, float_val=[1.0]),
    "too few bytes": tensor(4, tensor_content=b"abc"),
    "too many bytes": tensor(1, tensor_content=b"abcdefgh"),
    "a type of nobody's": tensor(1, dtype=99),
    "a reference": tensor(1, dtype=101),
    "a variant": tensor(1, dtype=21),
    "strings that lie": tensor(2, dtype=7, tensor_content=struct.pack("<II", 0xFFFFFFFF, 0)),
    "groups within groups": b"\x0b" * 5000,
    "a name that is no text": b"\x0a\x03\x0a\x01\xff",
}
INFER = {
    "a negative size": infer([-2], raw_input_contents=[bytes(8)]),
    "a product that wraps to nothing": infer([1 << 62, 4], raw_input_contents=[bytes(8)]),
    "too few bytes": infer([2, 1], raw_input_contents=[b"abc"]),
    "bytes of nobody's": infer([2, 1], raw_input_contents=[bytes(8), bytes(8)]),
    "no bytes": infer([2, 1]),
}
CALLS = [
    *(pytest.param("tensorflow.serving.PredictionService/Predict", data, id=name) for name, data in MESSAGES.items()),
    *(pytest.param("inference.GRPCInferenceService/ModelInfer", data, id=f"v2 {name}") for name, data in INFER.items()),
]


@pytest.mark.tensorflow
@pytest.mark.parametrize(("method", "data"), CALLS)
def test_over_grpc(server, method, data):
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(f"/{method}")(data, timeout=60)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert not any(event["event"] == "defect" for event in server.events)
