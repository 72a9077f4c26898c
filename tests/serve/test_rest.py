from __future__ import annotations

import gzip
import json
import socket

import pytest

from glowplug.serve.rest.reporting import error_body

pytestmark = pytest.mark.tensorflow

PREDICT = "/v1/models/half:predict"


def test_the_documented_forms(server):
    assert server.post(PREDICT, {"instances": [1.0, 2.0, 5.0]}) == (200, {"predictions": [2.5, 3.0, 4.5]})
    assert server.post(PREDICT, {"inputs": {"x": [1.0, 2.0]}}) == (200, {"outputs": [2.5, 3.0]})
    assert server.post(PREDICT, {"instances": [{"x": 1.0}]}) == (200, {"predictions": [2.5]})
    assert server.post("/v1/models/half/versions/1:predict", {"instances": [1]}) == (200, {"predictions": [2.5]})
    body = {"signature_name": "regress_x_to_y", "examples": [{"x": 1.0}, {"x": 2.0}]}
    assert server.post("/v1/models/half:regress", body) == (200, {"results": [2.5, 3.0]})
    body = {"signature_name": "classify_x_to_y", "context": {"x": 4.0}, "examples": [{"x": 1.0}, {}]}
    assert server.post("/v1/models/half:classify", body) == (200, {"results": [[["", 2.5]], [["", 4.0]]]})


def test_numbers_that_are_not_finite(server):
    _, body, _ = server.request("POST", PREDICT, b'{"instances": [NaN, Infinity, -Infinity]}')
    assert body == b'{"predictions": [NaN, Infinity, -Infinity]}'


