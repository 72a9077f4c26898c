"""A stranger with a raw socket: what no client library would send, to every API, each with the answer it has to get.

Beside the answer, all of it together must leave no defect in the log, no dead worker and no memory behind.
"""

from __future__ import annotations

import base64
import gzip
import json
import socket
import struct
import threading
import zlib

import grpc
import hpack
import numpy as np
import psutil
import pytest

from glowplug.serve.rpc.http2 import frames
from glowplug.serve.rpc.http2.frames import frame
from glowplug.serve.wire.messages import message, serving
from tests.serve.echo_model import save_echo
from tests.serve.rpc_server import Frames
from tests.serve.rpc_server import message as prefixed
from tests.serve.server import Server

pytestmark = pytest.mark.tensorflow

PREDICT, INFER = "/v1/models/echo:predict", "/v2/models/echo/infer"
ONE, ANSWER = b'{"instances":[7]}', b'{"predictions":[7]}'
V2 = {"inputs": [{"name": "x", "datatype": "INT32", "shape": [1], "data": [7]}]}
MAX_GROWTH_BYTES = 96 << 20


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, packed):
    """A server that is looked at once more when all of the attacks are over."""
    source = tmp_path_factory.mktemp("echo") / "123"
    save_echo(source)
    limits = ("--max-request-bytes", 1 << 22, "--max-bodies-bytes", 1 << 23, "--max-tensor-bytes", 1 << 24)
    with Server(f"echo={packed(source)}", *limits) as server:
        large = {"instances": list(range(20_000))}
        assert server.post(PREDICT, large) == (200, {"predictions": large["instances"]})  # the parsers are there now
        children = {child.pid for child in psutil.Process(server.process.pid).children()}
        before = server.front_end().memory_info().rss
        yield server
        assert server.post(PREDICT, large) == (200, {"predictions": large["instances"]})
        assert server.front_end().memory_info().rss - before < MAX_GROWTH_BYTES
        assert children <= {child.pid for child in psutil.Process(server.process.pid).children()}
        assert server.get("/v1/glowplug/status")[1]["models"]["echo"]["1"]["restarts"] == 0
        assert [event for event in server.events if event["event"] == "defect"] == []
        assert not server.other_output


def post(body=ONE, *fields, path=PREDICT, method="POST", version="1.1", length=None, host=b"Host: x"):
    head = [f"{method} {path} HTTP/{version}".encode("latin-1"), host, *fields]
    if length is not False:
        head.append(b"Content-Length: %d" % (len(body) if length is None else length))
    return b"\r\n".join([one for one in head if one] + [b"Connection: close", b"", b""]) + body


def chunked(body, *fields):
    return post(body, b"Transfer-Encoding: chunked", *fields, length=False)


