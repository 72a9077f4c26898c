"""Models that lie on S3: a URL in the place of a path, and numbered versions under a base path that come and go."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.components.relay import Relay
from tests.components.seaweedfs import SeaweedFS
from tests.serve.server import Server
from tests.serve.test_drop_in import connect_when_open, reload

Push = Callable[..., str]


@pytest.fixture
def push(s3: SeaweedFS) -> Push:
    """`glowplug push`, as a deployment does it; returns what it printed."""

    def call(directory: Path, url: str, *options: Any) -> str:
        command = [sys.executable, "-m", "glowplug", "push", directory, url, *options]
        return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout

    return call


@pytest.fixture(autouse=True)
def node_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))


def upload(s3: SeaweedFS, directory: Path, place: str, *, only: str = "*") -> None:
    """Copy files one by one, as any tool does."""
    for path in directory.rglob(only):
        if path.is_file():
            url = s3.http_url(f"{place}/{path.relative_to(directory)}")
            urllib.request.urlopen(urllib.request.Request(url, path.read_bytes(), method="PUT")).close()


def ask(server: Server, model: str, version: int | None = None) -> Any:
    path = f"/v1/models/{model}" + ("" if version is None else f"/versions/{version}")
    return server.post(f"{path}:predict", {"instances": [1.0, 2.0]})


def test_versions_under_a_base_path_come_and_go(half_plus_two: Path, s3: SeaweedFS, push: Push) -> None:
    base = s3.url("serve/half")
    push(half_plus_two, f"{base}/1")
    with Server("--model_name=half", f"--model_base_path={base}", "--poll-seconds", 0.2) as server:
        assert ask(server, "half") == (200, {"predictions": [2.5, 3.0]})
        push(half_plus_two, f"{base}/2")
        server.wait_event("available", version=2)
        server.wait_event("unloaded", version=1)
        assert ask(server, "half", 2) == (200, {"predictions": [2.5, 3.0]})
        assert server.get("/v1/models/half")[1]["model_version_status"][0]["version"] == "2"


def test_a_half_uploaded_saved_model_is_not_served(shared_models: Path, s3: SeaweedFS) -> None:
    model = shared_models / "saved_model_half_plus_two_cpu" / "00000123"
    upload(s3, model, "serve/plain/1")
    upload(s3, model, "serve/plain/2", only="variables*")
    options = ("--poll-seconds", 0.2, "--trust", "--no-pack")
    with Server(f"plain={s3.url('serve/plain')}", *options) as server:
        assert ask(server, "plain") == (200, {"predictions": [2.5, 3.0]})
        assert [one["version"] for one in server.get("/v1/models/plain")[1]["model_version_status"]] == ["1"]
        upload(s3, model, "serve/plain/2", only="saved_model.pb")
        server.wait_event("available", version=2)


def test_a_url_that_is_a_model_and_one_in_a_file(
    half_plus_two: Path, s3: SeaweedFS, push: Push, tmp_path: Path
) -> None:
    pinned = push(half_plus_two, s3.url("serve/single")).split()[0]
    config = tmp_path / "models.config"
    config.write_text(
        f'model_config_list {{ config {{ name: "one" base_path: "{pinned}" model_platform: "tensorflow" }} }}'
    )
    with Server(f"--model_config_file={config}") as server:
        assert ask(server, "one", 1) == (200, {"predictions": [2.5, 3.0]})


def test_a_saved_model_of_a_url_needs_a_signature_or_a_word(
    shared_models: Path, s3: SeaweedFS, push: Push, tmp_path: Path
) -> None:
    model = shared_models / "saved_model_half_plus_two_cpu" / "00000123"
    subprocess.run([sys.executable, "-m", "glowplug", "keygen", tmp_path / "key"], check=True, capture_output=True)
    push(model, s3.url("serve/code/1"), "--sign", tmp_path / "key")
    push(model, s3.url("serve/code/2"))
    with Server(f"code={s3.url('serve/code')}", "--trust-key", tmp_path / "key.pub", "--no-pack") as server:
        assert ask(server, "code", 1) == (200, {"predictions": [2.5, 3.0]})
        assert "signed" in server.wait_event("incomplete", version=2)["reason"]
    with Server(f"code={s3.url('serve/code')}", wait=False) as server:
        assert "--trust" in server.wait_event("incomplete", version=2)["reason"]
        assert server.request("GET", "/readyz")[0] == 503


def test_a_storage_that_cannot_be_used_is_said(s3: SeaweedFS) -> None:
    wrong = s3.environment(secret="not-the-secret")
    with Server(f"half={s3.url('serve/half')}", wait=False, environment=wrong) as server:
        error = server.wait_event("base_path_failed")["error"]
        assert "not-the-secret" not in error
        assert server.request("GET", "/healthz")[0] == 200


def test_requests_are_answered_while_a_version_is_fetched(
    half_plus_two: Path, s3_relay: Relay, s3: SeaweedFS, push: Push, tmp_path: Path
) -> None:
    base = s3.url("serve/slow")
    push(half_plus_two, f"{base}/1")
    large = tmp_path / "large.glow"
    shutil.copytree(half_plus_two, large)
    (large / "notes.bin").write_bytes(random.Random(1).randbytes(16 << 20))
    push(large, f"{base}/2")
    with Server(f"slow={base}", "--poll-seconds", 0.1, environment={"GLOWPLUG_CONNECTIONS": "1"}, wait=False) as server:
        s3_relay.bytes_per_s = 4e6  # now that both are there: four seconds for the large one
        fetching = server.wait_event("incomplete", version=2)
        assert "being fetched" in fetching["reason"]
        status = server.get("/v1/glowplug/status")[1]["models"]["slow"]["2"]
        assert status["state"] == "START"
        began = time.monotonic()
        assert server.request("GET", "/healthz")[0] == 200
        assert time.monotonic() - began < 2
        server.wait_event("available", version=2)
        assert ask(server, "slow", 2) == (200, {"predictions": [2.5, 3.0]})


def test_a_reload_waits_for_what_has_to_be_fetched(half_plus_two: Path, s3: SeaweedFS, push: Push) -> None:
    push(half_plus_two, s3.url("serve/reloaded/4"))
    with Server(f"half={half_plus_two}", "--poll-seconds", 0.1) as server:
        models = [("half", half_plus_two), ("far", s3.url("serve/reloaded")), ("empty", s3.url("serve/nothing"))]
        assert reload(server, *models).status.error_code == 0
        assert ask(server, "far", 4) == (200, {"predictions": [2.5, 3.0]})
        reload(server, models[0])
        assert ask(server, "far")[0] == 404


def test_a_call_that_comes_before_the_url_was_looked_at_waits(half_plus_two: Path, s3: SeaweedFS, push: Push) -> None:
    push(half_plus_two, s3.url("serve/early/1"))
    with Server(f"early={s3.url('serve/early')}", "--poll-seconds", 0.1, wait=False) as server:
        connect_when_open(server.rest_port)
        assert ask(server, "early") == (200, {"predictions": [2.5, 3.0]})


def test_a_mirror_that_dies_is_started_again(half_plus_two: Path, s3: SeaweedFS, push: Push) -> None:
    base = s3.url("serve/dying")
    push(half_plus_two, f"{base}/1")
    with Server(f"dying={base}", "--poll-seconds", 0.2) as server:
        children = psutil.Process(server.process.pid).children()
        (mirror,) = [one for one in children if "glowplug.serve.models.mirror" in one.cmdline()]
        mirror.kill()
        assert server.wait_event("mirror_ended")["code"] == -9
        assert ask(server, "dying") == (200, {"predictions": [2.5, 3.0]})
        push(half_plus_two, f"{base}/2")
        server.wait_event("available", version=2)


@pytest.mark.parametrize("place", ["https://user:hunter2@host/model", "made-up://bucket/model", "s3://b/m?sig=hunter2"])
def test_a_url_that_must_not_be_used_ends_the_server(place: str) -> None:
    command = [sys.executable, "-m", "glowplug", "serve", f"m={place}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr
