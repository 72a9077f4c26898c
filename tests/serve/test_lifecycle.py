"""Versions, workers and shutdown, with real processes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest

from tests.serve.server import Server, copy_version

pytestmark = pytest.mark.tensorflow

ONE = {"instances": [1.0]}


def predictions(server, path="/v1/models/half:predict"):
    status, document = server.post(path, ONE)
    assert status == 200, document
    return document["predictions"]


@pytest.fixture(scope="module")
def half_plus_three(shared_models, packed):
    return packed(shared_models / "saved_model_half_plus_three" / "00000123")


class Load:
    """A client that keeps asking, and remembers every answer that was not good.

    It leaves room between requests: what loads or packs meanwhile has a lower priority and would hardly come to run.
    """

    def __init__(self, server, retry=False):
        self.bad, self.good, self._server, self._retry = [], 0, server, retry
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(0.01):
            status, document = self._server.post("/v1/models/half:predict", ONE)
            if status == 503 and self._retry:
                status, document = self._server.post("/v1/models/half:predict", ONE)
            if status == 200:
                self.good += 1
            else:
                self.bad.append((status, document))


def test_a_new_version_is_swapped_in_without_a_failed_request(half_plus_two, half_plus_three, tmp_path):
    copy_version(half_plus_two, tmp_path / "1")
    with Server("--model_name=half", f"--model_base_path={tmp_path}", "--poll-seconds", 0.1) as server:
        assert predictions(server) == [2.5]
        with Load(server) as load:
            copy_version(half_plus_three, tmp_path / "2")
            server.wait_event("unloaded", model="half", version=1)
        assert load.bad == []
        assert load.good > 0
        assert predictions(server) == [3.5]
        states = {e["version"]: e["state"] for e in server.get("/v1/models/half")[1]["model_version_status"]}
        assert states == {"1": "END", "2": "AVAILABLE"}
        assert len(server.workers()) == 1
        shutil.rmtree(tmp_path / "2")  # a rollback: the older version comes back
        server.wait_event("unloaded", model="half", version=2)
        assert predictions(server) == [2.5]


def test_a_version_that_cannot_load_ends_with_the_reason_and_the_old_one_stays(half_plus_two, tmp_path):
    copy_version(half_plus_two, tmp_path / "1")
    with Server("--model_name=half", f"--model_base_path={tmp_path}", "--poll-seconds", 0.1) as server:
        broken = tmp_path / "2"
        copy_version(half_plus_two, tmp_path / "broken")
        (tmp_path / "broken" / "graph.pb").write_bytes(b"\xff" * (tmp_path / "broken" / "graph.pb").stat().st_size)
        (tmp_path / "broken").rename(broken)
        failed = server.wait_event("load_failed", version=2)
        assert "graph.pb is not what was packed" in failed["error"]
        entries = {e["version"]: e for e in server.get("/v1/models/half")[1]["model_version_status"]}
        assert entries["2"]["state"] == "END"
        assert "graph.pb is not what was packed" in entries["2"]["status"]["error_message"]
        assert str(tmp_path) not in json.dumps(entries)
        assert entries["1"]["state"] == "AVAILABLE"
        assert predictions(server) == [2.5]
        assert server.post("/v1/models/half/versions/2:predict", ONE)[0] == 404


def test_labels_policies_and_a_config_file_that_changes(half_plus_two, half_plus_three, tmp_path):
    base = tmp_path / "models"
    base.mkdir()
    copy_version(half_plus_two, base / "1")
    copy_version(half_plus_three, base / "2")
    entry = """model_config_list {{ config {{ name: "half" base_path: "{base}" model_platform: "tensorflow"
      model_version_policy {{ all {{}} }} version_labels {{ key: "stable" value: {stable} }} }} {more} }}"""
    file = tmp_path / "models.config"
    file.write_text(entry.format(base=base, stable=1, more=""))
    with Server(f"--model_config_file={file}", "--file_system_poll_wait_seconds=0.1") as server:
        server.wait_event("available", version=2)
        server.wait_event("available", version=1)
        assert predictions(server) == [3.5]
        assert predictions(server, "/v1/models/half/labels/stable:predict") == [2.5]
        more = f'config {{ name: "other" base_path: "{half_plus_two}" }}'
        replacement = tmp_path / "new"
        replacement.write_text(entry.format(base=base, stable=2, more=more))
        replacement.rename(file)
        server.wait_event("available", model="other")
        assert predictions(server, "/v1/models/half/labels/stable:predict") == [3.5]
        assert predictions(server, "/v1/models/other:predict") == [2.5]
        replacement.write_text(entry.format(base=base, stable=2, more=""))
        replacement.rename(file)
        server.wait_event("unloaded", model="other")
        assert server.post("/v1/models/other:predict", ONE)[0] == 404
        seen = file.stat()
        replacement.write_text(entry.format(base=base, stable=1, more=""))
        os.utime(replacement, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # as long and as old as the one before
        replacement.rename(file)
        while predictions(server, "/v1/models/half/labels/stable:predict") != [2.5]:
            pass
        replacement.write_text("not a config {")
        replacement.rename(file)
        server.wait_event("config_refused")
        assert predictions(server) == [3.5]


def test_killed_workers_are_replaced_and_their_requests_may_be_retried(half_plus_two):
    with Server(f"half={half_plus_two}", "--instances", 2) as server, Load(server, retry=True) as load:
        before = {worker.pid for worker in server.workers()}
        for worker in server.workers():
            worker.kill()
            psutil.wait_procs([worker], timeout=10)
        while len(alive := {worker.pid for worker in server.workers()}) < 2:
            pass
        assert not alive & before
        assert predictions(server) == [2.5]
        assert all(status == 503 for status, _ in load.bad)


def test_a_killed_front_end_comes_back(half_plus_two):
    with Server(f"half={half_plus_two}") as server:
        old = server.workers()
        server.front_end().kill()
        server.wait_ready()
        assert predictions(server) == [2.5]
        assert not psutil.wait_procs(old, timeout=10)[1]


def test_nobody_outlives_the_supervisor(half_plus_two):
    with Server(f"half={half_plus_two}", "--instances", 2) as server:
        everyone = psutil.Process(server.process.pid).children(recursive=True)
        assert len(everyone) == 3
        os.kill(server.process.pid, signal.SIGKILL)
        assert not psutil.wait_procs(everyone, timeout=10)[1]
        server.process.wait()


def test_stopping_answers_what_is_there(half_plus_two):
    with Server(f"half={half_plus_two}") as server:
        x = np.zeros((2_000_000, 1), np.float32)
        answers = []
        client = threading.Thread(target=lambda: answers.append(server.predict("half", {"x": x})))
        front = server.front_end()
        before = front.io_counters().read_chars
        client.start()
        while front.io_counters().read_chars < before + 1_000_000:  # until it has begun to read
            assert client.is_alive()
        server.process.send_signal(signal.SIGTERM)
        client.join()
        assert server.process.wait(30) == 0
        assert len(answers) == 1
        assert answers[0].outputs["y"].float_val[0] == 2.0


def test_a_port_that_is_taken(half_plus_two, server):
    command = [sys.executable, "-m", "glowplug", "serve", f"half={half_plus_two}", "--grpc-port", "0"]
    done = subprocess.run([*command, "--rest-port", str(server.rest_port)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "cannot listen on this address" in done.stderr


def test_batching_joins_requests_and_pads_them(half_plus_two, tmp_path):
    parameters = tmp_path / "batching.txt"
    parameters.write_text(
        "max_batch_size { value: 8 } batch_timeout_micros { value: 1000000 } allowed_batch_sizes: [4, 8]"
    )
    arguments = [f"half={half_plus_two}", "--enable_batching=true", f"--batching_parameters_file={parameters}"]
    with Server(*arguments) as server:
        clients = [http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=60) for _ in range(3)]
        for value, client in enumerate(clients):
            client.request("POST", "/v1/models/half:predict", json.dumps({"instances": [value]}))
        answers = [json.loads(client.getresponse().read())["predictions"] for client in clients]
        for client in clients:
            client.close()
        assert answers == [[2.0], [2.5], [3.0]]
        page = server.request("GET", "/monitoring/prometheus/metrics")[1].decode()
        assert 'glowplug_serve_batch_rows_count{model_name="half",version="1"} 1.0' in page
        assert 'glowplug_serve_padding_rows_total{model_name="half",version="1"} 1.0' in page
        status, document = server.post("/v1/models/half:predict", {"instances": [1.0] * 9})
        assert status == 400
        assert "Task size 9 is larger than maximum input batch size 8" in document["error"]


def test_a_full_queue_is_said_so(half_plus_two):
    with Server(f"half={half_plus_two}", "--max-queue", 0) as server:
        status, document = server.post("/v1/models/half:predict", ONE)
        assert status == 429
        assert "too many requests are waiting" in document["error"]


def test_recorded_requests_warm_the_next_start(half_plus_two, tmp_path):
    arguments = [f"half={half_plus_two}", "--record-warmup", tmp_path / "recorded"]
    with Server(*arguments) as server:
        server.post("/v1/models/half:predict", {"instances": [[1.0], [2.0], [3.0]]})
    with Server(*arguments) as server:
        calls = server.get("/v1/glowplug/status")[1]["models"]["half"]["1"]["warmup"]
        assert {"source": "recorded", "rows": 3, "runs": 2, "error": ""}.items() <= calls[-1].items()
    (tmp_path / "recorded" / "half.requests").write_bytes(b"damaged")
    with Server(*arguments) as server:
        notes = server.get("/v1/glowplug/status")[1]["models"]["half"]["1"]["notes"]
        assert "half.requests could not be read to its end" in notes[0]


def test_a_plain_saved_model_is_served_at_once_and_packed_meanwhile(shared_models, tmp_path):
    source = shared_models / "saved_model_half_plus_two_2_versions"
    arguments = [f"half={source}", "--pack-cache", tmp_path / "cache", "--instances", 2]
    with Server(*arguments) as server:
        assert predictions(server) == [2.5]
        assert server.get("/v1/glowplug/status")[1]["models"]["half"]["124"]["engine"] == "savedmodel"
        with Load(server) as load:
            server.wait_event("packed", timeout=500, engine="native")  # beside busy programs it takes its time
        assert load.bad == []
        version = server.get("/v1/glowplug/status")[1]["models"]["half"]["124"]
        assert (version["engine"], version["workers"]) == ("native", 2)
        assert predictions(server) == [2.5]
    with Server(*arguments) as server:
        assert server.get("/v1/glowplug/status")[1]["models"]["half"]["124"]["engine"] == "native"


def test_rest_over_a_unix_socket(half_plus_two, socket_folder):
    path = socket_folder / "rest.sock"
    with Server(f"half={half_plus_two}", "--rest-socket", path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /readyz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
