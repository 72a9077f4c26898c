"""What users of TensorFlow Serving count on beyond the API: its flags, when it answers, what a reload waits for.

Each of these is something that TensorFlow Serving's own integration tests and sources expect of a server.
"""

from __future__ import annotations

import asyncio
import socket
import time

import grpc
import numpy as np
import pytest

from glowplug.core.errors import NotReadyError
from glowplug.serve.service import Service
from glowplug.serve.wire.messages import serving
from tests.serve.server import Server

pytestmark = pytest.mark.tensorflow

RELOAD = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
TWO = np.full((1, 1), 2, np.float32)


class Changes:
    """Stands in for the manager: calls that wait are woken by `tell`."""

    def __init__(self):
        self._waiting = []

    async def wait(self):
        self._waiting.append(asyncio.get_running_loop().create_future())
        await self._waiting[-1]

    def awaited(self):
        return [one for one in self._waiting if not one.done()]

    async def tell(self):
        while not self.awaited():
            await asyncio.sleep(0)
        self.awaited()[0].set_result(None)


def waiting_call(ready_after):
    """Return a call that finds its version loading that many times."""
    made = []

    async def call():
        made.append(None)
        if len(made) <= ready_after:
            raise NotReadyError("Servable not ready yet: Latest(half)")
        return len(made)

    return call


def test_a_call_is_made_again_whenever_a_version_changed():
    async def run():
        changes = Changes()
        service = Service(None, None, wait=changes.wait)
        answer = asyncio.ensure_future(service.when_ready(waiting_call(2), 60))
        for _ in range(3):
            assert not answer.done()
            await changes.tell()
        return await answer

    assert asyncio.run(run()) == 3


def test_a_call_waits_no_longer_than_its_time_and_not_while_the_server_stops():
    async def run():
        changes = Changes()
        service = Service(None, None, wait=changes.wait)
        with pytest.raises(NotReadyError, match="not ready yet"):
            await service.when_ready(waiting_call(9), 0.01)
        waits = asyncio.ensure_future(service.when_ready(waiting_call(9), 60))
        while not changes.awaited():
            await asyncio.sleep(0)
        service.stop_waiting()
        await changes.tell()
        with pytest.raises(NotReadyError):
            await waits
        with pytest.raises(NotReadyError):
            await service.when_ready(waiting_call(9), 60)

    asyncio.run(run())


def connect_when_open(port):
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 10).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


def test_whoever_finds_the_port_open_is_answered(shared_models):
    path = shared_models / "saved_model_half_plus_two_cpu"
    with Server(f"half={path}", "--no-pack", wait=False) as server:
        connect_when_open(server.grpc_port)
        assert server.predict("half", {"x": TWO}).outputs["y"].float_val == [3.0]
    with Server(f"half={path}", "--no-pack", wait=False) as server:
        connect_when_open(server.rest_port)
        assert server.post("/v1/models/half:predict", {"instances": [2.0]}) == (200, {"predictions": [3.0]})


def reload(server, *models):
    request = serving("ReloadConfigRequest")()
    request.config.model_config_list.SetInParent()
    for name, path in models:
        request.config.model_config_list.config.add(name=name, base_path=str(path), model_platform="tensorflow")
    return server.call(RELOAD, request, "ReloadConfigResponse", address=server.control)


def test_a_reload_waits_for_its_models_and_says_which_cannot_be_loaded(shared_models, half_plus_two, tmp_path):
    bad = tmp_path / "bad" / "1"
    bad.mkdir(parents=True)
    (bad / "saved_model.pb").write_bytes(b"nothing of the kind")
    plus_two = ("half", half_plus_two)
    with Server(f"half={half_plus_two}", "--no-pack") as server:
        assert reload(server, plus_two, ("three", shared_models / "saved_model_half_plus_three")).status.error_code == 0
        state = server.get("/v1/models/three")[1]["model_version_status"][0]["state"]
        assert state == "AVAILABLE"
        with pytest.raises(grpc.RpcError, match="model 'bad' cannot be loaded") as caught:
            reload(server, plus_two, ("bad", tmp_path / "bad"))
        assert caught.value.code() is grpc.StatusCode.UNKNOWN
        with pytest.raises(grpc.RpcError, match="only a model_config_list") as caught:
            server.call(RELOAD, serving("ReloadConfigRequest")(), "ReloadConfigResponse", address=server.control)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert server.predict("half", {"x": TWO}).outputs["y"].float_val == [3.0]


