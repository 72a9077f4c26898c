"""One client cannot hold up the others, nor make the server keep what it does not read."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time

import grpc
import numpy as np
import psutil
import pytest

from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.tensor_proto import decode, encode
from tests.serve.server import Server

pytestmark = pytest.mark.tensorflow

PREDICT = "/v1/models/half:predict"
PREDICT_RPC = "/tensorflow.serving.PredictionService/Predict"
LONGEST_S = 5.0  # what these attacks took from other clients was 9 to 48 s; a busy machine takes some by itself


class Probe:
    """Asks for liveness all the while, and remembers the longest answer."""

    def __init__(self, server):
        self._server, self._stop, self.longest_s, self.count = server, threading.Event(), 0.0, 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.is_set():
            began = time.monotonic()
            assert self._server.request("GET", "/healthz")[0] == 200
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.count += 1


@pytest.fixture(scope="module")
def one(half_plus_two):
    with Server(f"half={half_plus_two}", "--instances", 1) as started:
        yield started


@pytest.mark.parametrize(
    "make",
    [
        lambda size: b'{"instances":[' + b",".join([b'"a"'] * (size // 4)) + b"]}",
        lambda size: b'{"instances":[' + b",".join([b"[" * 20 + b"1" + b"]" * 20] * (size // 42)) + b"]}",
        lambda size: b'{"instances":[' + b",".join([b'{"x":1}'] * (size // 8)) + b"]}",
    ],
    ids=["strings", "nested", "objects"],
)
def test_a_body_that_unfolds_to_megabytes_of_json_delays_no_one(one, make):
    packed = gzip.compress(make(10 << 20), 1)
    with Probe(one) as probe:
        status, answer, _ = one.request("POST", PREDICT, packed, {"Content-Encoding": "gzip"})
    assert status in (200, 400, 504), answer[:200]  # on a busy machine its own time may pass
    assert probe.longest_s < LONGEST_S
    assert probe.count > 20


def test_answers_of_megabytes_delay_no_one_and_are_right(one):
    values = [float(n % 1000) for n in range(300_000)]
    with Probe(one) as probe:
        status, document = one.post(PREDICT, {"instances": values})
    assert status == 200
    assert document["predictions"] == [value / 2 + 2 for value in values]
    assert probe.longest_s < LONGEST_S


def test_large_and_small_bodies_are_refused_in_the_same_words(one):
    for case in (
        '{"instances": ["a"]%s}',
        '{"instances": [[1.0], 2.0]%s}',
        '{"instances": [1.0], "signature_name": 5%s}',
    ):
        small = one.request("POST", PREDICT, (case % "").encode())
        large = one.request("POST", PREDICT, (case % (" " * 100_000)).encode())
        assert small[0] == large[0] == 400
        assert small[1] == large[1]
    assert one.request("POST", PREDICT, b"x" * 100_000)[0] == 400
    assert one.request("POST", PREDICT, b"x" * 100_000, {"Content-Encoding": "gzip"})[0] == 400


def test_examples_in_large_bodies_are_read_as_in_small_ones(one):
    body = {"signature_name": "classify_x_to_y", "examples": [{"x": float(n)} for n in range(5)]}
    small = one.request("POST", "/v1/models/half:classify", json.dumps(body).encode())
    large = one.request("POST", "/v1/models/half:classify", (json.dumps(body) + " " * 100_000).encode())
    assert small[:2] == large[:2]
    assert small[0] == 200, small


def test_pipelined_requests_leave_room_for_others(one):
    path = "/monitoring/prometheus/metrics"
    requests = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 1000
    with Probe(one) as probe, socket.create_connection(("127.0.0.1", one.rest_port)) as attacker:
        attacker.sendall(requests)
        seen = 0
        while seen < 1000:
            seen += attacker.recv(1 << 20).count(b"HTTP/1.1 200")
    assert probe.longest_s < LONGEST_S


def test_a_client_that_never_reads_holds_little_and_not_for_ever(one):
    front = one.front_end()
    before = front.memory_info().rss
    request = b"GET /monitoring/prometheus/metrics HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 600 + b"\r\n\r\n"
    attackers = []
    try:
        for _ in range(8):
            attacker = socket.socket()
            attacker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            attacker.connect(("127.0.0.1", one.rest_port))
            attacker.settimeout(2)
            attackers.append(attacker)
            try:
                for _ in range(40):
                    attacker.sendall(request * 30)
            except TimeoutError:
                pass  # the server has stopped reading
        assert one.request("GET", "/healthz")[0] == 200
        assert front.memory_info().rss - before < 100 << 20
    finally:
        for attacker in attackers:
            attacker.close()


def test_requests_behind_many_others_are_not_even_parsed(one):
    request = b"GET /monitoring/prometheus/metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
    sent = 0
    with Probe(one) as probe, socket.socket() as attacker:
        attacker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        attacker.connect(("127.0.0.1", one.rest_port))
        attacker.settimeout(5)
        with contextlib.suppress(TimeoutError):  # the server stops reading
            while sent < 60 << 20:
                sent += attacker.send(request)
    assert sent < 60 << 20
    assert probe.longest_s < LONGEST_S


def test_bodies_together_have_a_bound(half_plus_two):
    limit = 1 << 20
    with Server(f"half={half_plus_two}", "--max-request-bytes", limit, "--max-bodies-bytes", 3 << 20) as server:
        clients = []
        try:
            for _ in range(3):
                client = socket.create_connection(("127.0.0.1", server.rest_port))
                client.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PREDICT.encode(), limit))
                client.sendall(b" " * (limit - 1))
                clients.append(client)
            while True:  # until the server has all of that
                status, answer, _ = server.request("POST", PREDICT, b" " * 200_000)
                if status == 503:
                    break
                assert status == 400
            assert "--max-bodies-bytes" in json.loads(answer)["error"]
        finally:
            for client in clients:
                client.close()
        while server.post(PREDICT, b'{"instances": [1.0]' + b" " * 200_000 + b"}")[0] != 200:  # they have gone
            assert server.process.poll() is None


def test_parsers_end_with_the_server(half_plus_two):
    with Server(f"half={half_plus_two}") as server:
        assert server.post(PREDICT, b'{"instances": [1.0]' + b" " * 200_000 + b"}")[0] == 200
        everyone = psutil.Process(server.process.pid).children(recursive=True)
    assert not psutil.wait_procs(everyone, timeout=20)[1]


def echo_request(name, array, dtype):
    request = serving("PredictRequest")()
    request.model_spec.name, request.model_spec.signature_name = "echo", name
    request.inputs["x"].CopyFrom(encode(array, dtype))
    return request


@pytest.mark.parametrize(
    ("array", "dtype"),
    [(np.arange(1_000_000), "int64"), (np.array([b"a"] * 300_000, object), "string")],
    ids=["integers", "strings"],
)
def test_messages_of_many_integers_and_strings_delay_no_one_and_are_right(echo_server, array, dtype):
    request = echo_request(dtype, array, dtype)
    with Probe(echo_server) as probe:
        answer = echo_server.call(PREDICT_RPC, request, "PredictResponse", timeout=100)
    (output,) = answer.outputs.values()
    assert decode(output, "y", Limits()).tolist() == array.tolist()
    assert answer.model_spec.name == "echo"
    assert probe.longest_s < LONGEST_S
    assert len(echo_server.workers()) == 3  # the model's, and two that read and write


def test_large_and_small_messages_are_refused_in_the_same_words(echo_server):
    for size in (10, 100_000):
        wrong = echo_request("string", np.arange(size), "int64")
        with pytest.raises(grpc.RpcError) as refused:
            echo_server.call(PREDICT_RPC, wrong, "PredictResponse")
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert refused.value.details() == f"input 'x' must be string[...]: got int64[{size}]"
    with pytest.raises(grpc.RpcError) as refused:
        echo_server.call(PREDICT_RPC, b"\x1a\x00" * 100_000 + b"\xff", "PredictResponse")
    assert "Error deserializing request" in refused.value.details()


def test_a_message_that_unfolds_is_bounded(echo_server):
    bomb = echo_request("string", np.array([b"x"], object), "string")
    bomb.inputs["x"].tensor_shape.dim[0].size = 10_000_000
    with pytest.raises(grpc.RpcError) as refused:
        echo_server.call(PREDICT_RPC, bomb, "PredictResponse")
    assert "too large to be filled up" in refused.value.details()


def test_compressed_messages_that_unfold_delay_no_one(echo_server):
    with grpc.insecure_channel(
        f"127.0.0.1:{echo_server.grpc_port}", options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        stub = channel.unary_unary(PREDICT_RPC)
        codes = []
        with Probe(echo_server) as probe:
            for size in (100 << 20, 300 << 20):  # zeros, which are no message
                with pytest.raises(grpc.RpcError) as refused:
                    stub(bytes(size), timeout=100, compression=grpc.Compression.Gzip)
                codes.append(refused.value.code())
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED]
    assert probe.longest_s < LONGEST_S


def test_large_lists_of_examples_are_answered_as_small_ones(one):
    few, many = (serving("RegressionRequest")() for _ in range(2))
    for request, count in ((few, 3), (many, 3000)):
        request.model_spec.name, request.model_spec.signature_name = "half", "regress_x_to_y"
        for number in range(count):
            example = request.input.example_list.examples.add()
            example.features.feature["x"].float_list.value.append(float(number % 3))
    path = "/tensorflow.serving.PredictionService/Regress"
    answers = [one.call(path, request, "RegressionResponse") for request in (few, many)]
    assert answers[0].model_spec == answers[1].model_spec
    values = [[found.value for found in answer.result.regressions] for answer in answers]
    assert values == [[2.0, 2.5, 3.0], [2.0, 2.5, 3.0] * 1000]
    several = serving("MultiInferenceRequest")()
    task = several.tasks.add(method_name="tensorflow/serving/regress")
    task.model_spec.CopyFrom(many.model_spec)
    several.input.CopyFrom(many.input)
    (result,) = one.call(
        "/tensorflow.serving.PredictionService/MultiInference", several, "MultiInferenceResponse"
    ).results
    assert [found.value for found in result.regression_result.regressions] == values[1]