def talk(server, *parts):
    """Send, and return all that comes until the server closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", server.rest_port), 60) as client:
        for part in parts:
            client.sendall(part)
        while piece := client.recv(1 << 16):
            answer += piece
    return answer


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def infer(**changes):
    given = {"name": "x", "datatype": "INT32", "shape": [1], "data": [7], **changes}
    return {"inputs": [{key: value for key, value in given.items() if value is not ...}]}


def v2(document, *fields, tail=b"", size=None, path=INFER):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    if tail or size is not None:
        fields = (*fields, b"Inference-Header-Content-Length: " + str(len(body) if size is None else size).encode())
    return post(body + tail, *fields, path=path)


def binary(size, shape=(1,), datatype="INT32", **more):
    parameters = {"binary_data_size": size, **more}
    return infer(data=..., shape=list(shape), datatype=datatype, parameters=parameters)


def squeezed(data, times=1):
    for _ in range(times):
        data = gzip.compress(data)
    return data


GZIP = b"Content-Encoding: gzip"
BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB = b"".join([*(BOMB.compress(bytes(1 << 20)) for _ in range(64)), BOMB.flush()])
SIGNED = '{"signature_name":"%s",%s}'
OK, BAD, LOST = [200], [400], [404]

# name: what is sent, the statuses of the answers, and a part of the last one
HTTP = {
    # methods and targets
    "a head of what is posted": (post(b"", method="HEAD"), BAD, b""),
    "options of the server": (post(b"", path="*", method="OPTIONS"), LOST, b"Not found"),
    "options of a model": (post(b"", method="OPTIONS"), BAD, b"Malformed request"),
    "a trace of a model": (post(b"", method="TRACE"), BAD, b"Malformed request"),
    "a patch of a model": (post(method="PATCH"), BAD, b"Malformed request"),
    "a target as proxies write it": (post(path="http://elsewhere" + PREDICT), OK, ANSWER),
    "a target with a user": (post(path="http://a:b@elsewhere:1" + PREDICT), OK, ANSWER),
    "a target of another protocol": (post(path="ftp://elsewhere" + PREDICT), LOST, b"Not found"),
    "a target that is a host": (post(b"", path="elsewhere:443", method="CONNECT"), BAD, b"no proxy"),
    "a target with a query": (post(path=PREDICT + "?a=b&%00"), OK, ANSWER),
    "a target with a fragment": (post(path=PREDICT + "#part"), BAD, b"error"),
    "a target of two slashes": (post(path="/" + PREDICT), LOST, b"Not found"),
    "a way up": (post(path="/v1/models/../models/echo:predict"), BAD, b"Malformed"),
    "a way up in disguise": (post(path="/v1/models/%2e%2e%2fecho:predict"), LOST, b"not found"),
    "a name with a slash in it": (post(path="/v1/models/a%2Fecho:predict"), LOST, b"Latest(a/echo)"),
    "a name with a colon in it": (post(path="/v1/models/echo%3Apredict"), BAD, b"Malformed"),
    "a name with a zero byte": (post(path="/v1/models/echo%00:predict"), LOST, b"not found"),
    "a name with line ends": (post(path="/v1/models/echo%0d%0aX:predict"), LOST, b"not found"),
    "a name that is no text": (post(path="/v1/models/%ff%fe:predict"), LOST, b"not found"),
    "a name of bytes as they are": (post(path="/v1/models/\xff\xfe:predict"), BAD, b"malformed"),
    "a name of digits that are none": (post(path="/v1/models/%zz%:predict"), LOST, b"not found"),
    "a name of a smile": (post(path="/v1/models/%F0%9F%98%80:predict"), LOST, b"not found"),
    "half of a smile": (post(path="/v1/models/%ED%A0%BD:predict"), LOST, b"not found"),
    "a version below zero": (post(path="/v1/models/echo/versions/-1:predict"), BAD, b"Malformed"),
    "a version of other digits": (post(path="/v1/models/echo/versions/%D9%A1:predict"), BAD, b"Malformed"),
    "a version of 63 bits": (post(path=f"/v1/models/echo/versions/{(1 << 63) - 1}:predict"), LOST, b"not found"),
    "a version of 64 bits": (post(path=f"/v1/models/echo/versions/{1 << 63}:predict"), BAD, b"to convert"),
    "a label of a smile": (post(path="/v1/models/echo/labels/%F0%9F%98%80:predict"), BAD, b"Unrecognized"),
    "a label of nothing": (post(path="/v1/models/echo/labels/:predict"), BAD, b"Malformed"),
    "a model of nothing": (post(path="/v1/models/:predict"), BAD, b"Malformed"),
    # framing
    "two blanks": (post().replace(b" HTTP", b"  HTTP", 1), OK, ANSWER),  # RFC 9112, 3: words between blanks
    "a method in small letters": (post(method="post"), BAD, b"malformed"),
    "a version of two digits": (post(version="1.10"), BAD, b"malformed"),
    "a protocol of another name": (post().replace(b"HTTP/", b"HTTQ/", 1), BAD, b"malformed"),
    "no version at all": (b"GET /healthz\r\n\r\n", [505], b"HTTP/1.1"),
    "a host twice": (post(ONE, b"Host: y"), BAD, b"must not come twice"),
    "a zero byte in a value": (post(ONE, b"X: a\0b"), BAD, b"malformed"),
    "a bare return in a value": (post(ONE, b"X: a\rb"), BAD, b"malformed"),
    "a field without a name": (post(ONE, b": b"), BAD, b"malformed"),
    "a field without a colon": (post(ONE, b"X"), BAD, b"malformed"),
    "a name with a blank": (post(ONE, b"X Y: b"), BAD, b"malformed"),
    "empty lines before it": (b"\r\n" * 100_000, [431], b"too large"),
    "a length in hexadecimal": (post(ONE, b"Content-Length: 0x11", length=False), BAD, b"malformed"),
    "a length of nothing": (post(ONE, b"Content-Length:", length=False), BAD, b"malformed"),
    "a length with an underline": (post(ONE, b"Content-Length: 1_7", length=False), BAD, b"malformed"),
    "a length below zero": (post(ONE, b"Content-Length: -17", length=False), BAD, b"malformed"),
    "chunked and gzip": (post(ONE, b"Transfer-Encoding: gzip, chunked", length=False), [501], b"chunked"),
    "chunked and chunked": (post(ONE, b"Transfer-Encoding: chunked, chunked", length=False), [400], b"error"),
    "chunked behind a bell": (post(ONE, b"Transfer-Encoding: \x07chunked", length=False), [400], b"error"),
    "chunked in 1.0": (
        post(b"0\r\n\r\n", b"Transfer-Encoding: chunked", length=False, version="1.0"),
        [400],
        b"error",
    ),
    "a chunk of 2^68": (chunked(b"100000000000000000\r\n"), BAD, b"malformed"),
    "a chunk of 2^60": (chunked(b"1000000000000000\r\n" + bytes(5 << 20)), [413], b"larger than"),
    "a chunk that is not hexadecimal": (chunked(b"g\r\n"), BAD, b"malformed"),
    "a chunk whose end is missing": (chunked(b"2\r\n{}X\r\n0\r\n\r\n"), BAD, b"malformed"),
    "an extension of a chunk without end": (chunked(b"1;" + b"a" * 200_000), [431], b"too large"),
    "extensions of chunks": (
        chunked(b"".join(b"1;%s\r\n%c\r\n" % (b"a" * 100, sign) for sign in ONE) + b"0\r\n\r\n"),
        OK,
        ANSWER,
    ),
    "trailers that ask for something else": (
        chunked(b"11\r\n" + ONE + b"\r\n0\r\nContent-Encoding: gzip\r\nHost: y\r\nAuthorization: z\r\n\r\n"),
        OK,
        ANSWER,
    ),
    "a length behind the chunks": (chunked(b"11\r\n" + ONE + b"\r\n0\r\nContent-Length: 3\r\n\r\n"), BAD, b"malformed"),
    "a request in the body of another": (post(post(b"{}")), BAD, b"JSON Parse error"),
    "a body behind a look": (post(ONE, path="/healthz", method="GET"), OK, b"ok"),
    "HTTP/1.0 without a host": (post(version="1.0", host=b""), OK, ANSWER),
    "a body that is expected to be refused": (
        post(b"", b"Expect: 100-continue", length=5 << 20),
        [413],
        b"larger than",
    ),
    "an expectation of nobody's": (post(ONE, b"Expect: the-unexpected"), OK, ANSWER),
    "an expectation twice": (post(ONE, b"Expect: 100-continue", b"Expect: 100-continue"), BAD, b"twice"),
    "an expectation in 1.0": (post(ONE, b"Expect: 100-continue", version="1.0"), OK, ANSWER),
    # compression
    "gzip of gzip": (post(squeezed(ONE, 2), GZIP), BAD, b"JSON Parse error"),
    "gzip that is cut off": (post(squeezed(ONE)[:-9], GZIP), BAD, b"gzip"),
    "gzip of nothing": (post(b"", GZIP), BAD, b"gzip"),
    "gzip that is none": (post(ONE, GZIP), BAD, b"gzip"),
    "gzip with a wrong sum": (post(squeezed(ONE)[:-8] + bytes(8), GZIP), BAD, b"gzip"),
    "gzip with something behind it": (post(squeezed(ONE) + b"behind", GZIP), BAD, b"gzip"),
    "gzip with a name without end": (post(b"\x1f\x8b\x08\x08" + bytes(6) + b"a" * 50_000, GZIP), BAD, b"gzip"),
    "a bomb": (post(BOMB, GZIP), [400], b"unpacked"),
    "a bomb in a bomb": (post(squeezed(BOMB, 3), GZIP), BAD, b"error"),
    "a bomb for the other API": (post(BOMB, GZIP, path=INFER), [400], b"unpacked"),
    "ten thousand members": (post(gzip.compress(b"") * 10_000, GZIP), BAD, b"error"),
    "gzip twice": (post(squeezed(ONE), b"Content-Encoding: gzip, gzip"), BAD, b"not supported"),
    "brotli": (post(ONE, b"Content-Encoding: br"), BAD, b"not supported"),
    "deflate": (post(zlib.compress(ONE), b"Content-Encoding: deflate"), BAD, b"not supported"),
    # JSON
    "a key twice": (post(b'{"instances":[1],"instances":[7]}'), OK, ANSWER),
    "an input twice": (post(b'{"inputs":{"x":1,"x":7}}'), OK, b'{"outputs":7}'),
    "a signature twice": (post(b'{"signature_name":"none","signature_name":"","instances":[7]}'), OK, ANSWER),
    "lists in lists": (post(b'{"instances":' + b"[" * 500_000), BAD, b"error"),
    "lists in lists with ends": (post(b'{"instances":' + b"[" * 900 + b"]" * 900 + b"}"), BAD, b"error"),
    "objects in objects": (post(b'{"instances":[' + b'{"a":' * 100_000), BAD, b"error"),
    "what nobody looks at, and deep": (post(b'{"x":' + b"[" * 100_000 + b',"instances":[7]}'), BAD, b"error"),
    "a number of a megabyte": (post(b'{"instances":[' + b"7" * 1_000_000 + b"]}"), BAD, b"error"),
    "a fraction of a megabyte": (
        post((SIGNED % ("float64", '"instances":[0.%s]')).encode() % (b"1" * 1_000_000)),
        OK,
        b"0.111111",
    ),
    "an exponent of a megabyte": (
        post((SIGNED % ("float64", '"instances":[1e%s]')).encode() % (b"9" * 1_000_000)),
        BAD,
        b"error",
    ),
    "zeros before a number": (post(b'{"instances":[007]}'), BAD, b"JSON Parse error"),
    "a number in hexadecimal": (post(b'{"instances":[0x7]}'), BAD, b"JSON Parse error"),
    "a comma too many": (post(b'{"instances":[7,]}'), BAD, b"JSON Parse error"),
    "a remark": (post(b'{"instances":[7]/* seven */}'), BAD, b"JSON Parse error"),
    "text of 16 bits": (post(ONE.decode().encode("utf-16")), BAD, b"JSON Parse error"),
    "text that is too long for itself": (
        post((SIGNED % ("string", '"instances":["')).encode()[:-1] + b'\xc0\xaf"]}'),
        BAD,
        b"JSON Parse error",
    ),
    "half a smile in JSON": (post(b'{"signature_name":"string","instances":["\\ud83d"]}'), BAD, b"JSON Parse error"),
    "a zero byte in a signature": (post(b'{"signature_name":"a\\u0000b","instances":[7]}'), BAD, b"not found"),
    "a signature of a megabyte": (post(b'{"signature_name":"%s","instances":[7]}' % (b"a" * 1_000_000)), BAD, b"error"),
    "a key of a megabyte": (post(b'{"%s":1,"instances":[7]}' % (b"a" * 1_000_000)), OK, ANSWER),
    "base64 of three signs": (post(b'{"signature_name":"string","instances":[{"b64":"abc!"}]}'), BAD, b"base64"),
    "a million rows of nothing": (post(b'{"instances":[' + b",".join([b"[]"] * 1_000_000) + b"]}"), OK, b"[]"),
    "33 dimensions": (post(b'{"inputs":' + b"[" * 33 + b"7" + b"]" * 33 + b"}"), BAD, b"error"),
    # Open Inference
    "a size of half": (v2(infer(shape=[1.5])), BAD, b"error"),
    "a size of text": (v2(infer(shape=["1"])), BAD, b"error"),
    "a size of 2^63": (v2(infer(shape=[1 << 63])), BAD, b"error"),
    "a size of 2^64": (v2(infer(shape=[1 << 64])), BAD, b"error"),
    "a size of nothing": (v2(infer(shape=None)), BAD, b"error"),
    "sizes that wrap to one": (v2(infer(shape=[1 << 32, 1 << 32, 1])), BAD, b"larger than"),
    "nothing of very much": (v2(infer(shape=[0, 1 << 62], data=[])), BAD, b"larger than"),
    "a hundred dimensions": (v2(infer(shape=[1] * 100)), BAD, b"dimensions"),
    "a scalar of two": (v2(infer(shape=[], data=[1, 2])), BAD, b"do not fit"),
    "a datatype that is a number": (v2(infer(datatype=7)), BAD, b"datatype"),
    "a datatype of TensorFlow's": (v2(infer(datatype="DT_INT32")), BAD, b"datatype"),
    "a name that is a number": (v2(infer(name=7)), BAD, b"error"),
    "data that is an object": (v2(infer(data={"a": 1})), BAD, b"error"),
    "inputs that are an object": (v2({"inputs": {"x": 1}}), BAD, b"error"),
    "inputs that are none": (v2({"inputs": []}), BAD, b"missing"),
    "outputs that are text": (v2({**V2, "outputs": "y"}), BAD, b"error"),
    "outputs that are null": (v2({**V2, "outputs": [None]}), BAD, b"error"),
    "an output twice": (v2({**V2, "outputs": [{"name": "y"}, {"name": "y"}]}), BAD, b"error"),
    "a key of Open Inference twice": (v2(b'{"inputs":[],' + json.dumps(V2).encode()[1:]), OK, b'"data":[7]'),
    "an id with line ends": (v2({**V2, "id": "a\r\nX-Evil: b"}), OK, b"\\r\\n"),
    "more bytes than are there": (v2(binary(400), tail=bytes(4)), BAD, b"error"),
    "fewer bytes than are there": (v2(binary(4), tail=bytes(400)), BAD, b"error"),
    "bytes below zero": (v2(binary(-4), tail=bytes(4)), BAD, b"error"),
    "bytes of half": (v2(binary(3.5), tail=bytes(4)), BAD, b"error"),
    "bytes of text": (v2(binary("4"), tail=bytes(4)), BAD, b"error"),
    "bytes of 2^64": (v2(binary(1 << 64), tail=bytes(4)), BAD, b"error"),
    "bytes of truth": (v2(binary(True), tail=bytes(1)), BAD, b"error"),
    "bytes and data": (v2(infer(parameters={"binary_data_size": 4}), tail=bytes(4)), BAD, b"error"),
    "bytes that do not fit": (v2(binary(4, shape=(2,)), tail=bytes(4)), BAD, b"do not fit"),
    "a document longer than its body": (v2(V2, size=1 << 30), BAD, b"shorter"),
    "a document of no length": (v2(V2, size=0), BAD, b"error"),
    "a document below zero": (v2(V2, size=-5), BAD, b"number of bytes"),
    "a document that ends within": (v2(V2, size=20), BAD, b"JSON"),
    "strings that lie": (v2(binary(4, datatype="BYTES"), tail=b"\xff\xff\xff\xff"), BAD, b"strings"),
    "strings that end within a length": (v2(binary(3, datatype="BYTES"), tail=b"abc"), BAD, b"strings"),
    "a million strings in no bytes": (v2(binary(0, (1_000_000,), "BYTES"), tail=b""), BAD, b"error"),
    "large numbers that lie": (v2(binary(1 << 20, (1 << 19,)), tail=bytes(1 << 20)), BAD, b"do not fit"),
    "a model that is a way up": (v2(V2, path="/v2/models/%2e%2e/infer"), LOST, b"error"),
    "a version that is a way up": (v2(V2, path="/v2/models/echo/versions/%2e%2e/infer"), BAD, b"error"),
    "a model of a smile": (v2(V2, path="/v2/models/%F0%9F%98%80/infer"), LOST, b"error"),
    "a repository": (post(b"{}", path="/v2/repository/index"), BAD, b"Malformed"),
    "a model that is to be unloaded": (post(b"{}", path="/v2/repository/models/echo/unload"), BAD, b"Malformed"),
    "shared memory": (post(b"{}", path="/v2/systemsharedmemory/region/r/register"), BAD, b"Malformed"),
}


@pytest.mark.parametrize("name", HTTP)
def test_over_http(attacked, name):
    data, expected, part = HTTP[name]
    answer = talk(attacked, data)
    assert statuses(answer) == expected, answer[:500]
    head, _, body = answer.rpartition(b"\r\n\r\n")
    assert part in body
    if expected[-1] >= 400 and body:
        assert list(json.loads(body)) == ["error"]
        assert b"Traceback" not in body
    assert b"X-Evil" not in head


def test_a_body_that_is_asked_for(attacked):
    with socket.create_connection(("127.0.0.1", attacked.rest_port), 60) as client:
        client.sendall(post(b"", b"Expect: 100-continue", length=len(ONE)))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(ONE)
        answer = b""
        while piece := client.recv(1 << 16):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(ANSWER)


def test_byte_by_byte(attacked):
    data = post()
    answer = talk(attacked, *(data[place : place + 1] for place in range(len(data))))
    assert statuses(answer) == [200]


def test_a_connection_of_1_0_that_is_kept(attacked):
    with socket.create_connection(("127.0.0.1", attacked.rest_port), 60) as client:
        ask = b"POST %s HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 17\r\n\r\n" % PREDICT.encode() + ONE
        for _ in range(3):
            client.sendall(ask)
            answer = client.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"Connection: keep-alive" in answer


def test_many_who_leave_in_the_middle(attacked):
    whole = post(b'{"instances":[' + b"7," * 100_000 + b"7]}")
    for place in range(0, len(whole), len(whole) // 50):
        with socket.create_connection(("127.0.0.1", attacked.rest_port), 60) as client:
            client.sendall(whole[:place])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # with a reset
    assert attacked.post(PREDICT, ONE)[0] == 200


def test_one_who_never_reads(attacked):
    with socket.create_connection(("127.0.0.1", attacked.rest_port), 60) as client:
        client.sendall(post()[:-17].replace(b"Connection: close\r\n", b"") + ONE)
        rest = b"".join(b"GET /v1/glowplug/status HTTP/1.1\r\nHost: x\r\n\r\n" for _ in range(2000))
        client.settimeout(0.5)
        try:
            while True:
                client.sendall(rest)
        except TimeoutError:
            pass  # it is not listened to any more
        assert attacked.post(PREDICT, ONE)[0] == 200


# gRPC


def predict(*sizes, dtype=3, name="echo", signature="", tensors=1, **values):
    request = serving("PredictRequest")()
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    for place in range(tensors):
        proto = request.inputs["x" if not place else f"x{place}"]
        proto.dtype = dtype
        for size in sizes:
            proto.tensor_shape.dim.add(size=size)
        for field, value in values.items():
            setattr(proto, field, value) if isinstance(value, bytes) else getattr(proto, field).extend(value)
    return request


def changed(request, change):
    change(request)
    return request


def strings(*lengths, data=b""):
    return predict(len(lengths), dtype=7, signature="string", tensor_content=bytes(lengths) + data)


def unknown_rank(request):
    request.inputs["x"].tensor_shape.unknown_rank = True


def label(request):
    request.model_spec.version_label = "\U0001f600"


def below_zero(request):
    request.model_spec.version.value = -1


SEVEN = struct.pack("<i", 7)


def model_infer(shape=(1,), raw=(SEVEN,), datatype="INT32", inputs=("x",), **more):
    request = message("inference.ModelInferRequest")(model_name="echo", raw_input_contents=raw, **more)
    for name in inputs:
        request.inputs.add(name=name, datatype=datatype, shape=shape)
    return request


def wrong_field(request):
    request.ClearField("raw_input_contents")
    request.inputs[0].contents.fp32_contents.append(7)


def both(request):
    request.inputs[0].contents.int_contents.append(7)


def not_text(request):
    request.parameters["signature_name"].int64_param = 7


TF, OPEN = "tensorflow.serving.PredictionService", "inference.GRPCInferenceService"
CONTROL = "tensorflow.serving.ModelService/HandleReloadConfigRequest"
INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
RPC = {
    "a size of 2^63 - 1": ("Predict", predict((1 << 63) - 1, int_val=[7]), INVALID),
    "sizes that wrap to one": ("Predict", predict(1 << 32, 1 << 32, 1, int_val=[7]), INVALID),
    "values of another type": ("Predict", predict(1, float_val=[7.0], dtype=1), INVALID),
    "a rank that is not known": ("Predict", changed(predict(1, int_val=[7]), unknown_rank), INVALID),
    "content and values": ("Predict", predict(2, int_val=[7], tensor_content=bytes(4)), INVALID),
    "strings whose length is missing": (
        "Predict",
        predict(2, dtype=7, signature="string", tensor_content=b"\0"),
        INVALID,
    ),
    "strings that are too long": ("Predict", strings(200, data=b"abc"), INVALID),
    "strings with a length without end": ("Predict", strings(0xFF, data=b"\xff" * 20), INVALID),
    "strings with something behind": ("Predict", strings(1, data=b"abc"), INVALID),
    "a hundred inputs": ("Predict", predict(1, int_val=[7], tensors=100), INVALID),
    "a version below zero": ("Predict", changed(predict(1, int_val=[7]), below_zero), NOT_FOUND),
    "a label of a smile": ("Predict", changed(predict(1, int_val=[7]), label), INVALID),
    "a name with a slash": ("Predict", predict(1, name="a/../echo", int_val=[7]), NOT_FOUND),
    "a name of a smile": ("Predict", predict(1, name="\U0001f600", int_val=[7]), NOT_FOUND),
    "a name of a megabyte": ("Predict", predict(1, name="a" * (1 << 20), int_val=[7]), NOT_FOUND),
    "no name": ("Predict", predict(1, name="", int_val=[7]), INVALID),
    "a signature of a megabyte": ("Predict", predict(1, signature="a" * (1 << 20), int_val=[7]), INVALID),
    "nothing": ("Predict", b"", INVALID),
    "a field of no type": ("Predict", b"\x0f", INVALID),
    "a field number of zero": ("Predict", b"\x02\x00", INVALID),
    "a length beyond the message": ("Predict", b"\x0a\xff\xff\xff\x7f", INVALID),
    "a number without end": ("Predict", b"\x08" + b"\xff" * 30, INVALID),
    "messages in messages": ("Predict", b"\x12\x80\x08" * 5000, INVALID),
    "examples that are none": ("Classify", b"\x0a\x06\x0a\x04echo\x12\x06\x0a\x04\x0a\x02\xff\xff", INVALID),
    "no examples": ("Classify", b"\x0a\x06\x0a\x04echo", INVALID),
    "no tasks": ("MultiInference", b"", INVALID),
    "no raw contents": ("ModelInfer", model_infer(raw=()), INVALID),
    "raw contents of two": ("ModelInfer", model_infer(raw=[bytes(4)] * 2), INVALID),
    "raw contents of a thousand": ("ModelInfer", model_infer(raw=[b""] * 1000), INVALID),
    "raw contents for two of one name": ("ModelInfer", model_infer(raw=[bytes(4)] * 2, inputs=("x", "x")), INVALID),
    "raw contents that are too short": ("ModelInfer", model_infer((2,)), INVALID),
    "raw contents of nothing": ("ModelInfer", model_infer(raw=[b""]), INVALID),
    "a size of 2^63 - 1 of the other API": ("ModelInfer", model_infer([(1 << 63) - 1]), INVALID),
    "a size of -2^63": ("ModelInfer", model_infer([-(1 << 63)]), INVALID),
    "sizes that wrap to one of the other API": ("ModelInfer", model_infer([1 << 32, 1 << 32, 1]), INVALID),
    "a thousand dimensions": ("ModelInfer", model_infer([1] * 1000), INVALID),
    "strings that lie of the other API": ("ModelInfer", model_infer(raw=[b"\xff" * 7], datatype="BYTES"), INVALID),
    "a type of nobody's": ("ModelInfer", model_infer(datatype="FP128"), INVALID),
    "contents of another type": ("ModelInfer", changed(model_infer(), wrong_field), INVALID),
    "contents twice": ("ModelInfer", changed(model_infer(), both), INVALID),
    "a signature that is a number": ("ModelInfer", changed(model_infer(), not_text), INVALID),
    "a version that is a way up": ("ModelInfer", model_infer(model_version="../1"), INVALID),
    "a version of 5,000 digits": ("ModelInfer", model_infer(model_version="9" * 5000), NOT_FOUND),
    "a version of other digits": ("ModelInfer", model_infer(model_version="\u0661"), INVALID),
    "a ready model of no name": ("ModelReady", b"", INVALID),
    "a described model of a smile": ("ModelMetadata", b"\x0a\x04\xf0\x9f\x98\x80", NOT_FOUND),
}


@pytest.mark.parametrize("name", RPC)
def test_over_grpc(attacked, name):
    method, request, code = RPC[name]
    data = request if isinstance(request, bytes) else request.SerializeToString()
    service = OPEN if method.startswith("Model") else TF
    with grpc.insecure_channel(f"127.0.0.1:{attacked.grpc_port}") as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(f"/{service}/{method}")(data, timeout=60)
    assert refused.value.code() is code, refused.value.details()
    assert refused.value.details()


class Wire(Frames):
    """Bare frames for a server in a process of its own."""

    def __init__(self, server, **options):
        server.port = server.grpc_port
        super().__init__(server, **options)


HEAD = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", f"/{TF}/Predict"),
    (":authority", "here"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]
GOOD = prefixed(predict(1, int_val=[7]).SerializeToString())


def head(*more, number=1, flags=frames.END_HEADERS, **changed):
    fields = [(key, changed.get(key.lstrip(":").replace("-", "_"), value)) for key, value in HEAD]
    return frame(
        frames.HEADERS, flags, number, hpack.Encoder().encode([*(one for one in fields if one[1] is not None), *more])
    )


def body(data=GOOD, number=1, flags=frames.END_STREAM):
    return frame(frames.DATA, flags, number, data)


def status_of(server, data):
    with Wire(server) as client:
        client.send(data)
        first, _, last = client.answer(1)
        return first[":status"], {**first, **last}.get("grpc-status")


WIRE = {
    "as it should be": (head() + body(), ("200", "0")),
    "a deadline of nothing": (head(("grpc-timeout", "0n")) + body(), ("200", "4")),
    "a deadline of a nanosecond": (head(("grpc-timeout", "1n")) + body(), ("200", "4")),
    "a deadline of eleven thousand years": (head(("grpc-timeout", "99999999H")) + body(), ("200", "0")),
    "a deadline of nine digits": (head(("grpc-timeout", "999999999S")) + body(), ("200", "13")),
    "a deadline below zero": (head(("grpc-timeout", "-1S")) + body(), ("200", "13")),
    "a deadline of no unit": (head(("grpc-timeout", "5")) + body(), ("200", "13")),
    "a deadline of other digits": (head(("grpc-timeout", b"\xd9\xa1S")) + body(), ("200", "13")),
    "binary metadata that is none": (head(("x-bin", "%%%")) + body(), ("200", "0")),
    "binary metadata": (head(("x-bin", base64.b64encode(bytes(range(256))).decode())) + body(), ("200", "0")),
    "metadata that is no text": (head(("x", b"\xff\xfe")) + body(), ("200", "0")),
    "an id that is no text": (head(("x-request-id", b"\xff\xfe" * 500)) + body(), ("200", "0")),
    "a trace of nonsense": (head(("traceparent", "00-zz")) + body(), ("200", "0")),
    "a GET": (head(method="GET", flags=frames.END_HEADERS | frames.END_STREAM), ("405", None)),
    "an OPTIONS": (head(method="OPTIONS", flags=frames.END_HEADERS | frames.END_STREAM), ("405", None)),
    "another kind of content": (head(content_type="application/json") + body(), ("415", None)),
    "nearly gRPC": (head(content_type="application/grpc-web") + body(), ("415", None)),
    "no kind of content": (head(content_type=None) + body(), ("415", None)),
    "a path of nothing": (head(path="/") + body(), ("200", "12")),
    "a path that is no path": (head(path="*") + body(), ("200", "12")),
    "a path up": (head(path=f"/x/../{TF}/Predict") + body(), ("200", "12")),
    "a path with a query": (head(path=f"/{TF}/Predict?a=b") + body(), ("200", "12")),
    "a path that is no text": (head(path=b"/\xff\xfe/\xff") + body(), ("200", "12")),
    "another case": (head(path=f"/{TF}/predict") + body(), ("200", "12")),
    "a flag of 255": (head() + body(b"\xff" + GOOD[1:]), ("200", "13")),
    "a flag without an encoding": (head() + body(b"\1" + GOOD[1:]), ("200", "13")),
    "gzip that is none": (head(("grpc-encoding", "gzip")) + body(b"\1" + GOOD[1:]), ("200", "13")),
    "an encoding of nobody's": (head(("grpc-encoding", "lzma")) + body(), ("200", "12")),
    "a message of 4 GB": (head() + body(b"\0\xff\xff\xff\xff"), ("200", "8")),
    "a message of two ends": (head() + body(GOOD + GOOD), ("200", "12")),
    "a message that ends within": (head() + body(GOOD[:-1]), ("200", "13")),
    "a message within a prefix": (head() + body(b"\0\0"), ("200", "13")),
    "no message": (head(flags=frames.END_HEADERS | frames.END_STREAM), ("200", "12")),
    "trailers behind a message": (
        head()
        + body(flags=0)
        + frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, hpack.Encoder().encode([("x", "y")])),
        ("200", "0"),
    ),
    "a control call over a port": (head(path=f"/{CONTROL}") + body(), ("200", "7")),
    "a message byte by byte": (
        head() + b"".join(body(GOOD[place : place + 1], flags=0) for place in range(len(GOOD))) + body(b""),
        ("200", "0"),
    ),
}


@pytest.mark.parametrize("name", WIRE)
def test_over_bare_frames(attacked, name):
    data, expected = WIRE[name]
    assert status_of(attacked, data) == expected


def test_a_window_of_nothing_holds_the_answer_back_and_nobody_else(attacked):
    with Wire(attacked, settings={frames.INITIAL_WINDOW_SIZE: 0}) as client:
        client.send(head() + body())
        client.send(frame(frames.PING, 0, 0, b"12345678"))
        assert client.wait_for(frames.PING)[3] == b"12345678"
        assert status_of(attacked, head() + body()) == ("200", "0")
        client.send(frames.window_update(1, 1 << 20))
        assert client.wait_for(frames.DATA)[2] == 1


def test_calls_that_are_taken_back(attacked):
    with Wire(attacked) as client:
        for number in range(1, 201, 2):
            client.send(head(number=number) + body(number=number) + frames.reset(number, frames.Code.CANCEL))
        client.send(frame(frames.PING, 0, 0, b"12345678"))
        client.wait_for(frames.PING)
    assert status_of(attacked, head() + body()) == ("200", "0")


def test_text_where_frames_are_spoken_and_the_other_way_round(attacked):
    with socket.create_connection(("127.0.0.1", attacked.grpc_port), 60) as client:
        client.sendall(post())
        answer = b""
        while piece := client.recv(1 << 16):
            answer += piece
    assert answer[-100:].find(b"this is not HTTP/2") >= 0


def test_an_upgrade_to_frames_is_declined(attacked):
    fields = b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"
    assert statuses(talk(attacked, post(ONE, *fields).replace(b"Connection: close\r\n", b""), post())) == [200, 200]


def test_a_stream_of_models_says_each_error_and_goes_on(attacked):
    def requests():
        yield model_infer(raw=())
        yield model_infer((1 << 40,))
        yield message("inference.ModelInferRequest")()
        yield model_infer()

    with grpc.insecure_channel(f"127.0.0.1:{attacked.grpc_port}") as channel:
        stub = channel.stream_stream(
            f"/{OPEN}/ModelStreamInfer",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message("inference.ModelStreamInferResponse").FromString,
        )
        answers = list(stub(requests(), timeout=60))
    assert [bool(one.error_message) for one in answers] == [True, True, True, False]


CONTRADICTIONS = {
    "a model twice": [("echo", "{base}", ""), ("echo", "{base}", "")],
    "a model of no name": [("", "{base}", "")],
    "a name with a slash": [("a/b", "{base}", "")],
    "no base path": [("echo", "", "")],
    "a base path that is a file": [("echo", "/etc/passwd", "")],
    "a base path below a file": [("echo", "/etc/passwd/models", "")],
    "a base path with a zero byte": [("echo", "/a\0b", "")],
    "a URL without a host": [("echo", "s3://", "")],
    "a URL with a password": [("echo", "https://a:b@c/d", "")],
    "a platform of nobody's": [("echo", "{base}", "caffe")],
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_configurations_that_contradict_themselves_change_nothing(attacked, tmp_path, name):
    request = serving("ReloadConfigRequest")()
    for model, base, platform in CONTRADICTIONS[name]:
        request.config.model_config_list.config.add(
            name=model, base_path=base.format(base=tmp_path), model_platform=platform
        )
    with pytest.raises(grpc.RpcError) as refused:
        attacked.call(f"/{CONTROL}", request, "ReloadConfigResponse", address=attacked.control)
    assert refused.value.code() is INVALID
    assert attacked.post(PREDICT, ONE) == (200, {"predictions": [7]})


def test_many_at_once(attacked):
    """Requests of every kind side by side: each gets its own answer."""
    names = [name for name in HTTP if len(HTTP[name][0]) < 10_000]
    wrong = []

    def ask(part):
        for name in part:
            data, expected, _ = HTTP[name]
            if statuses(talk(attacked, data)) != expected:
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(names[place::8],)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    x = np.array([7], np.int32)
    assert list(attacked.predict("echo", {"x": x}).outputs["y"].int_val) == [7]
