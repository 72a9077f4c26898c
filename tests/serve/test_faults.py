"""Nothing ends the server: faults of disks, forks and streams, versions that go while they come."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import urllib.request

import psutil
import pytest

from glowplug.serve.models.memory import available_bytes
from tests.serve.server import Server, copy_version, free_port

pytestmark = pytest.mark.tensorflow

ONE = {"instances": [1.0]}


def config_of(**models):
    entries = "".join(
        f'config {{ name: "{name}" base_path: "{base}" {more} }}' for name, (base, more) in models.items()
    )
    return f"model_config_list {{ {entries} }}"


def replace_file(path, text):
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def test_a_standard_error_that_takes_nothing(half_plus_two):
    port = free_port()
    command = [sys.executable, "-m", "glowplug", "serve", f"half={half_plus_two}", "--rest-port", str(port)]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        process = subprocess.Popen([*command, "--grpc-port", "0"], stdout=subprocess.PIPE, stderr=full)
    try:
        assert b"serving half" in process.stdout.readline()
        psutil.Process(process.pid).children()[0].kill()  # the supervisor tells of it, and starts another
        assert b"serving half" in process.stdout.readline()
        body = json.dumps(ONE).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models/half:predict", body, timeout=60) as answer:
            assert json.load(answer) == {"predictions": [2.5]}
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()


FAULTS = """
import os, socket, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from glowplug.serve.processes import control, supervisor
from glowplug.serve.workers.spec import WorkerSpec

def front_end(channel):
    control.send(channel, {"op": "run", "number": 7, "argv": ["true"], "log": "/no/such/folder/log"})
    first, _ = control.receive(channel)
    ours, theirs = socket.socketpair()
    spec = WorkerSpec("/none", "bundle").to_json()
    control.send(channel, {"op": "spawn", "number": 8, "spec": spec}, theirs.fileno())
    second, _ = control.receive(channel)
    print(first["event"], first["number"], second["event"], second["number"], flush=True)
    return 0

fork, forks = os.fork, []

def fail_after_the_first():
    forks.append(1)
    if len(forks) > 1:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()

