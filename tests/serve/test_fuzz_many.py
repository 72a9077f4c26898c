"""Ten thousand REST bodies and as many gRPC messages that are nearly right: no fault of the server's, no growth."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
from collections import Counter

import grpc
import numpy as np
import psutil
import pytest

from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.tensor_proto import encode
from tests.fuzz.driving import mutate
from tests.serve.echo_model import VALUES, save_echo
from tests.serve.server import Server

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

COUNT = int(os.environ.get("GLOWPLUG_FUZZ_MANY", "10000"))
SETTLING = max(COUNT // 5, 1000)
ALLOWED_GROWTH_BYTES = 4 << 20  # over all processes; allocators round up, a leak of a kilobyte a request would be 20 MB
REST = {200, 400, 404}
RPC = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "UNIMPLEMENTED"}

BODIES = [
    '{"signature_name": "float32", "instances": [[1.0, 2.5e3], [-7, NaN]]}',
    '{"signature_name": "float64", "inputs": {"x": [1, Infinity]}}',
    '{"signature_name": "int8", "instances": [1, -128, 127]}',
    '{"signature_name": "uint64", "inputs": [18446744073709551615, 1]}',
    '{"signature_name": "bool", "inputs": [[true], [false]]}',
    '{"signature_name": "string", "instances": ["a", {"b64": "aGk="}, "\\u00e9"]}',
    '{"signature_name": "bytes", "inputs": [{"b64": "/w=="}]}',
    '{"signature_name": "several", "inputs": {"int_tensor": 1, "str_tensor": "", "float_tensor": [], "dbl_tensor": 8}}',
    '{"signature_name": "uneven", "inputs": [1, 2]}',
    '{"signature_name": "none_of_it", "instances": [[1.0]]}',
    '{"signature_name": "classify_x_to_y", "context": {"a": [1, 2]}, "examples": [{"x": 1.5}, {"x": [2.0]}]}',
    '{"signature_name": "regress_x_to_y", "examples": [{"x": {"b64": "aGk="}}, {"x": [true]}]}',
]
PIECES = ["{", "}", "[", "]", '"', ",", ":", "null", "true", "-1", "1e999", "9" * 30, "NaN", "-Infinity", "[" * 40]
PIECES += ['{"b64": "', "\\ud800", '"instances"', '"inputs"', '"x"', '"signature_name"', "\0", "several", "string"]
BINARY = [b"\xff", b"\xff" * 9 + b"\x01", b"\x12\x00", b"\x08", b"\x80\x80\x04", b"\x0a", b"\x1a", b"\x22", b"half"]
CALLS = {
    "PredictionService/Predict": "PredictRequest",
    "PredictionService/Classify": "ClassificationRequest",
    "PredictionService/Regress": "RegressionRequest",
    "PredictionService/MultiInference": "MultiInferenceRequest",
    "PredictionService/GetModelMetadata": "GetModelMetadataRequest",
    "ModelService/GetModelStatus": "GetModelStatusRequest",
}


def good_messages() -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for call, kind in CALLS.items():
        request = serving(kind)()
        if kind == "PredictRequest":
            request.model_spec.name = "echo"
            for dtype, values in VALUES.items():
                request.model_spec.signature_name = dtype
                array = np.array(values, object if dtype == "string" else dtype)
                request.inputs["x"].CopyFrom(encode(array, dtype))
                found.setdefault(call, []).append(request.SerializeToString())
            continue
        specs = [task.model_spec for task in (request.tasks.add(), request.tasks.add())] if "Multi" in kind else []
        for spec, method in zip(specs, ("classify", "regress"), strict=False):
            spec.name, spec.signature_name = "half", f"{method}_x_to_y"
        for task, method in zip(getattr(request, "tasks", []), ("classify", "regress"), strict=False):
            task.method_name = f"tensorflow/serving/{method}"
        if not specs:
            request.model_spec.name = "half"
            request.model_spec.signature_name = f"{call.split('/')[1].lower()}_x_to_y"
        if kind == "GetModelMetadataRequest":
            request.metadata_field.append("signature_def")
        if hasattr(request, "input"):
            example = request.input.example_list.examples.add()
            example.features.feature["x"].float_list.value.append(2.0)
        found[call] = [request.SerializeToString()]
    return found


class Sender:
    """Sends changed requests over one REST connection and one channel, and counts what comes back."""

    def __init__(self, server: Server, channel: grpc.Channel) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=60)
        self._channel, self._chance = channel, random.Random(1)
        self._messages = good_messages()
        self.seen: Counter[object] = Counter()

    def bodies(self, count: int) -> None:
        pieces = [piece.encode() for piece in PIECES]
        for _ in range(count):
            good = self._chance.choice(BODIES).encode()
            body, headers = mutate(good, self._chance, pieces), {}
            if self._chance.random() < 0.1:
                body, headers = mutate(gzip.compress(body), self._chance, BINARY), {"Content-Encoding": "gzip"}
            method = "classify" if b"classify" in good else "regress" if b"regress" in good else "predict"
            self._connection.request("POST", f"/v1/models/{self._model(method)}:{method}", body, headers)
            response = self._connection.getresponse()
            answer = response.read()
            self.seen[response.status] += 1
            assert response.status in REST, (body, answer)
            json.loads(answer)

    def _model(self, method: str) -> str:
        return "echo" if method == "predict" else "half"

    def messages(self, count: int) -> None:
        for _ in range(count):
            call = self._chance.choice(list(CALLS))
            data = mutate(self._chance.choice(self._messages[call]), self._chance, BINARY)
            error = self._channel.unary_unary(f"/tensorflow.serving.{call}").future(data, timeout=60).exception()
            code = "OK" if error is None else error.code().name
            self.seen[code] += 1
            assert code in RPC, (call, data, error)


def measured(server: Server) -> tuple[int, int, set[int]]:
    """Return the memory and the descriptors of all processes, and who they are.

    Only private memory: a share of TensorFlow's library grows whenever some other process that has it mapped ends.
    """
    everyone = [psutil.Process(server.process.pid), *psutil.Process(server.process.pid).children(recursive=True)]
    memory = sum(process.memory_full_info().uss for process in everyone)
    return memory, sum(process.num_fds() for process in everyone), {process.pid for process in everyone}


def test_ten_thousand_of_each(tmp_path, packed, half_plus_two):
    source = tmp_path / "1"
    save_echo(source)
    options = ["--instances", 2, "--max-tensor-bytes", 1 << 20]  # a few bytes may ask for a tensor of any size
    with (
        Server(f"echo={packed(source)}", f"half={half_plus_two}", *options) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        sender = Sender(server, channel)
        sender.bodies(SETTLING)
        sender.messages(SETTLING)
        memory, descriptors, processes = measured(server)
        sender.seen.clear()
        sender.bodies(COUNT)
        sender.messages(COUNT)
        after = measured(server)
        print(dict(sender.seen), "grown by", after[0] - memory, "bytes")
        assert sender.seen[200] > COUNT / 50
        assert sender.seen["OK"] > COUNT / 50
        assert after[2] == processes
        assert after[1] == descriptors
        assert after[0] - memory < ALLOWED_GROWTH_BYTES
        defects = [event for event in server.events if event["event"] == "defect"]
        assert not defects
        assert not server.other_output
