"""Open Inference Protocol, judged by its real clients; `make open-inference-clients` installs them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venvs" / "open-inference" / "bin" / "python"


@pytest.mark.skipif(not PYTHON.exists(), reason="`make open-inference-clients` installs the clients")
@pytest.mark.parametrize("client", ["http", "grpc", "kserve"])
def test_the_clients_of_triton_and_kserve(echo_server, client):
    ports = map(str, (echo_server.rest_port, echo_server.grpc_port))
    script = Path(__file__).with_name("open_inference_clients.py")
    done = subprocess.run([PYTHON, script, *ports, client], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    if client == "kserve":
        assert seen == {"rest": [True, True, True], "grpc": [True, True, True]}
        return
    refused = "input 'x' must be int32[...]: got float32[1]"
    assert (seen["live"], seen["ready"], seen["models"]) == (True, True, [True, True])
    assert seen["metadata"] == [["1"], "INT32"]
    assert seen["error"] == ["InferenceServerException", refused]
    if client == "http":
        assert seen["default"] == [1, 2]
    else:
        assert seen["streamed"] == [["1", [1]], refused, ["3", [3]]]
