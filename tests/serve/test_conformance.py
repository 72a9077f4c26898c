"""Every form that TensorFlow Serving documents for its REST API, asked of a running server.

The cases are those of its documentation and of its own tests of JSON and tensors; the model answers what it was given,
so that a wrong value, shape or type on the way in or out shows.
"""

from __future__ import annotations

import json

import grpc
import numpy as np
import pytest

from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.tensor_proto import decode, encode
from tests.serve.echo_model import TYPES, VALUES
from tests.serve.server import Server

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def echo(echo_server):
    return echo_server


def ask(server: Server, signature: str, text: str) -> tuple[int, str]:
    body = text.replace("{", f'{{"signature_name": "{signature}", ', 1) if signature else text
    status, answer, headers = server.request("POST", "/v1/models/echo:predict", body.encode())
    assert headers["content-type"] == "application/json"
    return status, answer.decode()


@pytest.mark.parametrize(
    ("signature", "body", "answer"),
    [
        # one unnamed tensor, in rows and in columns
        ("", '{"instances": [[1,2],[3,4],[5,6]]}', '{"predictions": [[1,2],[3,4],[5,6]]}'),
        ("", '{"inputs": [[[1,2],[3,4],[5,6]]]}', '{"outputs": [[[1,2],[3,4],[5,6]]]}'),
        ("", '{"inputs": {"x": [[[1,2],[3,4],[5,6]]]}}', '{"outputs": [[[1,2],[3,4],[5,6]]]}'),
        ("", '{"instances": [{"x": [1, 2]}, {"x": [3, 4]}]}', '{"predictions": [[1,2],[3,4]]}'),
        ("", '{"instances": [[[1, 2]], [[3, 4]]]}', '{"predictions": [[[1,2]],[[3,4]]]}'),
        ("", '{"inputs": 7}', '{"outputs": 7}'),
        ("", '{"inputs": {"x": 7}}', '{"outputs": 7}'),
        ("", '{"inputs": []}', '{"outputs": []}'),
        ("", '{"instances": [[]]}', '{"predictions": [[]]}'),
        ("", '{"inputs": [[], []]}', '{"outputs": [[], []]}'),
        ("", '{"inputs": {"x": 7, "other": "is not looked at"}}', '{"outputs": 7}'),
        ("", '{"instances": [1], "other": {"is": ["not", "looked at"]}}', '{"predictions": [1]}'),
        ("", '{"instances": [1]}X', '{"predictions": [1]}'),
        # numbers
        ("float32", '{"instances": [1, 2.0, 3, 5.003, 0.007, 0.0]}', '{"predictions": [1.0,2.0,3.0,5.003,0.007,0.0]}'),
        ("float64", '{"instances": [1.0, 2, 0.662, 0, 1e-7]}', '{"predictions": [1.0,2.0,0.662,0.0,1e-07]}'),
        ("float32", '{"instances": [1435774380, 1435774380.0]}', '{"predictions": [1435774336.0,1435774336.0]}'),
        ("float64", '{"instances": [1435774380]}', '{"predictions": [1435774380.0]}'),
        ("float32", '{"instances": [1.7976931348623157e308]}', '{"predictions": [Infinity]}'),
        ("float32", '{"instances": [-1.7976931348623157e308]}', '{"predictions": [-Infinity]}'),
        ("float32", '{"instances": [2.2250738585072014e-308]}', '{"predictions": [0.0]}'),
        ("float32", '{"instances": [NaN, Infinity, -Infinity]}', '{"predictions": [NaN, Infinity, -Infinity]}'),
        (
            "float32",
            '{"inputs": [[NaN, Infinity], [3, -Infinity]]}',
            '{"outputs": [[NaN, Infinity], [3.0, -Infinity]]}',
        ),
        ("float64", '{"inputs": NaN}', '{"outputs": NaN}'),
        (
            "float32",
            '{"inputs": [9000000, 999999, 0.5, 0.0003, 0.00003]}',
            '{"outputs": [9e6,999999.0,0.5,0.0003,3e-05]}',
        ),
        ("int8", '{"inputs": [-128, 127]}', '{"outputs": [-128, 127]}'),
        ("uint8", '{"inputs": [0, 255]}', '{"outputs": [0, 255]}'),
        ("int16", '{"inputs": [-32768, 32767]}', '{"outputs": [-32768, 32767]}'),
        (
            "int64",
            '{"inputs": [9007199254740993, -9223372036854775808]}',
            '{"outputs": [9007199254740993, -9223372036854775808]}',
        ),
        ("uint32", '{"inputs": 4294967295}', '{"outputs": 4294967295}'),
        ("uint64", '{"inputs": [18446744073709551615, 1]}', '{"outputs": [18446744073709551615, 1]}'),
        ("bool", '{"instances": [true, false]}', '{"predictions": [true, false]}'),
        # text and bytes
        (
            "string",
            '{"instances": ["foo", "bar", "b\\u00e4z", ""]}',
            '{"predictions": ["foo", "bar", "b\\u00e4z", ""]}',
        ),
        ("string", '{"instances": [{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}]}', '{"predictions": ["hello", "world"]}'),
        (
            "string",
            '{"instances": [[{"b64": "aGVsbG8="}], [{"b64": "d29ybGQ="}]]}',
            '{"predictions": [["hello"], ["world"]]}',
        ),
        ("string", '{"instances": [{"x": [[{"b64": "aGVsbG8="}], ["w"]]}]}', '{"predictions": [[["hello"], ["w"]]]}'),
        ("string", '{"instances": ["a", {"b64": "Yg=="}]}', '{"predictions": ["a", "b"]}'),
        ("string", '{"inputs": {"b64": "aGVsbG8="}}', '{"outputs": "hello"}'),
        ("string", '{"inputs": {"x": {"b64": "aGVsbG8"}}}', '{"outputs": "hello"}'),
        (
            "only_bytes",
            '{"instances": ["hello", {"b64": "/w=="}]}',
            '{"predictions": [{"b64": "aGVsbG8="}, {"b64": "/w=="}]}',
        ),
        ("only_bytes", '{"inputs": [["tf"], ["x"]]}', '{"outputs": [[{"b64": "dGY="}], [{"b64": "eA=="}]]}'),
        ("bytes", '{"instances": ["tf"]}', '{"predictions": [{"image_bytes": {"b64": "dGY="}, "caption": "tf"}]}'),
        ("bytes", '{"inputs": "tf"}', '{"outputs": {"image_bytes": {"b64": "dGY="}, "caption": "tf"}}'),
        # several named tensors
        (
            "several",
            '{"instances": [{"int_tensor": [[1,2],[3,4],[5,6]], "str_tensor": ["foo", "bar"], '
            '"float_tensor": [1.0, NaN], "dbl_tensor": [NaN]}, '
            '{"int_tensor": [[7,8],[9,0],[1,2]], "str_tensor": ["baz", "bat"], '
            '"float_tensor": [2.0, Infinity], "dbl_tensor": [2.0]}]}',
            '{"predictions": [{"int_tensor_out": [[1,2],[3,4],[5,6]], "str_tensor_out": ["foo", "bar"], '
            '"float_tensor_out": [1.0, NaN], "dbl_tensor_out": [NaN]}, {"int_tensor_out": [[7,8],[9,0],[1,2]], '
            '"str_tensor_out": ["baz", "bat"], "float_tensor_out": [2.0, Infinity], "dbl_tensor_out": [2.0]}]}',
        ),
        (
            "several",
            '{"inputs": {"int_tensor": [[[1,2],[3,4]]], "str_tensor": {"b64": "aGVsbG8="}, "float_tensor": [], '
            '"dbl_tensor": 8}}',
            '{"outputs": {"int_tensor_out": [[[1,2],[3,4]]], "str_tensor_out": "hello", "float_tensor_out": [], '
            '"dbl_tensor_out": 8.0}}',
        ),
        ("uneven", '{"inputs": [1, 2]}', '{"outputs": {"y": [1.0, 2.0], "sum": 3.0, "twice": [1.0, 2.0, 1.0, 2.0]}}'),
        ("scalar", '{"inputs": [1, 2]}', '{"outputs": 3.0}'),
        ("none_of_it", '{"instances": [[1.0]]}', '{"predictions": []}'),
        ("none_of_it", '{"inputs": [[1.0]]}', '{"outputs": {"a": [], "b": []}}'),
    ],
)
def test_what_is_answered(echo, signature, body, answer):
    status, found = ask(echo, signature, body)
    assert status == 200, found
    kind = np.float64 if signature == "float64" else np.float32  # the digits of a float32 name it, and no other number
    assert comparable(json.loads(found), kind) == comparable(json.loads(answer), kind)


