"""Our messages are TensorFlow Serving's: the same names, numbers and types as in its own Python client."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from glowplug.serve.wire import messages
from glowplug.serve.wire.protos import build

DUMP = """
import importlib, json
names = ("prediction_service", "model_service", "prediction_log", "inference", "get_model_metadata")
for name in names:
    importlib.import_module(f"tensorflow_serving.apis.{name}_pb2")
from tensorflow_serving.config import model_server_config_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from google.protobuf import descriptor_pool
wanted = json.loads(input())
pool = descriptor_pool.Default()
found = {}
for name in wanted:
    message = pool.FindMessageTypeByName(name)
    found[name] = {f.name: [f.number, f.type, f.is_repeated] for f in message.fields}
print(json.dumps(found))
"""
OURS_ALONE = ("BatchingParameters", "MonitoringConfig", "PrometheusConfig", "SSLConfig")


def own_messages():
    def walk(message):
        yield message
        for inner in message.nested_types:
            yield from walk(inner)

    for file in ("tensorflow.proto", "serving.proto"):
        for top in messages.pool().FindFileByName(file).message_types_by_name.values():
            yield from walk(top)


@pytest.mark.tensorflow
def test_fields_are_those_of_the_client():
    pytest.importorskip("tensorflow_serving", reason="tensorflow-serving-api is not installed")
    ours = {
        message.full_name: {f.name: [f.number, f.type, f.is_repeated] for f in message.fields}
        for message in own_messages()
        if message.name not in OURS_ALONE
    }
    done = subprocess.run(
        [sys.executable, "-c", DUMP], input=json.dumps(list(ours)), capture_output=True, text=True, check=True
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    for name, fields in ours.items():
        for field, shape in fields.items():
            assert theirs[name].get(field) == shape, f"{name}.{field}"


def test_the_compiled_descriptors_are_those_of_the_files(tmp_path):
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed")
    assert build.build(tmp_path / "messages.desc") == 0
    stored = (build.FOLDER / "messages.desc").read_bytes()
    assert (tmp_path / "messages.desc").read_bytes() == stored
