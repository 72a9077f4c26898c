"""Whatever is sent, the server answers with a fault of the caller's, stays up and does not grow."""

from __future__ import annotations

import http.client
import json
import os

import grpc
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.tensor_proto import encode

pytestmark = pytest.mark.tensorflow

COUNT = int(os.environ.get("GLOWPLUG_FUZZ_EXAMPLES", "300"))
FUZZ = settings(max_examples=COUNT, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
FAULTS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
keys = st.sampled_from(["instances", "inputs", "signature_name", "examples", "context", "x", "b64"])
signatures = st.sampled_from(["serving_default", "regress_x_to_y", "classify_x_to_y", "none"])
documents = st.dictionaries(keys, values | signatures, max_size=4).map(lambda document: json.dumps(document).encode())
near = st.builds(
    lambda x, name: json.dumps({"signature_name": name, "instances": x, "examples": x}).encode(),
    st.lists(values | st.fixed_dictionaries({"x": values}), max_size=4),
    signatures,
)
bodies = documents | near | st.binary(max_size=64)
methods = st.sampled_from(["predict", "classify", "regress"])


@pytest.fixture(scope="module")
def connection(server):
    made = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=30)
    yield made
    made.close()


@FUZZ
@given(methods, bodies)
def test_rest_bodies(connection, method, body):
    connection.request("POST", f"/v1/models/half:{method}", body)
    response = connection.getresponse()
    answer = response.read()
    assert response.status in (200, 400), answer
    assert set(json.loads(answer)) <= {"error", "predictions", "outputs", "results"}


@st.composite
def requests(draw):
    """A good request with some bytes changed, cut out or put in."""
    request = serving("PredictRequest")()
    request.model_spec.name = "half"
    request.model_spec.signature_name = draw(signatures)
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = draw(st.sampled_from(["float32", "int64", "float16", "bool", "float64"]))
    request.inputs["x"].CopyFrom(encode(np.zeros(shape, dtype), dtype))
    data = bytearray(request.SerializeToString())
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(data) - 1))
        data[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(data)


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as made:
        yield made


@FUZZ
@given(st.sampled_from(["Predict", "Classify", "Regress", "MultiInference", "GetModelMetadata"]), requests())
def test_rpc_messages(channel, method, data):
    call = channel.unary_unary(f"/tensorflow.serving.PredictionService/{method}")
    error = call.future(data, timeout=30).exception()
    assert error is None or error.code() in FAULTS, error


def test_the_server_did_not_grow(server, connection, channel):
    front = server.front_end()
    workers = {worker.pid for worker in server.workers()}

    def round_of_requests():
        for number in range(200):
            body = json.dumps({"instances": [number] if number % 2 else ["x"]})
            connection.request("POST", "/v1/models/half:predict", body)
            connection.getresponse().read()
        return front.memory_info().rss, front.num_fds()

    round_of_requests()
    before = round_of_requests()
    after = round_of_requests()
    assert after[1] == before[1]
    assert after[0] - before[0] < 2 << 20
    assert {worker.pid for worker in server.workers()} == workers