def comparable(value, kind):
    """Tell 1 from 1.0 and from true, and let NaN equal itself."""
    if isinstance(value, dict):
        return {key: comparable(item, kind) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item, kind) for item in value]
    return (type(value).__name__, str(kind(value)) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("signature", "body", "part"),
    [
        ("", "", "JSON Parse error: The document is empty"),
        ("", "  ", "JSON Parse error: The document is empty"),
        ("", "instances = [1, 2]", "JSON Parse error: Invalid value"),
        ("", "[1]", "is not object"),
        (
            "",
            '{"signature_name": 5, "instances": [[1,2],[3,4],[5,6,7]]}',
            "'signature_name' key must be a string value.",
        ),
        ("", '{"signature_name": ' + "[" * 500 + "]" * 500 + "}", "'signature_name' key must be a string value"),
        (
            "",
            '{"signature_name": "none", "instances": [1]}',
            'Serving signature name: "none" not found in signature def',
        ),
        ("", "{}", "Missing 'inputs' or 'instances' key"),
        (
            "",
            '{"instances": [1], "inputs": [1]}',
            "Not formatted correctly expecting only one of 'inputs' or 'instances'",
        ),
        ("", '{"instances": 1}', "Expecting 'instances' to be an list/array"),
        ("", '{"instances": {"x": 1}}', "Expecting 'instances' to be an list/array"),
        ("", '{"instances": []}', "No values in 'instances' array"),
        ("", '{"instances": [[1,2],[3,4],[5,6,7]]}', "input 'x' must be int32[...]"),
        ("", '{"instances": [[1,2],[3,4],[[5,6]]]}', "input 'x' must be int32[...]"),
        ("", '{"instances": [1, [1]]}', "input 'x' must be int32[...]"),
        ("", '{"instances": [[1], 1]}', "input 'x' must be int32[...]"),
        ("", '{"instances": [[1,2],["a", "b"]]}', "not of expected type: int32"),
        ("", '{"inputs": [1.5]}', "not of expected type: int32"),
        ("", '{"inputs": 1.0}', "not of expected type: int32"),
        ("", '{"inputs": [2147483648]}', "out of range"),
        ("uint8", '{"inputs": [-1]}', "out of range"),
        ("uint64", '{"inputs": [-1]}', "out of range"),
        ("uint64", '{"inputs": [18446744073709551616]}', "not of expected type: uint64"),
        ("int64", '{"inputs": [9223372036854775808]}', "out of range"),
        ("float32", '{"instances": ["x", "y"]}', "not of expected type: float"),
        ("float64", '{"instances": ["x", "y"]}', "not of expected type: double"),
        ("float32", '{"instances": [null]}', "not of expected type: float"),
        ("float32", '{"instances": [true]}', "not of expected type: float"),
        ("float32", '{"instances": [{"b64": "aGVsbG8="}]}', "not of expected type: float"),
        ("float64", '{"instances": [1e999]}', "JSON Parse error"),
        ("bool", '{"instances": [1]}', "not of expected type: bool"),
        ("bool", '{"instances": ["true"]}', "not of expected type: bool"),
        ("string", '{"instances": [1]}', "not of expected type: string"),
        ("string", '{"instances": [{"b64": 5}]}', "keys must be equal to: x"),
        ("string", '{"inputs": [{"b64": "a", "more": 1}]}', "not of expected type: string"),
        ("string", '{"instances": [{"b64": "%"}]}', "unable to base64 decode"),
        ("several", '{"instances": [[1, 2]]}', "instances is a plain list, but expecting list of objects"),
        ("several", '{"inputs": [1, 2]}', "inputs is a plain value/list, but expecting an object"),
        ("several", '{"inputs": {"int_tensor": 1}}', "Missing named input: dbl_tensor in 'inputs' object."),
        ("several", '{"instances": [{"int_tensor": 1}]}', "keys must be equal to:"),
        ("", '{"instances": [{"x": 1}, [1]]}', "Expecting object but got list at item 1 of input list"),
        ("", '{"instances": [1, {"x": 1}]}', "Expecting value/list but got object at item 1 of input list"),
        ("", '{"instances": [{"x": [1, 2]}, {"x": [[1, 2]]}]}', "input 'x' must be int32[...]"),
        ("", '{"instances": [{"z": 1}]}', "keys must be equal to: x"),
        ("complex", '{"instances": [1.0]}', "Failed to write JSON value for tensor type: complex64"),
        ("scalar", '{"instances": [1.0]}', "Tensor name: y has no shape information"),
        ("uneven", '{"instances": [1.0, 2.0]}', "Tensor name: sum has no shape information"),
    ],
)
def test_what_is_refused(echo, signature, body, part):
    status, found = ask(echo, signature, body)
    document = json.loads(found)
    assert (status, list(document)) == (400, ["error"]), found
    assert part in document["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "part"),
    [
        ("GET", "/v1/models", 400, "Missing model name in request."),
        ("GET", "/v1/models/versions/1", 400, "Missing model name in request."),
        ("POST", "/v1/models", 400, "Malformed request: POST /v1/models"),
        ("GET", "/v1/foo", 400, "Malformed request: GET /v1/foo"),
        ("POST", "/v1/foo", 400, "Malformed request"),
        ("GET", "/v1/models/debug/model_name", 400, "Malformed request"),
        ("GET", "/v1/models/echo:predict", 400, "Malformed request"),
        ("PUT", "/v1/models/echo:predict", 400, "Malformed request"),
        ("DELETE", "/v1/models/echo", 400, "Malformed request"),
        ("POST", "/v1/models/echo", 400, "Malformed request"),
        ("POST", "/v1/models/echo/version/50:regress", 400, "Malformed request"),
        ("POST", "/v1/models/echo/versions/HELLO:regress", 400, "Malformed request"),
        ("POST", "/v1/models/echo/versions/18446744073709551615:regress", 400, "Failed to convert version"),
        ("POST", "/v1/models/echo/metadata", 400, "Malformed request"),
        ("POST", "/v1/models/echo/label/some:regress", 400, "Malformed request"),
        ("POST", "/v1/models/echo/versions/50/labels/some:regress", 400, "Malformed request"),
        ("POST", "/v1/models/echo:PREDICT", 400, "Malformed request"),
        ("POST", "/v1/models/echo/labels/none:predict", 400, "Unrecognized servable version label: none"),
        ("POST", "/v1/models/foo:predict", 404, "Servable not found for request: Latest(foo)"),
        ("POST", "/v1/models/foo/versions/50:predict", 404, "Servable not found for request: Specific(foo, 50)"),
        ("POST", "/v1/models/echo/versions/99:predict", 404, "Servable not found for request: Specific(echo, 99)"),
        ("GET", "/v1/models/foo", 404, "Could not find any versions of model foo"),
        ("GET", "/v1/models/echo/versions/99", 404, "Could not find version 99 of model echo"),
        ("GET", "/v1/models/foo/metadata", 404, "Servable not found for request: Latest(foo)"),
        ("GET", "/statuspage", 404, "Not found"),
    ],
)
def test_paths_that_lead_nowhere(echo, method, path, status, part):
    body = b'{"instances": [1], "examples": [{"x": 1}]}' if method == "POST" else None
    found, answer, headers = echo.request(method, path, body)
    assert found == status, answer
    assert headers["content-type"] == "application/json"
    assert part in json.loads(answer)["error"]


