"""A server whose models do not load, or are not there yet: it says so, and does for the others what it is there for."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys

import grpc
import pytest

from tests.components.seaweedfs import SeaweedFS
from tests.serve.server import Server, copy_version
from tests.serve.test_drop_in import reload
from tests.serve.test_faults import config_of, replace_file

pytestmark = pytest.mark.tensorflow

ONE = {"instances": [1.0]}
POLL = "--file_system_poll_wait_seconds=0.1"


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A model that never answers its first call."""
    import tensorflow as tf

    def count(x):
        return {"y": tf.while_loop(lambda y: tf.reduce_all(y >= 0), lambda y: (y + 1,), (tf.abs(x),))[0]}

    folder = tmp_path_factory.mktemp("endless") / "1"
    module = tf.Module()
    module.f = tf.function(count, input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    tf.saved_model.save(module, str(folder), {"serving_default": module.f})
    return folder.parent


def test_a_model_that_never_answers_does_not_keep_the_others(endless, half_plus_two, tmp_path):
    base = tmp_path / "endless"
    base.mkdir()
    shutil.copytree(endless / "1", base / "1")
    file = tmp_path / "models.config"
    file.write_text(config_of(endless=(base, ""), half=(half_plus_two, "")))
    flags = (f"--model_config_file={file}", POLL, "--no-pack", "--load-patience-seconds", 0.5)
    with Server(*flags, wait=False) as server:
        server.wait_event("available", model="half")
        assert server.wait_event("load_overdue", model="endless")["stage"] == "load"
        assert server.post("/v1/models/half:predict", ONE) == (200, {"predictions": [2.5]})
        assert server.request("GET", "/readyz")[0] == 503
        status = server.get("/v1/glowplug/status")[1]
        assert status["ready"] is False
        assert "longer than" in status["models"]["endless"]["1"]["problem"]
        assert server.get("/v1/models/endless")[1]["model_version_status"][0]["state"] == "LOADING"
        # a configuration is applied, and answered for, meanwhile
        models = [("endless", base), ("half", half_plus_two), ("again", half_plus_two)]
        assert reload(server, *models).status.error_code == 0
        assert server.post("/v1/models/again:predict", ONE) == (200, {"predictions": [2.5]})
        # a newer version takes the place of the one that hangs
        copy_version(half_plus_two, base / "2")
        server.wait_event("available", model="endless", version=2)
        server.wait_event("unloaded", model="endless", version=1)
        assert server.request("GET", "/readyz")[0] == 200


def test_a_server_whose_only_model_hangs_stops_when_it_is_told_to(endless):
    with Server(f"endless={endless}", "--no-pack", wait=False) as server:
        server.wait_event("loading", model="endless")
        with pytest.raises(grpc.RpcError) as caught:
            server.predict("endless", {}, timeout=1)
        assert caught.value.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
        workers = server.workers()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(15) == 0
        assert not any(one.is_running() for one in workers)


def test_a_base_path_that_is_not_there_yet_is_waited_for(half_plus_two, tmp_path):
    base = tmp_path / "later"
    with Server("--model_name=half", f"--model_base_path={base}", POLL, wait=False) as server:
        said = server.wait_event("base_path_failed", model="half")["error"]
        assert str(base) in said
        assert "not there yet" in said
        assert server.request("GET", "/readyz")[0] == 503
        assert server.request("GET", "/healthz")[0] == 200
        assert server.post("/v1/models/half:predict", ONE)[0] == 404
        document = server.request("GET", "/v1/glowplug/status")[1].decode()
        assert "not there yet" in document
        assert str(base) not in document
        base.mkdir()
        copy_version(half_plus_two, base / "1")
        server.wait_event("available", model="half", version=1)
        assert server.post("/v1/models/half:predict", ONE) == (200, {"predictions": [2.5]})
        assert server.request("GET", "/readyz")[0] == 200
        told = [one["error"] for one in server.events if one["event"] == "base_path_failed"]
        assert len(told) <= 2  # once that it is not there, and perhaps once that it is empty


def test_base_paths_of_a_file_that_are_not_there_yet_are_waited_for(half_plus_two, tmp_path):
    file = tmp_path / "models.config"
    file.write_text(config_of(half=(half_plus_two, ""), later=(tmp_path / "later", "")))
    with Server(f"--model_config_file={file}", POLL, wait=False) as server:
        server.wait_event("base_path_failed", model="later")
        server.wait_event("available", model="half")
        assert server.request("GET", "/readyz")[0] == 503
        copy_version(half_plus_two, tmp_path / "later")
        server.wait_event("available", model="later")
        replace_file(file, config_of(half=(half_plus_two, ""), more=(tmp_path / "more", "")))
        server.wait_event("base_path_failed", model="more")
        replace_file(file, config_of(half=("/etc/passwd", "")))
        assert "a base path is a folder" in server.wait_event("config_refused")["error"]
        assert server.post("/v1/models/half:predict", ONE)[0] == 200


def test_a_url_with_nothing_behind_it_is_waited_for(half_plus_two, s3: SeaweedFS, tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
    base = s3.url("serve/not-there-yet")
    with Server("--model_name=half", f"--model_base_path={base}", "--poll-seconds", 0.2, wait=False) as server:
        assert base in server.wait_event("base_path_failed", model="half")["error"]
        assert server.request("GET", "/readyz")[0] == 503
        assert base not in server.request("GET", "/v1/glowplug/status")[1].decode()
        push = [sys.executable, "-m", "glowplug", "push", half_plus_two, f"{base}/1"]
        subprocess.run(push, check=True, capture_output=True)
        server.wait_event("available", model="half", version=1)
        assert server.request("GET", "/readyz")[0] == 200


def refusal(*arguments):
    command = [sys.executable, "-m", "glowplug", "serve", *map(str, arguments), "--rest-port", "0", "--grpc-port", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.returncode, done.stderr


def test_what_can_never_be_a_base_path_ends_the_server_at_once(tmp_path):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "models.config").write_text(config_of(m=(tmp_path / "file", "")))
    assert refusal(f"--model_base_path={tmp_path / 'file'}")[0] == 2
    assert refusal(f"--model_config_file={tmp_path / 'models.config'}")[0] == 2
    assert refusal("--model_base_path=s3://")[0] == 4


def test_a_name_with_a_path_is_mistyped_and_said_so(tmp_path):
    code, said = refusal(f"m={tmp_path / 'nothing'}")
    assert code == 2
    assert "there is no such model" in said
    assert "--model_base_path" in said
