"""The page at `/` and the document that it asks for, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from glowplug.serve.metrics.history import History
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.metrics.trouble import KEPT
from glowplug.serve.models.catalog import Catalog, Model
from glowplug.serve.models.config import ModelConfig
from glowplug.serve.models.sources import Source
from glowplug.serve.models.versions import State, Version
from glowplug.serve.page.document import MAX_MODELS, MAX_VERSIONS, LiveDocument
from glowplug.serve.page.shell import make_shell
from glowplug.serve.wire.messages import serving
from tests.serve.server import Server
from tests.serve.test_access import STATUS, ask, line, write

LIVE = "/v1/glowplug/live"


def directives(policy):
    return dict(one.strip().split(" ", 1) for one in policy.split(";"))


def test_the_policy_allows_the_one_script_and_the_one_style_of_the_page():
    shell, policy = make_shell()
    text = shell.decode()
    found = directives(policy)
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert found[directive] == f"'sha256-{digest}'"
    assert found["default-src"] == "'none'"
    assert found["connect-src"] == "'self'"
    assert "unsafe" not in policy
    assert "*" not in policy


def test_the_page_asks_nobody_else_and_makes_no_markup_of_values():
    text = make_shell()[0].decode()
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
        assert way not in text, way
    for keeper in ("localStorage", "sessionStorage", "indexedDB", "document.cookie"):
        assert keeper not in text, keeper


def make_catalog(models, versions):
    catalog = Catalog()
    for place in range(models):
        name = f"model-{place:04}"
        model = catalog.models[name] = Model(ModelConfig(name, Path("none"), labels={"stable": 2}))
        for number in range(1, versions + 1):
            state = State.END if number != 1 else State.START
            made = Version(name, number, Source(Path("none"), "bundle"), state)
            made.error, made.waiting_for = "e" * 10_000, "w" * 10_000
            model.versions[number] = made
    return catalog


def document_of(catalog, metrics=None):
    metrics = metrics or Metrics(catalog)
    return LiveDocument(catalog, metrics, History(metrics, catalog, {}), lambda: False)


def test_the_document_is_bounded_however_much_there_is():
    catalog = make_catalog(2 * MAX_MODELS, 3 * MAX_VERSIONS)
    metrics = Metrics(catalog)
    for place in range(10 * KEPT):
        metrics.trouble.request("REST", "x" * 5000, "y" * 5000, "NOT_FOUND", f"{place}" + "z" * 5000)
    body = document_of(catalog, metrics).read()
    assert len(body) < 2 << 20
    found = json.loads(body)
    assert (len(found["models"]), found["more_models"]) == (MAX_MODELS, MAX_MODELS)
    assert {(len(one["versions"]), one["more_versions"]) for one in found["models"]} == {
        (MAX_VERSIONS, 2 * MAX_VERSIONS)
    }
    assert len(found["trouble"]) == KEPT
    assert max(len(one["text"]) for one in found["trouble"]) == 300


def test_versions_that_do_something_come_first():
    (model,) = json.loads(document_of(make_catalog(1, 4)).read())["models"]
    assert [one["number"] for one in model["versions"]] == [1, 4, 3, 2]
    assert [one["labels"] for one in model["versions"]] == [[], [], [], ["stable"]]
    assert model["versions"][0]["waiting_for"] == "w" * 500


def test_the_document_is_made_once_a_second_however_many_look():
    catalog = make_catalog(1, 1)
    document = document_of(catalog)
    first = document.read()
    catalog.models.clear()
    assert document.read() is first


@pytest.mark.tensorflow
def test_what_the_server_answers(server):
    status, body, headers = server.request("GET", "/")
    assert (status, body) == (200, make_shell()[0])
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-security-policy"] == make_shell()[1]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    status, body, headers = server.request("HEAD", "/")
    assert (status, body, int(headers["content-length"])) == (200, b"", len(make_shell()[0]))
    assert server.post("/", {})[0] == 404  # as before
    server.post("/v1/models/half:predict", {"instances": [1.0], "signature_name": "wrong-one"})
    server.post("/v1/models/half:predict", {"instances": [1.0]})
    status, body, headers = server.request("GET", LIVE)
    found = json.loads(body)
    assert (status, headers["cache-control"], found["ready"]) == (200, "no-store", True)
    (model,) = found["models"]
    (version,) = model["versions"]
    assert (model["name"], version["number"], version["state"], version["workers"]) == ("half", 1, "AVAILABLE", 2)
    assert found["requests"] >= 2
    assert found["errors"] >= 1
    assert {len(found["series"][name]) for name in ("requests", "errors", "p50_ms", "workers_bytes")} != {0}


@pytest.mark.tensorflow
def test_errors_of_requests_workers_and_the_server(half_plus_two, tmp_path):
    base = tmp_path / "half"
    base.mkdir()
    (base / "1").symlink_to(half_plus_two)
    with Server(f"half={base}", "--poll-seconds", "0.2") as server:
        server.post("/v1/models/half:predict", {"instances": [1.0], "signature_name": "wrong-one"})
        (base / "2").mkdir()
        (base / "2" / "saved_model.pb").write_bytes(b"no model")
        server.wait_event("load_failed", version=2)
        (worker,) = server.workers()
        worker.kill()
        worker.wait(60)
        server.post("/v1/models/half:predict", {"instances": [1.0]})
        found = None
        kinds = {"REST predict", "load_failed", "worker_died"}
        while not found or not kinds <= set(found):  # the document is a second old at most
            found = {one["what"]: one for one in server.get(LIVE)[1]["trouble"]}
        assert "wrong-one" in found["REST predict"]["text"]
        assert (found["REST predict"]["code"], found["REST predict"]["model"]) == ("INVALID_ARGUMENT", "half")
        assert (found["load_failed"]["version"], found["worker_died"]["version"]) == ("2", "1")


@pytest.mark.tensorflow
def test_behind_tokens_the_page_is_open_and_holds_nothing(half_plus_two, tmp_path):
    text = line("app", "one", "predict") + line("ops", "two", "status")
    with Server(f"secret-name={half_plus_two}", "--auth-tokens", write(tmp_path / "tokens", text)) as server:
        status, body, _ = server.request("GET", "/")
        assert (status, body) == (200, make_shell()[0])  # the same as everywhere

        def look(token):
            return server.request("GET", LIVE, None, {"Authorization": f"Bearer {token}"} if token else {})[0]

        assert [look(token) for token in ("", "wrong", "one", "two")] == [401, 401, 403, 200]
        assert server.request("POST", "/")[0] == 401


@pytest.mark.tensorflow
def test_off(half_plus_two, tmp_path):
    monitoring = tmp_path / "monitoring.txt"
    monitoring.write_text('prometheus_config { enable: true, path: "/" }')
    with Server(f"half={half_plus_two}", "--no-page") as server:
        assert server.get("/") == (404, {"error": "Not found: /"})
        assert server.get(LIVE)[0] == 400
    with Server(f"half={half_plus_two}", "--monitoring_config_file", monitoring) as server:
        assert b":tensorflow:serving:request_count" in server.request("GET", "/")[1]


@pytest.mark.tensorflow
def test_metrics_of_a_signature_and_of_the_process(server):
    server.post("/v1/models/half:predict", {"instances": [1.0]})
    server.post("/v1/models/half:regress", {"signature_name": "regress_x_to_y", "examples": [{}]})
    labels = 'model_name="half",signature="{}"'
    wanted = (
        f"glowplug_serve_signature_seconds_count{{{labels.format('serving_default')},",
        f'glowplug_serve_signature_errors_total{{{labels.format("regress_x_to_y")},status="INVALID_ARGUMENT"',
    )
    text = ""
    while not all(one in text for one in wanted):  # the page is a second old at most
        text = server.request("GET", "/monitoring/prometheus/metrics")[1].decode()
    (started,) = re.findall(r"^process_start_time_seconds (\S+)$", text, re.MULTILINE)
    assert abs(float(started) - server.front_end().create_time()) < 2


@pytest.mark.tensorflow
def test_the_access_log_as_json_has_no_secrets(half_plus_two, tmp_path):
    tokens = write(tmp_path / "tokens", line("all", "s3cr3t", "predict,status"))
    with Server(f"half={half_plus_two}", "--access-log-json", "--auth-tokens", tokens) as server:
        body = json.dumps({"instances": [1.0]}).encode()
        answers = []
        for number, token in enumerate(("s3cr3t", "wr0ng")):
            headers = {"Authorization": f"Bearer {token}", "X-Request-Id": f"r{number}"}
            answers.append(server.request("POST", "/v1/models/half:predict?key=s3cr3t", body, headers))
        request = serving("GetModelStatusRequest")()
        request.model_spec.name = "half"
        for token in ("wr0ng", "s3cr3t"):
            ask(server, STATUS, request, "tensorflow.serving.GetModelStatusResponse", token)
        server.wait_event("request", method="GetModelStatus")
    first, second, third, fourth = [one for one in server.events if one["event"] == "request"]
    assert (first["protocol"], first["method"], first["code"], first["status"]) == ("REST", "predict", "OK", 200)
    assert (first["model"], first["version"], first["signature"]) == ("half", "1", "serving_default")
    assert (first["bytes_in"], first["bytes_out"]) == (len(body), len(answers[0][1]))
    assert (second["code"], second["status"], second["id"]) == ("UNAUTHENTICATED", 401, "r1")
    assert (third["protocol"], third["method"], third["code"]) == ("gRPC", STATUS, "UNAUTHENTICATED")
    assert (fourth["protocol"], fourth["model"], fourth["code"]) == ("gRPC", "half", "OK")
    assert "s3cr3t" not in json.dumps(server.events) + server.other_output.decode()
    assert "wr0ng" not in json.dumps(server.events)