@pytest.mark.parametrize("path", ["/V1/Models/echo/VERSIONS/1:predict", "/v1/models/%65cho:predict"])
def test_paths_that_lead_to_the_model(echo, path):
    assert echo.post(path, {"instances": [1]}) == (200, {"predictions": [1]})


def test_the_example_of_the_documentation(shared_models, packed):
    name = "saved_model_half_plus_three"
    with Server(f"{name}={packed(shared_models / name / '00000123')}") as server:
        assert server.post(f"/v1/models/{name}:predict", {"instances": [1.0, 2.0, 5.0]}) == (
            200,
            {"predictions": [3.5, 4.0, 5.5]},
        )
        body = {"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}
        assert server.post(f"/v1/models/{name}:regress", body) == (200, {"results": [3.5, 4.0]})
        body = {"instances": [1.0, 5.0]}
        wanted = {"error": "Servable not found for request: Latest(half)"}
        assert server.post("/v1/models/half:predict", body) == (404, wanted)


def test_metadata_has_every_field(echo):
    status, document = echo.get("/v1/models/echo/metadata")
    assert status == 200
    assert document["model_spec"] == {"name": "echo", "signature_name": "", "version": "1"}
    found = document["metadata"]["signature_def"]["signature_def"]
    entry = found["uneven"]
    assert set(found) >= {"serving_default", "several", *TYPES}
    assert set(entry) == {"inputs", "outputs", "method_name", "defaults"}
    assert entry["method_name"] == "tensorflow/serving/predict"
    x = entry["inputs"]["x"]
    assert (x["dtype"], x["tensor_shape"]) == (
        "DT_FLOAT",
        {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
    )
    assert x["name"]
    assert found["float32"]["inputs"]["x"]["tensor_shape"] == {"dim": [], "unknown_rank": True}
    assert entry["outputs"]["sum"]["tensor_shape"] == {"dim": [], "unknown_rank": False}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (2,), (1, 2), (0, 3)])
