"""The scripts of the page about fleets, run: on S3, and what a container image and a pod run."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.components.processes import free_ports
from tests.components.seaweedfs import SeaweedFS

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def sh(script: str, *arguments: object, **environment: object) -> str:
    """Run one of the scripts; return what it printed."""
    command = ["sh", FLEET / script, *arguments]
    variables = {**os.environ, "PATH": PATH, **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(list(map(str, command)), env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def host(*arguments: object, **environment: object) -> Iterator[int]:
    """A host of the fleet, ready; gives its REST port."""
    rest, rpc = free_ports(2)
    command = ["sh", FLEET / "host.sh", *arguments, "--rest-port", rest, "--grpc-port", rpc]
    variables = {**os.environ, "PATH": PATH, **{name: str(value) for name, value in environment.items()}}
    process = subprocess.Popen(list(map(str, command)), env=variables, stdout=subprocess.PIPE)
    try:
        readable, _, _ = select.select([process.stdout], [], [], 120)
        assert readable, "the host is not ready"
        assert process.stdout is not None
        assert b"serving" in process.stdout.readline()
        yield rest
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def ask(port: int) -> object:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/models/half:predict", json.dumps({"instances": [1.0, 2.0]}))
        return json.loads(connection.getresponse().read())


def deploy_and_serve(model: Path, base: str, folder: Path) -> None:
    """Push a version, and serve it on two hosts, which are two node caches."""
    key = folder / "fleet.key"
    sh("deploy.sh", model, base, 1, KEY=key)
    for number in (1, 2):
        cache = folder / f"host{number}"
        with host("half", base, f"{key}.pub", GLOWPLUG_NODE_CACHE_DIR=cache) as port:
            assert ask(port) == {"predictions": [2.5, 3.0]}
        assert len(list((cache / "entries").iterdir())) == 1


@pytest.fixture
def model() -> Path:
    candidates = [parent / "shared" / "models" for parent in FLEET.parents]
    found = next((path for path in candidates if path.is_dir()), None)
    if found is None:
        pytest.skip("TensorFlow Serving's test models do not lie beside the repository")
    return found / "saved_model_half_plus_two_cpu" / "00000123"


@pytest.mark.tensorflow
def test_a_fleet_on_s3(model: Path, s3: SeaweedFS, tmp_path: Path) -> None:
    deploy_and_serve(model, s3.url("fleet/half"), tmp_path)


@pytest.mark.tensorflow
def test_what_the_containers_of_a_pod_run(model: Path, s3: SeaweedFS, tmp_path: Path) -> None:
    """The commands of the manifest, with this test's bucket and folders in the place of the cluster's."""
    yaml = pytest.importorskip("yaml")
    pod = yaml.safe_load((FLEET / "kubernetes.yaml").read_text())["spec"]["template"]["spec"]
    key = tmp_path / "fleet.key"
    sh("deploy.sh", model, s3.url("half"), 1, KEY=key)
    (fetch,), (serve,) = pod["initContainers"], pod["containers"]
    environment = {row["name"]: row["value"] for row in serve["env"]}
    assert environment == {row["name"]: row["value"] for row in fetch["env"]}
    here = {"/keys/": f"{tmp_path}/", "/node-cache": str(tmp_path / "node-cache"), "s3://models/": s3.url("")}

    def local(text: str) -> str:
        for there, place in here.items():
            text = text.replace(there, place)
        return text

    variables = {**os.environ, "PATH": PATH, **{name: local(value) for name, value in environment.items()}}
    done = subprocess.run([local(word) for word in fetch["command"]], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    entries = list((tmp_path / "node-cache" / "entries").iterdir())
    assert len(entries) == 1
    words = [local(word) for word in serve["command"]]
    assert words[:2] == ["glowplug", "serve"]
    rest, rpc = free_ports(2)
    words += ["--rest-port", str(rest), "--grpc-port", str(rpc)]
    words[words.index("0.0.0.0")] = "127.0.0.1"
    process = subprocess.Popen(words, env=variables, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert b"serving half" in process.stdout.readline()
        assert ask(rest) == {"predictions": [2.5, 3.0]}
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert list((tmp_path / "node-cache" / "entries").iterdir()) == entries  # what the init container had fetched


@pytest.mark.tensorflow
@pytest.mark.slow
def test_what_is_baked_into_an_image_is_used(model: Path, s3: SeaweedFS, tmp_path: Path) -> None:
    """The script that the image runs, and then a run with the variables that the image sets."""
    pinned = sh("deploy.sh", model, s3.url("baked"), 1, KEY=tmp_path / "fleet.key").split("s3://")[1].split()[0]
    root = tmp_path / "image"
    first = sh("bake.sh", f"s3://{pinned}", FLEET / "train.py", ROOT=root)
    variables = dict(re.findall(r"^ENV (\w+)=(\S+)$", (FLEET / "Dockerfile").read_text(), re.MULTILINE))
    variables = {name: f"{root}{value}" for name, value in variables.items()}
    before = sorted(path.stat().st_ctime_ns for path in (root / "opt").rglob("*"))
    done = subprocess.run(
        [sys.executable, "-m", "glowplug", "run", "--explain", FLEET / "train.py"],
        env={**os.environ, **variables, "GLOWPLUG_CACHE_DIR": str(tmp_path / "own")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "1 restored" in done.stderr
    assert next(line for line in first.splitlines() if line.startswith("losses")) in done.stdout
    assert sorted(path.stat().st_ctime_ns for path in (root / "opt").rglob("*")) == before
    assert (root / "opt" / "model" / "model.glow" / "bundle.json").is_file()
