"""Tokens, and who may change the configuration."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import grpc
import numpy as np
import pytest

from glowplug.core.errors import RequestError, UsageError
from glowplug.serve.access import Gate, Tokens
from glowplug.serve.wire.messages import message, serving
from tests.serve.server import Server

RELOAD = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
STATUS = "/tensorflow.serving.ModelService/GetModelStatus"


def line(name, token, scopes):
    return f"{name} sha256:{hashlib.sha256(token.encode()).hexdigest()} {scopes}\n"


def write(path: Path, text: str) -> Path:
    other = path.with_suffix(".new")
    other.write_text(text)
    other.rename(path)
    return path


def refusal(gate, header, scope):
    with pytest.raises(RequestError) as caught:
        gate.check(header, scope)
    return caught.value.code


def test_scopes(tmp_path):
    text = "# who: what\n\n" + line("app", "one", "predict") + line("ops", "two", "status,control  # all night")
    gate = Gate(Tokens(write(tmp_path / "tokens", text)))
    gate.check(b"", "")
    gate.check(b"Bearer one", "predict")
    gate.check(b"bearer two ", "control")
    assert refusal(gate, b"Bearer one", "status") == "PERMISSION_DENIED"
    assert refusal(gate, b"Bearer two", "predict") == "PERMISSION_DENIED"
    for header in (b"", b"Bearer", b"Bearer ", b"Bearer three", b"Basic one", b"one"):
        assert refusal(gate, header, "predict") == "UNAUTHENTICATED"


def test_without_tokens_all_is_open_but_control():
    gate = Gate(None)
    gate.check(b"", "predict")
    gate.check(b"", "status")
    assert refusal(gate, b"Bearer any", "control") == "PERMISSION_DENIED"


@pytest.mark.parametrize(
    "text", ["app s3cr3t predict", "app sha256:00 predict", line("a", "b", "all"), line("a", "b", "")]
)
def test_malformed_files(tmp_path, text):
    with pytest.raises(UsageError, match="tokens:1") as caught:
        Tokens(write(tmp_path / "tokens", text))
    assert "s3cr3t" not in str(caught.value).replace(str(tmp_path), "")


def ask(server, method, request, response, token=None, address=""):
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(address or f"127.0.0.1:{server.grpc_port}") as channel:
        stub = channel.unary_unary(method, lambda one: one.SerializeToString(), message(response).FromString)
        try:
            return "OK", stub(request, timeout=30, metadata=metadata)
        except grpc.RpcError as error:
            return error.code().name, error.details()


@pytest.mark.tensorflow
def test_a_server_with_tokens(half_plus_two, tmp_path, socket_folder):
    tokens = write(tmp_path / "tokens", line("app", "one", "predict") + line("ops", "two", "status,control"))
    control = socket_folder / "control.sock"
    with Server(f"half={half_plus_two}", "--auth-tokens", tokens, "--control-socket", control, "--cors") as server:

        def rest(method, path, token=None, body=None):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            status, _, found = server.request(method, path, body, headers)
            assert (status == 401) == (found.get("www-authenticate") == "Bearer")
            return status

        body = json.dumps({"instances": [1.0]}).encode()
        infer = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
        calls = (("/v1/models/half:predict", body), ("/v2/models/half/infer", json.dumps(infer).encode()))
        for path, sent in calls:
            seen = [rest("POST", path, token, sent) for token in (None, "three", "two", "one")]
            assert seen == [401, 401, 403, 200], path
        looks = ("/v1/models/half", "/v1/glowplug/status", "/monitoring/prometheus/metrics", "/v2", "/v2/models/half")
        for path in looks:
            assert [rest("GET", path, token) for token in (None, "one", "two")] == [401, 403, 200], path
        assert [rest("GET", path) for path in ("/nothing", "/healthz", "/readyz")] == [401, 200, 200]
        assert [rest("GET", path) for path in ("/v2/health/live", "/v2/health/ready")] == [200, 200]

        status, _, found = server.request("OPTIONS", calls[0][0], None, {"Origin": "http://page"})  # browsers ask first
        assert (status, found["access-control-allow-headers"]) == (200, "Content-Type, Authorization")

        request = serving("GetModelStatusRequest")()
        request.model_spec.name = "half"
        answers = [
            ask(server, STATUS, request, "tensorflow.serving.GetModelStatusResponse", token)[0]
            for token in (None, "three", "one", "two")
        ]
        assert answers == ["UNAUTHENTICATED", "UNAUTHENTICATED", "PERMISSION_DENIED", "OK"]
        live = message("inference.ServerLiveRequest")()
        service = "/inference.GRPCInferenceService"
        assert ask(server, f"{service}/ServerLive", live, "inference.ServerLiveResponse")[0] == "OK"
        made = message("inference.ModelInferRequest")(model_name="half")
        made.inputs.add(name="x", datatype="FP32", shape=[1, 1])
        made.raw_input_contents.append(np.ones(1, np.float32).tobytes())
        answers = [
            ask(server, f"{service}/ModelInfer", made, "inference.ModelInferResponse", token)[0]
            for token in (None, "two", "one")
        ]
        assert answers == ["UNAUTHENTICATED", "PERMISSION_DENIED", "OK"]

        request = serving("ReloadConfigRequest")()
        request.config.model_config_list.config.add(name="half", base_path=str(half_plus_two))
        response = "tensorflow.serving.ReloadConfigResponse"
        answers = [ask(server, RELOAD, request, response, token)[0] for token in (None, "one", "two")]
        assert answers == ["UNAUTHENTICATED", "PERMISSION_DENIED", "OK"]
        assert ask(server, RELOAD, request, response, address=f"unix:{control}")[0] == "OK"

        write(tokens, line("app", "four", "predict"))
        server.wait_event("tokens_read", tokens=1)
        assert [rest("POST", *calls[0][:1], token, body) for token in ("one", "four")] == [401, 200]
        write(tokens, "no line of tokens")
        server.wait_event("tokens_kept")
        assert rest("POST", calls[0][0], "four", body) == 200


@pytest.mark.tensorflow
def test_the_configuration_is_changed_over_the_control_socket_alone(half_plus_two, socket_folder):
    control, other = socket_folder / "control.sock", socket_folder / "grpc.sock"
    request = serving("ReloadConfigRequest")()
    request.config.model_config_list.config.add(name="half", base_path=str(half_plus_two))
    response = "tensorflow.serving.ReloadConfigResponse"
    with Server(f"half={half_plus_two}", "--control-socket", control, "--grpc_socket_path", other) as server:
        assert stat.S_IMODE(control.stat().st_mode) == 0o600
        for address in ("", f"unix:{other}"):
            code, text = ask(server, RELOAD, request, response, address=address)
            assert code == "PERMISSION_DENIED"
            assert "--control-socket" in text
        assert ask(server, RELOAD, request, response, address=f"unix:{control}")[0] == "OK"