def test_rpc_answers_the_same_tensor(echo, dtype, shape):
    array = np.resize(np.array(VALUES[dtype], object if dtype == "string" else dtype), shape)
    request = serving("PredictRequest")()
    request.model_spec.name, request.model_spec.signature_name = "echo", dtype
    request.inputs["x"].CopyFrom(encode(array, dtype))
    answer = echo.call("/tensorflow.serving.PredictionService/Predict", request, "PredictResponse")
    assert (answer.model_spec.name, answer.model_spec.signature_name) == ("echo", dtype)
    assert answer.model_spec.version.value == 1
    found = decode(answer.outputs["y"], "y", Limits())
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tolist() == array.tolist() if dtype == "string" else found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("change", "code", "part"),
    [
        ({}, "OK", ""),
        ({"name": ""}, "INVALID_ARGUMENT", "ModelSpec has no name specified"),
        ({"name": "foo"}, "NOT_FOUND", "Servable not found for request: Latest(foo)"),
        ({"version": 9}, "NOT_FOUND", "Servable not found for request: Specific(echo, 9)"),
        ({"label": "none"}, "INVALID_ARGUMENT", "Unrecognized servable version label: none"),
        ({"signature": "none"}, "INVALID_ARGUMENT", 'Serving signature name: "none" not found in signature def'),
        ({"dtype": "float64"}, "INVALID_ARGUMENT", "input 'x' must be int32[...]: got float64[1]"),
        ({"input": "z"}, "INVALID_ARGUMENT", "unexpected ['z'], missing ['x']"),
        ({"filter": ["z"]}, "INVALID_ARGUMENT", "output tensor alias not found in signature: z"),
        ({"filter": ["y", "y"]}, "INVALID_ARGUMENT", "duplicate output tensor alias: y"),
        ({"filter": ["y"]}, "OK", ""),
    ],
)
def test_errors_of_rpc(echo, change, code, part):
    request = serving("PredictRequest")(output_filter=change.get("filter", []))
    spec = request.model_spec
    spec.name, spec.signature_name = change.get("name", "echo"), change.get("signature", "")
    if "version" in change:
        spec.version.value = change["version"]
    if "label" in change:
        spec.version_label = change["label"]
    dtype = change.get("dtype", "int32")
    request.inputs[change.get("input", "x")].CopyFrom(encode(np.ones(1, dtype), dtype))
    found, text = "OK", ""
    try:
        echo.call("/tensorflow.serving.PredictionService/Predict", request, "PredictResponse")
    except grpc.RpcError as error:
        found, text = error.code().name, error.details()
    assert found == code, text
    assert part in text
