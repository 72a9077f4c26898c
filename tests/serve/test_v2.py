"""Open Inference Protocol v2: bodies and messages as its specification writes them."""

from __future__ import annotations

import gzip
import json
import struct

import grpc
import numpy as np
import pytest

from glowplug.core.version import VERSION
from glowplug.serve.wire.messages import message
from tests.serve.echo_model import VALUES

pytestmark = pytest.mark.tensorflow

INFER = "/v2/models/echo/infer"
LENGTH = "Inference-Header-Content-Length"
NAMES = {"float32": "FP32", "float64": "FP64", "string": "BYTES"}


def infer(server, *inputs, path=INFER, **document):
    return server.post(path, {"inputs": inputs, **document})


def tensor(data, datatype="INT32", shape=None, **more):
    return {"name": "x", "datatype": datatype, "shape": [len(data)] if shape is None else shape, "data": data, **more}


def with_bytes(server, document, data, length=None, headers=None):
    text = json.dumps(document).encode()
    headers = {LENGTH: str(len(text) if length is None else length), **(headers or {})}
    body = text + data
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.compress(body)
    return server.request("POST", INFER, body, headers)


def call(server, method, request=None, **fields):
    made = request or message(f"inference.{method}Request")(**fields)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = channel.unary_unary(
            f"/inference.GRPCInferenceService/{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message(f"inference.{method}Response").FromString,
        )
        return stub(made, timeout=30)


def test_health_and_metadata(echo_server):
    assert echo_server.get("/v2/health/live") == (200, {"live": True})
    assert echo_server.get("/v2/health/ready") == (200, {"ready": True})
    assert echo_server.get("/v2") == (
        200,
        {"name": "glowplug", "version": VERSION, "extensions": ["binary_tensor_data"]},
    )
    for path in ("/v2/models/echo", "/v2/models/echo/versions/1"):
        status, found = echo_server.get(path)
        assert status == 200
        signatures = found.pop("parameters")["signatures"]
        assert {"serving_default", "string", "several"} <= set(signatures)
        assert found == {
            "name": "echo",
            "versions": ["1"],
            "platform": "tensorflow_savedmodel",
            "inputs": [{"name": "x", "datatype": "INT32", "shape": [-1]}],
            "outputs": [{"name": "y", "datatype": "INT32", "shape": [-1]}],
        }
    assert echo_server.get("/v2/models/echo/ready") == (200, {"name": "echo", "ready": True})
    assert echo_server.get("/v2/models/echo/versions/1/ready")[0] == 200


def test_json(echo_server):
    expected = {"model_name": "echo", "model_version": "1", "id": "42"}
    expected["outputs"] = [{"name": "y", "datatype": "INT32", "shape": [2, 2], "data": [1, 2, 3, 4]}]
    for data in ([1, 2, 3, 4], [[1, 2], [3, 4]]):
        assert infer(echo_server, tensor(data, shape=[2, 2]), id="42") == (200, expected)
    del expected["id"]
    path = "/v2/models/echo/versions/1/infer"
    assert infer(echo_server, tensor([1, 2, 3, 4], shape=[2, 2]), path=path) == (200, expected)
    _, found = infer(echo_server, tensor([7], shape=[]))
    assert found["outputs"] == [{"name": "y", "datatype": "INT32", "shape": [], "data": [7]}]
    _, found = infer(echo_server, tensor([], shape=[0, 3]))
    assert found["outputs"] == [{"name": "y", "datatype": "INT32", "shape": [0, 3], "data": []}]


@pytest.mark.parametrize("dtype", [name for name in VALUES if name != "string"])
def test_every_type_in_json_and_as_bytes(echo_server, dtype):
    datatype = NAMES.get(dtype, dtype.upper())
    values = np.array(VALUES[dtype], dtype)
    parameters = {"signature_name": dtype}
    given = tensor(VALUES[dtype], datatype)
    _, body, _ = echo_server.request("POST", INFER, json.dumps({"inputs": [given], "parameters": parameters}).encode())
    (found,) = json.loads(body)["outputs"]
    np.testing.assert_array_equal(np.array(found["data"], dtype), values)
    given = {key: given[key] for key in ("name", "datatype", "shape")}
    given["parameters"] = {"binary_data_size": values.nbytes}
    document = {"inputs": [given], "parameters": {**parameters, "binary_data_output": True}}
    status, body, headers = with_bytes(echo_server, document, values.tobytes())
    assert (status, headers["content-type"]) == (200, "application/octet-stream")
    cut = int(headers[LENGTH.lower()])
    assert json.loads(body[:cut])["outputs"] == [
        {"name": "y", "datatype": datatype, "shape": [2], "parameters": {"binary_data_size": values.nbytes}}
    ]
    assert body[cut:] == values.tobytes()