def test_status_and_metadata(server):
    entry = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert server.get("/v1/models/half") == (200, {"model_version_status": [entry]})
    assert server.get("/v1/models/half/versions/1")[0] == 200
    status, document = server.get("/v1/models/half/metadata")
    assert status == 200
    assert document["model_spec"] == {"name": "half", "signature_name": "", "version": "1"}
    found = document["metadata"]["signature_def"]["signature_def"]
    assert found["serving_default"]["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert found["classify_x_to_y"]["method_name"] == "tensorflow/serving/classify"
    assert found["regress_x_to_y"]["method_name"] == "tensorflow/serving/regress"


@pytest.mark.parametrize(
    ("path", "body", "status", "part"),
    [
        ("/v1/models/none:predict", {"instances": [1]}, 404, "Servable not found for request: Latest(none)"),
        ("/v1/models/half/versions/9:predict", {"instances": [1]}, 404, "Specific(half, 9)"),
        ("/v1/models/half/labels/x:predict", {"instances": [1]}, 400, "Unrecognized servable version label: x"),
        ("/v1/models/half/versions/" + "9" * 30 + ":predict", {"instances": [1]}, 400, "Failed to convert version"),
        ("/v1/models/half:explain", {"instances": [1]}, 400, "Malformed request: POST"),
        (PREDICT, {"instances": ["a"]}, 400, "input 'x' must be float32[?, 1]: got a string \"a\""),
        (PREDICT, {"instances": [1], "signature_name": "none"}, 400, 'Serving signature name: "none" not found'),
        (PREDICT, b"{", 400, "JSON Parse error"),
        (PREDICT, b"", 400, "The document is empty"),
        ("/v1/models/half:classify", {"examples": [{}]}, 400, "'serving_default' cannot classify"),
        ("/v1/models/half:regress", {"examples": []}, 400, "empty array"),
    ],
)
def test_errors_have_the_documented_shape(server, path, body, status, part):
    found, document = server.post(path, body)
    assert (found, list(document)) == (status, ["error"])
    assert part in document["error"]


def test_other_methods_and_paths(server):
    assert server.get("/v1/models/none")[0] == 404
    assert server.get("/v1/models/half:predict")[0] == 400
    assert server.get("/v1/nothing") == (400, {"error": "Malformed request: GET /v1/nothing"})
    assert server.get("/nothing") == (404, {"error": "Not found: /nothing"})


def test_health_readiness_and_metrics(server):
    assert server.request("GET", "/healthz")[:2] == (200, b"ok\n")
    assert server.request("GET", "/readyz")[:2] == (200, b"ready\n")
    server.post(PREDICT, {"instances": [1.0]})
    status, page, _ = server.request("GET", "/monitoring/prometheus/metrics")
    assert status == 200
    text = page.decode()
    assert ':tensorflow:serving:request_count{model_name="half",status="OK"} ' in text
    assert ':tensorflow:serving:request_latency_count{API="predict",entrypoint="REST",model_name="half"} ' in text
    assert 'glowplug_serve_version_state{model_name="half",version="1"} 30.0' in text
    pss = next(line for line in text.splitlines() if line.startswith("glowplug_serve_pss_bytes{"))
    assert float(pss.split()[-1]) > 1e6
    assert "glowplug_serve_first_request_seconds{" in text


def test_the_status_tells_what_was_warmed(server):
    _, document = server.get("/v1/glowplug/status")
    version = document["models"]["half"]["1"]
    assert version["workers"] == 2
    calls = {call["signature"]: call for call in version["warmup"]}
    assert calls["serving_default"]["runs"] >= 1
    assert calls["serving_default"]["first_ns"] > 0


def test_gzip_both_ways(server):
    body = gzip.compress(json.dumps({"instances": [1.0] * 5000}).encode())
    headers = {"Content-Encoding": "gzip", "Accept-Encoding": "gzip", "X-Request-Id": "me"}
    status, answer, found = server.request("POST", PREDICT, body, headers)
    assert status == 200
    assert found["content-encoding"] == "gzip"
    assert found["x-request-id"] == "me"
    assert json.loads(gzip.decompress(answer))["predictions"] == [2.5] * 5000
    for wrong in (b"not gzip", body[:-10]):
        assert server.request("POST", PREDICT, wrong, {"Content-Encoding": "gzip"})[0] == 400


def test_several_requests_on_one_connection_and_in_one_packet(server):
    one = b'POST /v1/models/half:predict HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n{"instances": [1.0]}'
    with socket.create_connection(("127.0.0.1", server.rest_port), 10) as client:
        client.sendall(one * 3)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        data = b""
        while piece := client.recv(65536):
            data += piece
    assert data.count(b'{"predictions":[2.5]}') == 3
    assert data.endswith(b"ok\n")


def exchange(server, data):
    """Return all that a server says to `data`, whose last request closes the connection."""
    with socket.create_connection(("127.0.0.1", server.rest_port), 10) as client:
        client.sendall(data)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def test_an_offer_of_http2_is_declined(server):
    head = b"POST /v1/models/half:predict HTTP/1.1\r\nHost: h\r\n" + OFFER
    posts = head + b'Content-Length: 20\r\n\r\n{"instances": [1.0]}'
    chunked = head + b'Transfer-Encoding: chunked\r\n\r\n14\r\n{"instances": [1.0]}\r\n0\r\n\r\n'
    looks = b"GET /readyz HTTP/1.1\r\nHost: h\r\n" + OFFER + b"\r\n"
    answer = exchange(server, (posts + chunked + looks) * 100 + LAST)
    assert answer.count(b"HTTP/1.1 200 OK") == 301
    assert answer.count(b'{"predictions":[2.5]}') == 200
    closing = b"GET /readyz HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert exchange(server, closing).endswith(b"Connection: close\r\n\r\nready\n")


def test_no_proxy(server):
    assert exchange(server, b"CONNECT other:80 HTTP/1.1\r\nHost: other\r\n\r\n").startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("path", [b"/v1/models/half", b"/v1/models/half/metadata", b"/healthz", b"/none"])
def test_an_answer_to_head_has_no_body(server, path):
    answer = exchange(server, b"HEAD %s HTTP/1.1\r\nHost: h\r\n\r\n" % path + LAST)
    first, _, rest = answer.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 ")
    assert rest.startswith(b"HTTP/1.1 200 OK\r\n")
    assert rest.endswith(b"\r\n\r\nok\n")


def test_clients_of_http_1_0(server):
    one = b"GET /healthz HTTP/1.0\r\n%s\r\n"
    assert b"Connection: close" in exchange(server, one % b"")
    answer = exchange(server, one % b"Connection: keep-alive\r\n" + one % b"")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert answer.count(b"Connection: keep-alive") == 1


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server):
    with socket.create_connection(("127.0.0.1", server.rest_port), 10) as client:
        client.sendall(b"POST /v1/models/half:predict HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 413 ")
        assert client.recv(1) == b""


def test_a_body_that_is_too_large_is_refused_also_when_it_is_sent(server):
    status, body, _ = server.request("POST", PREDICT, bytes(100_000_000))
    assert status == 413
    assert "--max-request-bytes" in json.loads(body)["error"]


@pytest.mark.parametrize("data", [b"\x00\x01\x02\r\n\r\n", b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n"])
def test_what_is_not_http_is_refused(server, data):
    with socket.create_connection(("127.0.0.1", server.rest_port), 10) as client:
        client.sendall(data)
        assert client.recv(65536).startswith(b"HTTP/1.1 4")


def test_text_that_is_not_unicode_is_answered(server):
    for body in (b'{"signature_name": "\\ud800", "instances": [NaN]}', b'{"instances": ["\\ud83d"]} behind'):
        status, document = server.post(PREDICT, body)
        assert (status, list(document)) == (400, ["error"])
    assert json.loads(error_body("a\ud800b")) == {"error": "a?b"}


def test_messages_tell_no_paths(server, half_plus_two):
    bodies = [{"instances": ["x"]}, {"instances": [1], "signature_name": "z"}]
    for body in bodies:
        assert str(half_plus_two.parent) not in server.post(PREDICT, body)[1]["error"]
