from __future__ import annotations

import io

import numpy as np
import pytest

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.serve import recording
from glowplug.serve.log import Log
from glowplug.serve.models.sources import Source
from glowplug.serve.models.versions import Version
from glowplug.serve.recording import Recorder
from glowplug.serve.wire.limits import Limits
from glowplug.serve.workers import warmup, worker
from glowplug.serve.workers.spec import WarmCall, WorkerSpec


class Doubling:
    """An engine that doubles its input and refuses more than two rows."""

    def __init__(self):
        spec = TensorSpec("float32", (None, 2))
        self.signatures = {"serving_default": Signature({"x": Port(spec, "x:0")}, {"y": Port(spec, "y:0")})}
        self.notes, self.calls = [], []

    def run(self, signature, inputs):
        self.calls.append(inputs[0].shape)
        if len(inputs[0]) > 2:
            raise RequestError("too many rows")
        return [inputs[0] * 2]

    def close(self):
        pass


@pytest.fixture
def version(tmp_path):
    return Version("m", 1, Source(tmp_path, "bundle"))


def test_recorded_requests_are_read_back(tmp_path, version):
    recorder = Recorder(tmp_path / "recorded", Log(as_json=True, access=False))
    for rows in (1, 2, 2, 3):
        recorder.offer(version, "serving_default", {"x": np.full((rows, 2), rows, np.float32)})
    planned = list(warmup.from_serving_file(tmp_path / "recorded" / "m.requests", Limits()))
    assert [(one.signature, one.inputs["x"].shape) for one in planned] == [
        ("serving_default", (rows, 2)) for rows in (1, 2, 3)
    ]
    engine = Doubling()
    done = list(warmup.run(engine, iter(planned)))
    assert engine.calls == [(1, 2), (1, 2), (2, 2), (3, 2)]
    assert [(call.rows, call.runs, call.error) for call in done] == [(1, 2, ""), (2, 1, ""), (3, 0, "too many rows")]


def test_what_cannot_be_recorded_fails_no_prediction(tmp_path, version):
    class Unwritable:
        shape, nbytes, dtype = (1,), 4, np.dtype(np.void)

    log = io.StringIO()
    recorder = Recorder(tmp_path, Log(as_json=True, access=False, stream=log))
    recorder.offer(version, "serving_default", {"x": Unwritable()})
    assert log.getvalue().count("not_recorded") == 1
    recorder.offer(version, "serving_default", {"x": np.zeros(3, np.float32)})  # it is not tried again
    assert not (tmp_path / "m.requests").exists()


def test_a_large_request_is_not_recorded(tmp_path, version):
    recorder = Recorder(tmp_path, Log(as_json=True, access=False))
    recorder.offer(version, "serving_default", {"x": np.zeros(recording.MAX_BYTES + 1, np.int8)})
    recorder.offer(version, "serving_default", {"x": np.zeros(3, np.float32)})
    (planned,) = warmup.from_serving_file(tmp_path / "m.requests", Limits())
    assert planned.inputs["x"].shape == (3,)


def test_recording_is_bounded(tmp_path, version):
    recorder = Recorder(tmp_path, Log(as_json=True, access=False))
    for rows in range(2 * recording.MAX_REQUESTS):
        recorder.offer(version, "serving_default", {"x": np.zeros((rows, 2), np.float32)})
    assert len(list(warmup.from_serving_file(tmp_path / "m.requests", Limits()))) == recording.MAX_REQUESTS


def test_the_checksum_is_crc32c():
    crc = 0xE3069283  # of "123456789", from RFC 3720
    assert recording._masked(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("data", [b"\x01", b"\xff" * 12, b"\x05" + b"\0" * 11 + b"abc"])
def test_damaged_files_are_refused(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(RequestError, match=r"cut off|damaged"):
        list(warmup.from_serving_file(tmp_path / "file", Limits()))


@pytest.mark.parametrize("data", [b"", b"garbage" * 10, b"\x05" + b"\0" * 11])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_file_without_calls_leaves_no_model_cold(tmp_path, data, recorded):
    path = tmp_path / "m.requests" if recorded else tmp_path / warmup.SERVING_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    spec = WorkerSpec(str(tmp_path), "bundle", recorded=str(path) if recorded else "")
    assert [one.source for one in worker._planned(Doubling(), spec, [])] == ["synthesised"]


def test_calls_are_made_up_at_batch_one_and_the_largest_batch():
    engine = Doubling()
    planned = list(warmup.synthesized(engine.signatures, 2))
    assert [one.inputs["x"].shape for one in planned] == [(1, 2), (2, 2)]
    assert [call.error for call in warmup.run(engine, iter(planned))] == ["", ""]


def test_nothing_is_run_twice_where_a_brief_warm_up_will_do():
    engine = Doubling()
    planned = list(warmup.synthesized(engine.signatures, 2))
    assert [call.runs for call in warmup.run(engine, iter(planned))] == [2, 1]
    assert [call.runs for call in warmup.run(engine, iter(planned), brief=True)] == [1, 1]


def test_signatures_that_differ_in_name_alone_are_one():
    spec, other = TensorSpec("float32", (None, 2)), TensorSpec("float32", (None, 3))

    def signature(output=spec, weights=(0, 1)):
        return Signature({"x": Port(spec, "x:0")}, {"y": Port(output, "y:0")}, weights)

    alike = {"serve": signature(), "serving_default": signature()}
    assert list(warmup.distinct(alike)) == ["serving_default"]
    different = {"a": signature(), "b": signature(other), "c": signature(weights=(0, 2)), "d": signature(weights=())}
    assert set(warmup.distinct({**different, "e": signature(weights=())})) == {*different, "e"}


def test_a_call_of_another_signature_is_reported_and_no_more():
    engine = Doubling()
    wrong = [warmup.Planned("none", "packed", {}), warmup.Planned("serving_default", "packed", {"z": np.zeros(1)})]
    errors = [call.error for call in warmup.run(engine, iter(wrong))]
    assert "no such signature" in errors[0]
    assert "do not fit signature" in errors[1]


@pytest.mark.parametrize(
    ("source", "code", "reason"),
    [
        ("synthesised", "INVALID_ARGUMENT", ""),  # another input may do
        ("synthesised", "FAILED_PRECONDITION", "it has no value"),
        ("recorded", "INVALID_ARGUMENT", ""),
        ("packed", "INVALID_ARGUMENT", "it has no value"),
        ("serving file", "OUT_OF_RANGE", "it has no value"),
    ],
)
def test_a_model_is_dead_when_a_good_call_fails_or_no_input_could_help(source, code, reason):
    failed = WarmCall("serving_default", source, 1, 0, 0, 0, "it has no value", code)
    assert reason in warmup.why_dead([failed])
    assert bool(warmup.why_dead([failed])) == bool(reason)


def test_a_signature_that_works_is_enough_where_there_is_no_default_one():
    failed = WarmCall("initialise", "synthesised", 1, 0, 0, 0, "it has no value", "FAILED_PRECONDITION")
    good = WarmCall("other", "synthesised", 1, 1, 5, 5)
    assert warmup.why_dead([failed, good]) == ""
    assert "it has no value" in warmup.why_dead([failed])