def test_strings(echo_server):
    parameters = {"signature_name": "string"}
    _, found = infer(echo_server, tensor(["grüße", ""], "BYTES"), parameters=parameters)
    assert found["outputs"] == [{"name": "y", "datatype": "BYTES", "shape": [2], "data": ["grüße", ""]}]
    given = tensor(["aGk="], "BYTES", parameters={"content_type": "base64"})
    assert infer(echo_server, given, parameters=parameters)[1]["outputs"][0]["data"] == ["hi"]
    data = b"".join(struct.pack("<I", len(one)) + one for one in (b"\xff\x00", b""))
    given = {"name": "x", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": len(data)}}
    document = {"inputs": [given], "parameters": parameters}
    status, body, _ = with_bytes(echo_server, document, data)
    assert status == 400
    assert "output 'y' holds bytes that are not UTF-8" in json.loads(body)["error"]
    document["outputs"] = [{"name": "y", "parameters": {"binary_data": True}}]
    for headers in ({}, {"Content-Encoding": "gzip"}):
        status, body, found = with_bytes(echo_server, document, data, headers=headers)
        assert (status, body[int(found[LENGTH.lower()]) :]) == (200, data)


def test_large_bodies_are_read_and_written_elsewhere(echo_server):
    values = list(range(40_000))
    assert infer(echo_server, tensor(values))[1]["outputs"][0]["data"] == values
    texts = [f"text {number}" for number in range(5000)]
    data = b"".join(struct.pack("<I", len(one)) + one.encode() for one in texts)
    given = {"name": "x", "datatype": "BYTES", "shape": [5000], "parameters": {"binary_data_size": len(data)}}
    document = {"inputs": [given], "parameters": {"signature_name": "string"}, "id": "big"}
    for outputs in ([], [{"name": "y", "parameters": {"binary_data": True}}]):
        status, body, found = with_bytes(echo_server, {**document, "outputs": outputs}, data)
        assert status == 200
        cut = int(found.get(LENGTH.lower(), len(body)))
        answer = json.loads(body[:cut])
        assert answer["id"] == "big"
        assert body[cut:] == data if outputs else answer["outputs"][0]["data"] == texts
    status, body, _ = with_bytes(echo_server, document, data[:-1])
    assert (status, "bytes of input 'x' are not all there" in json.loads(body)["error"]) == (400, True)


@pytest.mark.parametrize(
    ("document", "status", "part"),
    [
        ({"inputs": [tensor([1.5])]}, 400, "input 'x' must be int32[1]: got a fraction 1.5"),
        ({"inputs": [tensor([1.5], "FP32")]}, 400, "input 'x' must be int32[...]: got float32[1]"),
        ({"inputs": [tensor([1], "FLOAT")]}, 400, "input 'x' has an unknown datatype: FLOAT"),
        ({"inputs": [tensor([1, 2, 3], shape=[2])]}, 400, "the data of input 'x' do not fit its shape: 3 elements"),
        ({"inputs": [tensor([1], shape=[-1])]}, 400, "input 'x' has a negative dimension"),
        ({"inputs": [tensor([1], shape=[1 << 62, 1 << 62])]}, 400, "input 'x' is larger than this server takes"),
        ({"inputs": [tensor([1], shape=[True])]}, 400, "a list of integers"),
        ({"inputs": [tensor([1]) | {"name": "z"}]}, 400, "unexpected ['z'], missing ['x']"),
        ({"inputs": [tensor([1]), tensor([1])]}, 400, "two inputs have the same name"),
        ({"inputs": [{"name": "x", "datatype": "INT32", "shape": [1]}]}, 400, "either 'data' or"),
        ({"inputs": [tensor([1])], "outputs": [{"name": "q"}]}, 400, "output tensor alias not found in signature: q"),
        (
            {"inputs": [tensor([1])], "outputs": [{"name": "y", "parameters": {"classification": 3}}]},
            400,
            "not offered",
        ),
        (
            {"inputs": [tensor([1])], "outputs": [{"name": "y", "parameters": {"shared_memory_region": "r"}}]},
            400,
            "output 'y': shared memory is not offered",
        ),
        (
            {"inputs": [tensor([1]) | {"parameters": {"shared_memory_region": "r"}}]},
            400,
            "input 'x': shared memory is not offered",
        ),
        ({"inputs": [tensor([1])], "parameters": {"sequence_id": 7}}, 400, "sequences are not offered"),
        ({"inputs": [tensor([1])], "parameters": {"signature_name": "none"}}, 400, '"none" not found'),
        ({"inputs": [tensor([1])], "parameters": [1]}, 400, "parameters of the request must be an object: Array"),
        ({"inputs": [tensor([1])], "id": 7}, 400, "'id' must be a string"),
        ({"instances": [1]}, 400, "'inputs' must be a list of objects: Null"),
        ([1], 400, "is not object"),
    ],
)
def test_refusals_name_the_input_the_expected_and_the_seen(echo_server, document, status, part):
    found, body = echo_server.post(INFER, document)
    assert found == status
    assert part in body["error"]
    assert list(body) == ["error"]


def test_refusals_of_paths_and_heads(echo_server):
    for path, status in (
        ("/v2/models/none", 404),
        ("/v2/models/none/ready", 404),
        ("/v2/models/echo/versions/9", 404),
        ("/v2/models/echo/versions/" + "9" * 5000, 404),
        ("/v2/models/echo/versions/stable", 400),
        ("/v2/models", 404),
        ("/v2x", 404),
        (INFER, 400),
    ):
        found, body = echo_server.get(path)
        assert (found, list(body)) == (status, ["error"]), path
    document = {"inputs": [tensor([1])]}
    for length in (1 << 40, "x", "9" * 5000, 3):
        assert with_bytes(echo_server, document, b"", length=length)[0] == 400
    assert with_bytes(echo_server, document, b"more")[0] == 400
    assert with_bytes(echo_server, document, b"", headers={"Content-Encoding": "br"})[0] == 400


def test_grpc_raw_and_typed(echo_server):
    assert call(echo_server, "ServerLive").live
    assert call(echo_server, "ServerReady").ready
    assert call(echo_server, "ModelReady", name="echo", version="1").ready
    assert call(echo_server, "ServerMetadata").name == "glowplug"
    found = call(echo_server, "ModelMetadata", name="echo")
    assert (list(found.versions), found.inputs[0].datatype, list(found.inputs[0].shape)) == (["1"], "INT32", [-1])
    for dtype, values in VALUES.items():
        request = message("inference.ModelInferRequest")(model_name="echo", id="7")
        request.parameters["signature_name"].string_param = dtype
        given = request.inputs.add(name="x", datatype=NAMES.get(dtype, dtype.upper()), shape=[2])
        field = {"float32": "fp32", "float64": "fp64", "string": "bytes", "bool": "bool", "int64": "int64"}.get(dtype)
        field = field or {"uint64": "uint64"}.get(dtype, "uint" if dtype[0] == "u" else "int")
        getattr(given.contents, f"{field}_contents").extend(values)
        answer = call(echo_server, "ModelInfer", request)
        assert (answer.id, answer.model_version, list(answer.outputs[0].shape)) == ("7", "1", [2])
        seen = list(getattr(answer.outputs[0].contents, f"{field}_contents"))
        np.testing.assert_array_equal(seen, values)
        given.ClearField("contents")
        raw = b"".join(struct.pack("<I", len(v)) + v for v in values) if dtype == "string" else None
        request.raw_input_contents.append(np.array(values, dtype).tobytes() if raw is None else raw)
        answer = call(echo_server, "ModelInfer", request)
        assert list(answer.raw_output_contents) == list(request.raw_input_contents)


def test_large_contents_over_grpc(echo_server):
    request = message("inference.ModelInferRequest")(model_name="echo")
    request.inputs.add(name="x", datatype="INT32", shape=[50_000]).contents.int_contents.extend(range(50_000))
    answer = call(echo_server, "ModelInfer", request)
    np.testing.assert_array_equal(np.frombuffer(answer.raw_output_contents[0], np.int32), range(50_000))


def test_refusals_over_grpc(echo_server):
    def refusal(change, code=grpc.StatusCode.INVALID_ARGUMENT):
        request = message("inference.ModelInferRequest")(model_name="echo")
        given = request.inputs.add(name="x", datatype="INT32", shape=[2])
        given.contents.int_contents.extend([1, 2])
        change(request, given)
        with pytest.raises(grpc.RpcError) as caught:
            call(echo_server, "ModelInfer", request)
        assert caught.value.code() is code
        return caught.value.details()

    def raw(request, given):
        request.raw_input_contents.append(b"1234567")
        given.ClearField("contents")

    def narrow(request, given):
        given.datatype = "INT8"
        given.contents.int_contents[0] = 300

    assert "2 elements in int_contents for INT32[3]" in refusal(lambda r, g: g.shape.__setitem__(0, 3))
    assert "7 bytes for INT32[2]" in refusal(raw)
    assert "sent twice" in refusal(lambda r, g: r.raw_input_contents.append(b"12345678"))
    assert "an entry for each input" in refusal(lambda r, g: r.raw_input_contents.extend([b"", b""]))
    assert "got 300, which is out of range" in refusal(narrow)
    assert "are not 2 strings: 0 in 7 bytes" in refusal(lambda r, g: (raw(r, g), setattr(g, "datatype", "BYTES")))
    assert "unknown datatype" in refusal(lambda r, g: setattr(g, "datatype", "?"))
    assert "must be sent raw" in refusal(lambda r, g: setattr(g, "datatype", "FP16"))

    def elsewhere(tensor):
        tensor.parameters["shared_memory_region"].string_param = "r"

    assert "input 'x': shared memory is not offered" in refusal(lambda r, g: elsewhere(g))
    assert "output 'y': shared memory is not offered" in refusal(lambda r, g: elsewhere(r.outputs.add(name="y")))
    not_found = grpc.StatusCode.NOT_FOUND
    assert "Latest(none)" in refusal(lambda r, g: setattr(r, "model_name", "none"), not_found)
    with pytest.raises(grpc.RpcError) as caught:
        call(echo_server, "ModelReady", name="none")
    assert caught.value.code() is not_found
