"""Replicas of a real cluster: what they answer, how they change, and what becomes of them in bad times."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.nodes import Nodes
from tests.components.relay import Counts, Relay

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow]


@pytest.fixture(scope="module")
def urls(bundle: Callable[[str], Path], origin: Relay) -> dict[str, str]:
    """Two bundles of the zoo under URLs: a small one as two versions, and another one."""
    from glowplug.loader.origin import publish

    found = {}
    for name, url in {"dense": "s3://models/zoo/dense/1", "two_in_two_out": "s3://models/zoo/two_in_two_out"}.items():
        found[name] = f"{url}@{publish(bundle(name), url).digest}"
    return found


def call(port: int, path: str, document: Any = None) -> tuple[int, Any]:
    """Ask by HTTP; return the status and the document."""
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def replicas(application: str) -> list[dict[str, Any]]:
    from glowplug import cluster

    found = [one for node in cluster.status()["nodes"] for one in node["replicas"]]
    return [one for one in found if one["application"] == application]


@pytest.fixture
def expected(bundle: Callable[[str], Path]) -> tuple[Any, Any]:
    """A row for the dense model, and what it answers."""
    import glowplug

    with glowplug.load(bundle("dense")) as model:
        (port,) = model.signature("serving_default").signature.inputs.values()
        shape = [1 if size is None else size for size in port.spec.shape or ()]
        row = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        answer = model(row)
    return row, next(iter(answer.values())) if isinstance(answer, dict) else answer


def test_every_protocol_answers_what_the_model_answers(
    serving: None, urls: dict[str, str], ports: tuple[int, int], expected: tuple[Any, Any], origin: Relay
) -> None:
    import grpc
    from ray import serve

    from glowplug import cluster
    from glowplug.serve.wire import tensor_proto
    from glowplug.serve.wire.limits import Limits
    from glowplug.serve.wire.messages import message
    from glowplug.serve.wire.messages import serving as serving_message

    row, answer = expected
    done = cluster.deploy(urls["dense"], application="dense", replicas=3, max_replicas_per_node=1)
    try:
        assert done.generation.models[0].version == 1
        assert len({one["node"] for one in _placed("dense")}) == 3
        status, document = call(ports[0], "/v1/models/dense:predict", {"instances": row.tolist()})
        assert status == 200
        np.testing.assert_allclose(document["predictions"], answer, rtol=1e-6)
        assert call(ports[0], "/v1/models/dense")[1]["model_version_status"][0]["state"] == "AVAILABLE"
        inputs = [{"name": "x", "shape": list(row.shape), "datatype": "FP32", "data": row.ravel().tolist()}]
        described = call(ports[0], "/v2/models/dense")[1]
        inputs[0]["name"] = described["inputs"][0]["name"]
        status, document = call(ports[0], "/v2/models/dense/infer", {"inputs": inputs})
        assert status == 200
        np.testing.assert_allclose(np.ravel(document["outputs"][0]["data"]), np.ravel(answer), rtol=1e-6)
        status, document = call(ports[0], "/v1/models/dense:predict", {"instances": [["no number"]]})
        assert status == 400
        with grpc.insecure_channel(f"127.0.0.1:{ports[1]}") as channel:
            predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
            request = serving_message("PredictRequest")()
            request.model_spec.name = "dense"
            tensor_proto.fill(request.inputs[described["inputs"][0]["name"]], row, "float32")
            metadata = (("application", "dense"),)
            reply = serving_message("PredictResponse").FromString(
                predict(request.SerializeToString(), metadata=metadata, timeout=60)
            )
            assert reply.model_spec.version.value == 1
            (output,) = reply.outputs.values()
            np.testing.assert_allclose(tensor_proto.decode(output, "output", Limits()), answer, rtol=1e-6)
            ready = channel.unary_unary("/inference.GRPCInferenceService/ModelReady")
            asked = message("inference.ModelReadyRequest")(name="dense")
            data = ready(asked.SerializeToString(), metadata=metadata, timeout=60)
            assert message("inference.ModelReadyResponse").FromString(data).ready
            request.model_spec.name = "absent"
            with pytest.raises(grpc.RpcError) as failed:
                predict(request.SerializeToString(), metadata=metadata, timeout=60)
            assert failed.value.code() is grpc.StatusCode.NOT_FOUND
    finally:
        serve.delete("dense")


def _placed(application: str) -> list[dict[str, Any]]:
    from glowplug import cluster

    nodes = cluster.status()["nodes"]
    return [node for node in nodes for one in node["replicas"] if one["application"] == application]


def test_replicas_come_from_the_standby_of_their_node_and_map_one_copy(
    serving: None, urls: dict[str, str], three_nodes: Nodes
) -> None:
    from glowplug import cluster

    cluster.deploy(urls["dense"], application="mapped", route_prefix="/mapped", replicas=2)
    try:
        found = replicas("mapped")
        assert len(found) == 2
        for one in found:
            assert one["notes"] == []
            assert len(one["workers"]) == 1
            maps = Path(f"/proc/{one['workers'][0]}/maps").read_text()
            mapped = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/entries/" in line}
            assert any(str(three_nodes.cache(number)) in path for path in mapped for number in range(3))
    finally:
        cluster.down("mapped")


def test_replicas_without_a_standby_answer_the_same(
    serving: None, urls: dict[str, str], ports: tuple[int, int], expected: tuple[Any, Any]
) -> None:
    from glowplug import cluster

    row, answer = expected
    cluster.deploy(urls["dense"], application="plain", route_prefix="/plain", settings={"standby": False})
    try:
        status, document = call(ports[0], "/plain/v1/models/dense:predict", {"instances": row.tolist()})
        assert status == 200, document
        np.testing.assert_allclose(document["predictions"], answer, rtol=1e-6)
    finally:
        cluster.down("plain")


def test_calls_are_joined_and_replicas_scaled_where_that_is_asked_for(
    serving: None, urls: dict[str, str], ports: tuple[int, int], expected: tuple[Any, Any]
) -> None:
    from glowplug import cluster

    row, answer = expected
    joined = {"batching": True, "max_batch_size": 4, "batch_timeout_s": 0.2}
    scaled = {"min_replicas": 1, "max_replicas": 2}
    cluster.deploy(urls["dense"], application="joined", route_prefix="/joined", settings=joined, autoscaling=scaled)
    try:
        with ThreadPoolExecutor(8) as pool:
            rows = [row * factor for factor in range(8)]
            asked = [
                pool.submit(call, ports[0], "/joined/v1/models/dense:predict", {"instances": one.tolist()})
                for one in rows
            ]
            found = [one.result() for one in asked]
        assert [status for status, _ in found] == [200] * 8
        np.testing.assert_allclose(found[1][1]["predictions"], answer, rtol=1e-6)
        assert len({json.dumps(document) for _, document in found}) == 8  # each got its own answer
        assert 1 <= len(replicas("joined")) <= 2
        page = (
            urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/joined/monitoring/prometheus/metrics").read().decode()
        )
        batches = re.findall(r"^glowplug_serve_batch_rows_count\S* (\S+)$", page, re.MULTILINE)
        assert 0 < sum(map(float, batches)) < 8, batches
    finally:
        cluster.down("joined")


def test_a_new_version_takes_over_and_the_old_one_can_come_back(
    serving: None, urls: dict[str, str], ports: tuple[int, int], bundle: Callable[[str], Path], origin: Relay
) -> None:
    from glowplug import cluster
    from glowplug.core.errors import UsageError
    from glowplug.loader.origin import publish

    second = "s3://models/zoo/dense/2"
    publish(bundle("dense"), second)
    cluster.deploy({"dense": urls["dense"]}, application="rolling", route_prefix="/rolling", replicas=2)
    try:
        pids = sorted(one["pid"] for one in replicas("rolling"))
        with pytest.raises(UsageError, match="nothing to go back to"):
            cluster.rollback("rolling")
        done = cluster.deploy({"dense": second}, application="rolling", route_prefix="/rolling", replicas=2)
        assert done.generation.number == 2
        assert done.generation.models[0].url.startswith(f"{second}@")
        assert _versions(ports[0], "/rolling") == [2]
        assert sorted(one["pid"] for one in replicas("rolling")) == pids  # they changed in place
        back = cluster.rollback("rolling")
        assert (back.generation.number, back.generation.models[0].version) == (3, 1)
        assert _versions(ports[0], "/rolling") == [1]
    finally:
        cluster.down("rolling")


def _versions(port: int, prefix: str) -> list[int]:
    found = call(port, f"{prefix}/v1/models/dense")[1]["model_version_status"]
    return sorted(int(one["version"]) for one in found if one["state"] == "AVAILABLE")


def test_a_version_that_cannot_be_warmed_changes_nothing(
    serving: None,
    urls: dict[str, str],
    ports: tuple[int, int],
    bundle: Callable[[str], Path],
    tmp_path: Path,
    expected: tuple[Any, Any],
) -> None:
    import shutil

    from glowplug import cluster
    from glowplug.core.errors import RolloutError
    from glowplug.store.push import push

    row, answer = expected
    broken = tmp_path / "broken"
    shutil.copytree(bundle("dense"), broken)
    manifest = broken / "bundle.json"
    manifest.write_text("{}")
    push(broken, "s3://models/zoo/broken/2")
    cluster.deploy({"dense": urls["dense"]}, application="kept", route_prefix="/kept", replicas=2)
    try:
        with pytest.raises(RolloutError, match="cannot be served everywhere"):
            cluster.deploy({"dense": "s3://models/zoo/broken/2"}, application="kept", route_prefix="/kept", replicas=2)
        assert _versions(ports[0], "/kept") == [1]
        status, document = call(ports[0], "/kept/v1/models/dense:predict", {"instances": row.tolist()})
        assert status == 200
        np.testing.assert_allclose(document["predictions"], answer, rtol=1e-6)
    finally:
        cluster.down("kept")


def test_a_first_version_that_cannot_be_warmed_leaves_nothing(
    serving: None, bundle: Callable[[str], Path], origin: Relay, tmp_path: Path
) -> None:
    """Its replicas were started while it was fetched."""
    import shutil

    from ray import serve

    from glowplug import cluster
    from glowplug.cluster import ledger
    from glowplug.core.errors import RolloutError
    from glowplug.store.push import push

    broken = tmp_path / "broken"
    shutil.copytree(bundle("dense"), broken)
    (broken / "bundle.json").write_text("{}")
    push(broken, "s3://models/zoo/unborn/1")
    with pytest.raises(RolloutError, match="cannot be served everywhere"):
        cluster.deploy({"dense": "s3://models/zoo/unborn/1"}, application="unborn", route_prefix="/unborn", replicas=2)
    assert "unborn" not in serve.status().applications
    assert not ledger.read("unborn")
    assert not replicas("unborn")


def test_of_many_models_the_last_used_stay(serving: None, urls: dict[str, str], ports: tuple[int, int]) -> None:
    from glowplug import cluster

    models = {"a": urls["dense"], "b": urls["two_in_two_out"], "c": urls["dense"]}
    cluster.deploy(models, application="many", route_prefix="/many", settings={"resident": 1})
    try:
        for name in ("a", "b", "c", "a"):
            described = call(ports[0], f"/many/v2/models/{name}")
            inputs = [
                {
                    "name": one["name"],
                    "datatype": one["datatype"],
                    "shape": [abs(size) for size in one["shape"]],
                    "data": [0.5] * int(np.prod([abs(size) for size in one["shape"]])),
                }
                for one in described[1].get("inputs", ())
            ]
            status, document = call(ports[0], f"/many/v2/models/{name}/infer", {"inputs": inputs})
            assert status == 200, document
            assert document["model_name"] == name
    finally:
        cluster.down("many")


def test_a_killed_worker_is_replaced_and_requests_go_on(
    serving: None, urls: dict[str, str], ports: tuple[int, int], expected: tuple[Any, Any]
) -> None:
    from glowplug import cluster

    row, answer = expected
    cluster.deploy({"dense": urls["dense"]}, application="killed", route_prefix="/killed")
    try:
        (one,) = replicas("killed")
        (worker,) = one["workers"]
        os.kill(worker, signal.SIGKILL)
        codes = set()
        for _ in range(200):
            status, document = call(ports[0], "/killed/v1/models/dense:predict", {"instances": row.tolist()})
            codes.add(status)
            if status == 200:
                np.testing.assert_allclose(document["predictions"], answer, rtol=1e-6)
                break
        assert status == 200
        assert codes <= {200, 503}  # never a wrong answer, and never one that must not be tried again
    finally:
        cluster.down("killed")


def test_nothing_of_tensorflow_is_in_a_replica(serving: None, urls: dict[str, str]) -> None:
    from glowplug import cluster

    cluster.deploy({"dense": urls["dense"]}, application="light", route_prefix="/light")
    try:
        (one,) = replicas("light")
        assert "libtensorflow" not in Path(f"/proc/{one['pid']}/maps").read_text()
        assert "libtensorflow" in Path(f"/proc/{one['workers'][0]}/maps").read_text()
    finally:
        cluster.down("light")


def test_a_replica_on_a_node_that_lacks_the_model_gets_it_from_another(
    serving: None, bundle: Callable[[str], Path], ports: tuple[int, int], three_nodes: Nodes, origin: Relay
) -> None:
    from ray import serve

    from glowplug import cluster
    from glowplug.loader.origin import publish

    url = "s3://models/zoo/late/7"
    pinned = f"{url}@{publish(bundle('two_in_two_out'), url).digest}"
    cluster.preload(pinned, nodes=[three_nodes.ids[0]])
    origin.counts = Counts()
    serve.run(cluster.deployment(pinned, replicas=3, max_replicas_per_node=1), name="late", route_prefix="/late")
    assert len(replicas("late")) == 3
    assert origin.counts.received_bytes == 0
    serve.delete("late")
