"""OpenTelemetry, from a request to the worker that ran it, as a collector receives it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from importlib.util import find_spec

import grpc
import numpy as np
import pytest

from glowplug.core.errors import UsageError
from glowplug.serve.telemetry import otel
from glowplug.serve.wire.messages import message, serving
from glowplug.serve.wire.tensor_proto import encode
from tests.serve.collector import Collector, attributes
from tests.serve.server import Server, free_port

PREDICT = "/v1/models/half:predict"
GRPC_PREDICT = "tensorflow.serving.PredictionService/Predict"

needs_sdk = pytest.mark.skipif(
    find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None,
    reason="opentelemetry-sdk is not installed",
)


def environment(url, **more):
    found = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    found |= {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "200"}
    return {**dict.fromkeys(set(os.environ) - set(found), ""), **found, **more}


@pytest.fixture(scope="module")
def collector():
    pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="no opentelemetry-proto")
    with Collector() as started:
        yield started


@pytest.fixture(scope="module")
def traced(half_plus_two, collector):
    settings = environment(
        collector.url,
        OTEL_SERVICE_NAME="models",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test",
        OTEL_EXPORTER_OTLP_HEADERS="x-key=secret",
    )
    with Server(f"half={half_plus_two}", "--otel", "--access-log-json", environment=settings) as started:
        yield started


class Caller:
    """A client that is part of a trace."""

    def __init__(self, *, sampled=True):
        self.trace, self.span = secrets.token_hex(16), secrets.token_hex(8)
        self.header = f"00-{self.trace}-{self.span}-{'01' if sampled else '00'}"

    def spans(self, collector, count):
        """Wait for the spans of this trace: the one of the request, and those below it."""

        def found():
            seen = [span for span in collector.spans() if span.trace_id.hex() == self.trace]
            return seen if len(seen) >= count else None

        seen = collector.wait(found)
        assert len(seen) == count
        (request,) = [span for span in seen if span.parent_span_id.hex() == self.span]
        return request, [span for span in seen if span is not request]


def rest(server, body, path=PREDICT, **headers):
    return server.request("POST", path, json.dumps(body).encode(), headers)


@needs_sdk
@pytest.mark.tensorflow
class TestTraces:
    def test_a_rest_request_and_its_worker(self, traced, collector):
        caller = Caller()
        status, _, _ = rest(traced, {"instances": [1.0]}, traceparent=caller.header)
        assert status == 200
        request, (worker,) = caller.spans(collector, 2)
        assert (request.name, request.kind) == ("POST predict", 2)  # SERVER
        assert worker.parent_span_id == request.span_id
        model = {
            "glowplug.model.name": "half",
            "glowplug.model.version": "1",
            "glowplug.signature": "serving_default",
        }
        assert attributes(request) == {
            "http.request.method": "POST",
            "url.path": PREDICT,
            "http.response.status_code": 200,
            **model,
        }
        seen = attributes(worker)
        assert seen.pop("process.pid") in {one.pid for one in traced.workers()}
        assert seen.pop("glowplug.queue.seconds") >= 0
        assert seen == {**model, "glowplug.batch.rows": 0}
        times = [request.start_time_unix_nano, worker.start_time_unix_nano]
        times += [worker.end_time_unix_nano, request.end_time_unix_nano]
        assert times == sorted(times)
        assert (request.status.code, worker.status.code) == (0, 0)

    def test_a_call_over_grpc(self, traced, collector):
        caller = Caller()
        request = serving("PredictRequest")()
        request.model_spec.name = "half"
        request.inputs["x"].CopyFrom(encode(np.ones((1, 1), np.float32), "float32"))
        with grpc.insecure_channel(f"127.0.0.1:{traced.grpc_port}") as channel:
            stub = channel.unary_unary(f"/{GRPC_PREDICT}", lambda one: one.SerializeToString(), lambda data: data)
            stub(request, timeout=60, metadata=[("traceparent", caller.header)])
        span, (worker,) = caller.spans(collector, 2)
        assert span.name == GRPC_PREDICT
        assert worker.parent_span_id == span.span_id
        seen = attributes(span)
        assert seen["rpc.system"] == "grpc"
        assert seen["rpc.service"] == "tensorflow.serving.PredictionService"
        assert (seen["rpc.method"], seen["rpc.grpc.status_code"]) == ("Predict", 0)
        assert (seen["glowplug.model.version"], seen["glowplug.signature"]) == ("1", "serving_default")

    def test_each_message_of_a_stream(self, traced, collector):
        caller = Caller()
        made = message("inference.ModelInferRequest")(model_name="half")
        made.inputs.add(name="x", datatype="FP32", shape=[1, 1])
        made.raw_input_contents.append(np.ones(1, np.float32).tobytes())
        with grpc.insecure_channel(f"127.0.0.1:{traced.grpc_port}") as channel:
            path = "/inference.GRPCInferenceService/ModelStreamInfer"
            stub = channel.stream_stream(path, lambda one: one.SerializeToString(), lambda data: data)
            answers = list(stub(iter([made, made]), timeout=60, metadata=[("traceparent", caller.header)]))
        assert len(answers) == 2

        def found():
            seen = [span for span in collector.spans() if span.trace_id.hex() == caller.trace]
            return seen if len(seen) == 4 else None

        spans = collector.wait(found)
        above = {span.span_id for span in spans if span.parent_span_id.hex() == caller.span}
        assert len(above) == 2
        assert {span.parent_span_id for span in spans if span.span_id not in above} == above

    def test_the_clients_own_error(self, traced, collector):
        caller = Caller()
        status, _, _ = rest(traced, {"instances": [1.0], "signature_name": "no"}, traceparent=caller.header)
        assert status == 400
        request, below = caller.spans(collector, 1)
        assert below == []
        assert attributes(request)["error.type"] == "INVALID_ARGUMENT"
        assert attributes(request)["http.response.status_code"] == 400
        assert request.status.code == 0  # no fault of this server

    def test_an_error_in_the_worker(self, traced, collector):
        caller = Caller()
        body = {"signature_name": "regress_x_to_y", "examples": [{}]}
        status, _, _ = rest(traced, body, "/v1/models/half:regress", traceparent=caller.header)
        assert status == 400
        request, (worker,) = caller.spans(collector, 2)
        assert worker.parent_span_id == request.span_id
        assert worker.status.code == 2  # ERROR
        assert "x" in worker.status.message
        assert attributes(worker)["error.type"] == "INVALID_ARGUMENT"
        assert attributes(worker)["glowplug.signature"] == "regress_x_to_y"
        assert attributes(worker)["process.pid"] > 0

    def test_who_is_in_no_trace_begins_one_and_who_is_not_sampled_is_not(self, traced, collector):
        unsampled, last = Caller(sampled=False), Caller()
        assert rest(traced, {"instances": [7.0]}, traceparent=unsampled.header)[0] == 200
        for header in ({}, {"traceparent": "00-nothing"}):
            assert rest(traced, {"instances": [7.0]}, **{"X-Request-Id": "root", **header})[0] == 200
        assert rest(traced, {"instances": [7.0]}, traceparent=last.header)[0] == 200
        last.spans(collector, 2)  # which comes behind the others
        assert [span for span in collector.spans() if span.trace_id.hex() == unsampled.trace] == []
        lines = [one for one in traced.events if one["event"] == "request" and one["id"] == "root"]
        traces = [line["trace_id"] for line in lines]
        assert len(set(traces)) == 2
        for trace in traces:
            (root,) = [span for span in collector.spans() if span.trace_id.hex() == trace and not span.parent_span_id]
            assert root.name == "POST predict"

    def test_the_server_is_described_as_the_variables_say(self, traced, collector):
        rest(traced, {"instances": [1.0]})
        collector.wait(collector.spans)
        (found,) = {tuple(sorted(one.items())) for one in collector.resources()}
        about = dict(found)
        assert (about["service.name"], about["deployment.environment"]) == ("models", "test")
        assert about["service.version"]
        assert {headers["x-key"] for _, _, headers in collector.exports} == {"secret"}
        assert "secret" not in json.dumps(traced.events) + traced.other_output.decode()


@needs_sdk
@pytest.mark.tensorflow
def test_metrics_of_a_signature(traced, collector):
    def count(metric, **labels):
        points = [one for one in collector.metric(metric) if labels.items() <= attributes(one).items()]
        return sum(one.count for one in points)

    signature = {"model": "half", "version": "1", "signature": "classify_x_to_y"}
    before = count("glowplug.serve.call.duration", **signature)
    for _ in range(3):
        body = {"signature_name": "classify_x_to_y", "examples": [{"x": 1.0}]}
        assert rest(traced, body, "/v1/models/half:classify")[0] == 200
    assert rest(traced, {"instances": [1.0]}, "/v1/models/made-up:predict")[0] == 404
    collector.wait(lambda: count("glowplug.serve.call.duration", **signature) == before + 3)
    collector.wait(lambda: count("glowplug.serve.worker.duration", **signature) == before + 3)
    known = {"protocol": "REST", "method": "classify", "model": "half", "code": "OK"}
    collector.wait(lambda: count("glowplug.serve.request.duration", **known) == 3)
    unknown = {"protocol": "REST", "method": "predict", "model": "", "code": "NOT_FOUND"}
    collector.wait(lambda: count("glowplug.serve.request.duration", **unknown) == 1)
    about = {"model": "half", "version": "1"}
    for metric, least in (("version.state", 30), ("worker.count", 1), ("queue.length", 0), ("worker.memory", 1 << 20)):
        (point,) = collector.metric(f"glowplug.serve.{metric}")
        assert attributes(point) == about
        assert point.as_int >= least
    (bounds,) = {tuple(one.explicit_bounds) for one in collector.metric("glowplug.serve.request.duration")}
    assert bounds[:2] == (0.0005, 0.001)


@needs_sdk
@pytest.mark.tensorflow
def test_what_is_there_is_exported_when_the_server_stops(half_plus_two):
    caller = Caller()
    with Collector() as collector:
        settings = environment(collector.url, OTEL_BSP_SCHEDULE_DELAY="600000", OTEL_METRICS_EXPORTER="none")
        with Server(f"half={half_plus_two}", "--otel", environment=settings) as server:
            assert rest(server, {"instances": [1.0]}, traceparent=caller.header)[0] == 200
        caller.spans(collector, 2)
        assert {path for path, _, _ in collector.exports} == {"/v1/traces"}


@needs_sdk
@pytest.mark.tensorflow
def test_a_collector_that_is_away_is_said_so_and_holds_nothing_up(half_plus_two):
    settings = environment(f"http://127.0.0.1:{free_port()}", OTEL_EXPORTER_OTLP_TIMEOUT="1")
    with Server(f"half={half_plus_two}", "--otel", environment=settings) as server:
        for _ in range(3):
            assert rest(server, {"instances": [1.0]})[0] == 200
        server.wait_event("telemetry_failed")
        assert rest(server, {"instances": [1.0]})[0] == 200
        assert any(one["what"] == "telemetry_failed" for one in server.get("/v1/glowplug/live")[1]["trouble"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_variables_that_ask_for_what_is_not_there(monkeypatch, name, value):
    for one in [one for one in os.environ if one.startswith("OTEL_")]:
        monkeypatch.delenv(one)
    otel.check_environment()
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=f"{name}={value}"):
        otel.check_environment()


def test_nothing_of_it_is_loaded_where_it_is_off():
    code = "import glowplug.serve.frontend, sys; print([one for one in sys.modules if 'opentelemetry' in one])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