os.fork = fail_after_the_first
sys.exit(supervisor.Supervisor(front_end, drain_seconds=5).run())
"""


def test_a_log_that_cannot_be_opened_and_a_fork_that_fails_are_told_as_an_end():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["exited", "7", "exited", "8"], done.stderr
    assert done.returncode == 0


def test_a_version_that_is_unloaded_while_it_starts_leaves_no_worker(half_plus_two, tmp_path):
    (tmp_path / "a").mkdir()
    copy_version(half_plus_two, tmp_path / "a" / "1")
    file = tmp_path / "models.config"
    file.write_text(config_of(first=(tmp_path / "a", "")))
    with Server(f"--model_config_file={file}", "--file_system_poll_wait_seconds=0.1", wait=False) as server:
        server.wait_event("loading", model="first")
        while not (starting := server.workers()):
            assert server.process.poll() is None
        starting[0].suspend()  # it will not be ready before it is unloaded
        replace_file(file, config_of(second=(half_plus_two, "")))
        server.wait_event("unloaded", model="first")
        with contextlib.suppress(psutil.NoSuchProcess):
            starting[0].resume()  # where it was too late to stop it, or nobody has ended it
        server.wait_event("available", model="second")
        assert not psutil.wait_procs(starting, timeout=20)[1]
        assert len(server.workers()) == 1


def test_a_model_without_a_live_worker_is_not_ready(half_plus_two, tmp_path):
    copy_version(half_plus_two, tmp_path / "1")
    with Server("--model_name=half", f"--model_base_path={tmp_path}", "--file_system_poll_wait_seconds=0") as server:
        assert server.request("GET", "/readyz")[0] == 200
        shutil.rmtree(tmp_path / "1")
        server.workers()[0].kill()
        while server.request("GET", "/readyz")[0] != 503:
            assert server.process.poll() is None
        assert server.request("GET", "/healthz")[0] == 200


def test_a_refused_configuration_changes_nothing_and_is_tried_again(half_plus_two, tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    copy_version(half_plus_two, base / "1")
    file = tmp_path / "models.config"
    every = "model_version_policy { all {} }"
    label = 'version_labels { key: "stable" value: %d }'
    file.write_text(config_of(half=(base, every + label % 1)))
    with Server(f"--model_config_file={file}", "--file_system_poll_wait_seconds=0.1") as server:
        replace_file(file, config_of(half=(base, every + label % 2), other=(half_plus_two, "")))
        server.wait_event("config_refused")
        assert server.post("/v1/models/other:predict", ONE)[0] == 404
        assert server.post("/v1/models/half/labels/stable:predict", ONE)[0] == 200
        copy_version(half_plus_two, base / "2")
        server.wait_event("available", model="other")
        assert server.post("/v1/models/half/labels/stable:predict", ONE)[0] == 200
        assert len([event for event in server.events if event["event"] == "config_refused"]) == 1


def test_an_empty_configuration_is_one_that_is_being_written(half_plus_two, tmp_path):
    file = tmp_path / "models.config"
    file.write_text(config_of(half=(half_plus_two, "")))
    flags = ("--model_config_file_poll_wait_seconds=0.1", "--file_system_poll_wait_seconds=0.1")
    with Server(f"--model_config_file={file}", *flags) as server:
        file.write_text("")
        assert "is empty" in server.wait_event("config_refused")["error"]
        assert server.post("/v1/models/half:predict", ONE)[0] == 200
        assert server.request("GET", "/readyz")[0] == 200
        replace_file(file, config_of(other=(half_plus_two, "")))
        server.wait_event("available", model="other")
        replace_file(file, "model_config_list {}")
        server.wait_event("config_loaded", models=[])


def test_a_terminal_that_is_closed_lets_calls_finish_and_ends_the_server(half_plus_two):
    with Server(f"half={half_plus_two}") as server:
        everyone = psutil.Process(server.process.pid).children(recursive=True)
        for child in everyone:  # a terminal tells all of them
            child.send_signal(signal.SIGHUP)
        assert server.post("/v1/models/half:predict", ONE)[0] == 200
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(30) == 0
        assert not psutil.wait_procs(everyone, timeout=20)[1]
        assert [event["event"] for event in server.events if event["event"] in ("draining", "stopped")] == [
            "draining",
            "stopped",
        ]


def test_thousands_of_digits_in_a_path(server):
    status, document = server.get(f"/v1/models/half/versions/{'9' * 5000}")
    assert status == 400
    assert "Failed to convert version" in document["error"]


def test_requests_that_cannot_be_recorded_are_answered(half_plus_two, tmp_path):
    folder = tmp_path / "recorded"
    with Server(f"half={half_plus_two}", "--record-warmup", folder) as server:
        folder.rmdir()
        folder.write_text("in the way")
        for rows in (1, 2):
            assert server.post("/v1/models/half:predict", {"instances": [1.0] * rows})[0] == 200
        assert len([event for event in server.events if event["event"] == "not_recorded"]) == 1


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({"meminfo": "MemAvailable: 1000 kB\n"}, 1000 * 1024),
        (
            {"meminfo": "MemAvailable: 1000 kB\n", "cgroup/memory.max": "max\n", "cgroup/memory.current": "5"},
            1000 * 1024,
        ),
        (
            {
                "meminfo": "MemAvailable: 1000 kB\n",
                "cgroup/memory.max": "500000\n",
                "cgroup/memory.current": "300000\n",
                "cgroup/memory.stat": "anon 1\ninactive_file 100000\n",
            },
            300000,
        ),
        (
            {
                "meminfo": "MemAvailable: 1000 kB\n",
                "cgroup/memory/memory.limit_in_bytes": "400000\n",
                "cgroup/memory/memory.usage_in_bytes": "100000\n",
                "cgroup/memory/memory.stat": "total_inactive_file 50000\n",
            },
            350000,
        ),
    ],
)
def test_the_limit_of_a_container_counts_as_its_memory(tmp_path, files, available):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_bytes(tmp_path / "meminfo", tmp_path / "cgroup") == available