def test_the_name_of_a_socket_goes_to_the_server_that_came_last(half_plus_two, shared_models, socket_folder):
    path = socket_folder / "grpc.sock"
    other = shared_models / "saved_model_half_plus_three"
    with Server(f"half={half_plus_two}", "--grpc_socket_path", path) as first:
        assert first.predict("half", {"x": TWO}, address=f"unix:{path}").outputs["y"].float_val == [3.0]
        with Server(f"half={other}", "--no-pack", "--grpc_socket_path", path) as second:
            second.wait_event("socket_taken_over", path=str(path))
            first.__exit__()
            assert second.predict("half", {"x": TWO}, address=f"unix:{path}").outputs["y"].float_val == [4.0]


@pytest.mark.parametrize("packs", [True, False])
def test_metadata_names_the_methods_that_the_model_names(shared_models, packed, packs):
    expected = {  # TensorFlow 1 wrote them, TensorFlow 2 calls every method predict
        "saved_model_half_plus_two_cpu": {
            "classify_x_to_y": "classify",
            "regress_x2_to_y3": "regress",
            "regress_x_to_y": "regress",
            "regress_x_to_y2": "regress",
            "serving_default": "predict",
        },
        "saved_model_half_plus_two_tf2_cpu": dict.fromkeys(
            (
                "classify_x2_to_y3",
                "classify_x_to_y",
                "regress_x2_to_y3",
                "regress_x_to_y",
                "regress_x_to_y2",
                "serving_default",
            ),
            "predict",
        ),
    }
    paths = {name: shared_models / name / "00000123" for name in expected}
    served = [f"{name}={packed(path) if packs else path}" for name, path in paths.items()]
    with Server(*served, "--no-pack") as server:
        for name, methods in expected.items():
            _, document = server.get(f"/v1/models/{name}/metadata")
            found = document["metadata"]["signature_def"]["signature_def"]
            assert {key: one["method_name"] for key, one in found.items()} == {
                key: f"tensorflow/serving/{method}" for key, method in methods.items()
            }


def test_a_config_file_that_is_read_once(half_plus_two, tmp_path):
    file = tmp_path / "models.config"
    file.write_text(f'model_config_list {{ config {{ name: "half" base_path: "{half_plus_two}" }} }}')
    flags = ["--model_config_file_poll_wait_seconds=0", "--file_system_poll_wait_seconds=0.05"]
    with Server(f"--model_config_file={file}", *flags) as server:
        file.write_text("model_config_list { }")
        (tmp_path / "other").mkdir()
        assert reload(server, ("half", half_plus_two), ("other", half_plus_two)).status.error_code == 0
        assert server.post("/v1/models/half:predict", {"instances": [2.0]}) == (200, {"predictions": [3.0]})
        assert [event["event"] for event in server.events].count("config_loaded") == 1


def test_flags_that_change_nothing_are_taken(half_plus_two):
    flags = [
        "--grpc_channel_arguments=grpc.max_connection_age_ms=2000,grpc.so_reuseaddr=1",
        "--num_tflite_pools=2",
        "--enable_profiler",
        "--xla_cpu_compilation_enabled=true",
        "--enable_grpc_healthcheck_service=true",
        "--num_request_iterations_for_warmup=3",
        "--enable_serialization_as_tensor_content",
    ]
    with Server(f"half={half_plus_two}", *flags) as server:
        assert server.predict("half", {"x": TWO}).outputs["y"].float_val == [3.0]
        assert b"change nothing here" in server.other_output


def test_pages_of_other_origins(half_plus_two, server):
    path, origin = "/v1/models/half:predict", {"Origin": "https://elsewhere"}
    assert "access-control-allow-origin" not in server.request("POST", path, b'{"instances": [1]}', origin)[2]
    wanted = {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "POST, GET",
        "access-control-allow-headers": "Content-Type",
    }
    with Server(f"half={half_plus_two}", "--rest_api_enable_cors_support=true") as open_server:
        for method, headers, status in (("POST", origin, 200), ("OPTIONS", origin, 200), ("OPTIONS", {}, 400)):
            found, _, answered = open_server.request(method, path, b'{"instances": [1]}', headers)
            assert (found, answered.items() >= wanted.items()) == (status, True)
        assert "access-control-allow-origin" not in open_server.request("GET", "/healthz")[2]
