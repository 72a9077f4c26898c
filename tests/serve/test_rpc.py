from __future__ import annotations

import json
import subprocess
import sys

import grpc
import numpy as np
import pytest

from glowplug.serve.wire.messages import message, serving
from tests.serve.server import Server

pytestmark = pytest.mark.tensorflow

# The real client, as its users write it, in a process that imports all of TensorFlow.
CLIENT = """
import json, sys
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2,
    model_management_pb2, model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc, regression_pb2)
from tensorflow_serving.config import model_server_config_pb2

addresses, base = json.loads(sys.argv[1]), sys.argv[2]
seen = []
for address in addresses:
    channel = grpc.insecure_channel(address)
    prediction = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    models = model_service_pb2_grpc.ModelServiceStub(channel)

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "half"
    request.model_spec.signature_name = "serving_default"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([[1.0], [2.0]], dtype=tf.float32))
    answer = prediction.Predict(request, 10)
    y = tf.make_ndarray(answer.outputs["y"])
    predicted = [y.tolist(), str(y.dtype), list(answer.outputs["y"].float_val), answer.model_spec.version.value]

    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(2.0)
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name, request.model_spec.signature_name = "half", "classify_x_to_y"
    request.input.example_list.examples.append(example)
    classified = prediction.Classify(request, 10).result.classifications[0].classes[0].score

    request = regression_pb2.RegressionRequest()
    request.model_spec.name, request.model_spec.signature_name = "half", "regress_x_to_y"
    request.input.example_list.examples.append(example)
    regressed = prediction.Regress(request, 10).result.regressions[0].value

    request = inference_pb2.MultiInferenceRequest()
    request.input.example_list.examples.append(example)
    for signature, method in (("regress_x_to_y", "regress"), ("classify_x_to_y", "classify")):
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = "half", signature
    several = prediction.MultiInference(request, 10).results
    both = [several[0].regression_result.regressions[0].value,
            several[1].classification_result.classifications[0].classes[0].score]

    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "half"
    request.metadata_field.append("signature_def")
    described = get_model_metadata_pb2.SignatureDefMap()
    prediction.GetModelMetadata(request, 10).metadata["signature_def"].Unpack(described)
    inputs = {key: value.name for key, value in described.signature_def["serving_default"].inputs.items()}

    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "half"
    state = models.GetModelStatus(request, 10).model_version_status[0].state

    request = model_management_pb2.ReloadConfigRequest()
    entry = request.config.model_config_list.config.add(name="half", base_path=base, model_platform="tensorflow")
    control = model_service_pb2_grpc.ModelServiceStub(grpc.insecure_channel(addresses[-1]))
    reloaded = control.HandleReloadConfigRequest(request, 10).status.error_code

    seen.append([predicted, classified, regressed, both, sorted(inputs), state, reloaded])
print(json.dumps(seen))
"""


def test_the_real_client_over_tcp_and_a_unix_socket(half_plus_two, socket_folder):
    pytest.importorskip("tensorflow_serving", reason="tensorflow-serving-api is not installed")
    path, control = socket_folder / "grpc.sock", socket_folder / "control.sock"
    with Server(f"half={half_plus_two}", f"--grpc_socket_path={path}", "--control-socket", control) as server:
        addresses = [f"127.0.0.1:{server.grpc_port}", f"unix:{path}", f"unix:{control}"]
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, json.dumps(addresses), half_plus_two], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        one = [[[[2.5], [3.0]], "float32", [2.5, 3.0], 1], 3.0, 3.0, [3.0, 3.0], ["x"], 30, 0]
        assert json.loads(done.stdout.splitlines()[-1]) == [one, one, one]


@pytest.mark.parametrize(
    ("model", "inputs", "code", "part"),
    [
        ("none", {"x": np.zeros((1, 1), np.float32)}, "NOT_FOUND", "Latest(none)"),
        ("", {"x": np.zeros((1, 1), np.float32)}, "INVALID_ARGUMENT", "no name"),
        ("half", {"x": np.zeros((1, 1), np.int32)}, "INVALID_ARGUMENT", "'x' must be float32[?, 1]: got int32[1, 1]"),
        ("half", {"z": np.zeros(1, np.float32)}, "INVALID_ARGUMENT", "unexpected ['z'], missing ['x']"),
        ("half", {}, "INVALID_ARGUMENT", "missing ['x']"),
    ],
)
def test_errors(server, model, inputs, code, part):
    with pytest.raises(grpc.RpcError) as caught:
        server.predict(model, inputs)
    assert caught.value.code().name == code
    assert part in caught.value.details()


def test_output_filter(server):
    request = serving("PredictRequest")()
    request.model_spec.name = "half"
    request.output_filter.append("nothing")
    request.inputs["x"].dtype = 1
    request.inputs["x"].tensor_shape.dim.add(size=1)
    with pytest.raises(grpc.RpcError, match="output tensor alias not found in signature: nothing"):
        server.call("/tensorflow.serving.PredictionService/Predict", request, "PredictResponse")


def test_a_deadline(server):
    too_much = np.zeros((3_000_000, 1), np.float32)  # takes longer than that, however the client is scheduled
    with pytest.raises(grpc.RpcError) as caught:
        server.predict("half", {"x": too_much}, timeout=0.001)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_large_message(server):
    x = np.arange(3_000_000, dtype=np.float32).reshape(-1, 1)  # 12 MB: three times gRPC's own limit
    y = np.array(server.predict("half", {"x": x}).outputs["y"].float_val, np.float32)
    np.testing.assert_array_equal(y, (x / 2 + 2).ravel())


def test_health(server):
    kinds = [message(f"grpc.health.v1.HealthCheck{side}") for side in ("Request", "Response")]
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=kinds[0].SerializeToString,
            response_deserializer=kinds[1].FromString,
        )
        assert check(kinds[0](), timeout=10).status == 1
        assert check(kinds[0](service="tensorflow.serving.PredictionService"), timeout=10).status == 1
        with pytest.raises(grpc.RpcError, match="unknown service"):
            check(kinds[0](service="other"), timeout=10)


@pytest.mark.parametrize("package", ["grpc.reflection.v1alpha", "grpc.reflection.v1"])
def test_reflection_lists_services_and_gives_their_files(server, package):
    from google.protobuf import descriptor_pb2

    kinds = [message(f"grpc.reflection.v1alpha.ServerReflection{side}") for side in ("Request", "Response")]
    asked = [
        kinds[0](list_services=""),
        kinds[0](file_containing_symbol="tensorflow.serving.PredictionService"),
        kinds[0](file_by_filename="none.proto"),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        info = channel.stream_stream(
            f"/{package}.ServerReflection/ServerReflectionInfo",
            request_serializer=kinds[0].SerializeToString,
            response_deserializer=kinds[1].FromString,
        )
        services, files, missing = info(iter(asked), timeout=10)
    assert "tensorflow.serving.ModelService" in [one.name for one in services.list_services_response.service]
    names = [
        descriptor_pb2.FileDescriptorProto.FromString(data).name
        for data in files.file_descriptor_response.file_descriptor_proto
    ]
    assert {"serving.proto", "tensorflow.proto"} <= set(names)
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_no_process_of_the_server_imports_tensorflow(server):
    for process in [server.front_end(), *server.workers()]:
        maps = [one.path for one in process.memory_maps()]
        assert not any("_pywrap_tensorflow" in path for path in maps)
