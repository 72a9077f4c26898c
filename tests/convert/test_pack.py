"""The orchestration of `pack`: sources, engines, warm-up, refusal, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle
from glowplug.core import errors

pytestmark = pytest.mark.tensorflow


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_keras_file(tmp_path: Path) -> None:
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(300), keras.layers.Dense(2)])
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    for suffix in ("keras", "h5"):
        model.save(tmp_path / f"m.{suffix}")
        packed = glowplug.pack(tmp_path / f"m.{suffix}", tmp_path / f"{suffix}.glow", prefer="any")
        assert packed.manifest.engine == "native"
        assert packed.manifest.provenance["name"] == f"m.{suffix}"
        with glowplug.load(tmp_path / f"{suffix}.glow") as loaded:
            np.testing.assert_allclose(loaded(x), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


def test_live_keras_model_and_module(tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    glowplug.pack(model, tmp_path / "keras.glow", prefer="any")

    class Double(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
        def __call__(self, x: Any) -> Any:
            return x * 2

    glowplug.pack(Double(), tmp_path / "module.glow", prefer="any")
    with glowplug.load(tmp_path / "module.glow") as loaded:
        np.testing.assert_array_equal(loaded([1, 2, 3]), [2, 4, 6])


def test_each_tensor_is_stored_once(bundle: Callable[[str], Path], saved_model: Callable[[str], Path]) -> None:
    stored = open_bundle(bundle("dense")).manifest
    assert len(stored.signatures) == 2  # Keras exports the same function twice, and every weight twice
    size = sum(tensor.nbytes for tensor in stored.tensors)
    assert size == 4 * (16 * 64 + 64 + 64 * 3 + 3)
    checkpoint = sum(path.stat().st_size for path in saved_model("dense").glob("variables/*data*"))
    assert checkpoint > 2 * size


def test_refuses_to_overwrite_unless_forced(
    bundle: Callable[[str], Path], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    target = tmp_path / "m.glow"
    target.mkdir()
    with pytest.raises(errors.OutputExistsError, match="--force"):
        glowplug.pack(saved_model("scalar"), target)
    for _ in range(2):  # an empty folder, and a bundle
        before = target.stat().st_ino
        glowplug.pack(saved_model("scalar"), target, force=True, prefer="any")
        assert target.stat().st_ino != before
    (target / "precious").write_text("x")
    with pytest.raises(errors.OutputExistsError, match="never replaced"):
        glowplug.pack(saved_model("scalar"), target, force=True)
    assert (target / "precious").exists()
    assert leftovers(tmp_path) == ["m.glow"]


@pytest.mark.parametrize("kind", ["missing", "empty folder", "text file", "damaged", "broken keras"])
@pytest.mark.parametrize("place", ["at once", "further in"])
def test_not_a_model_leaves_nothing(kind: str, place: str, tmp_path: Path, saved_model: Callable[[str], Path]) -> None:
    import shutil

    source, out = tmp_path / "source", tmp_path / "out"
    out.mkdir()
    expected: type[errors.GlowplugError] = errors.NotAModelError
    if kind == "missing":
        expected = errors.UsageError
    elif kind == "empty folder":
        source.mkdir()
    elif kind == "text file":
        source.write_text("hello")
    elif kind == "broken keras":
        source = source.with_suffix(".keras")
        source.write_bytes(b"PK\x03\x04 not a zip")
        if place == "further in":
            with zipfile.ZipFile(source, "w") as archive:
                archive.writestr("config.json", "{}")
    else:
        shutil.copytree(saved_model("scalar"), source)
        (source / "saved_model.pb").write_bytes((b"\x08\x01" if place == "further in" else b"") + b"\xff" * 100)
    with pytest.raises(expected) as caught:
        glowplug.pack(source, out / "m.glow")
    assert "\n" not in str(caught.value)
    assert leftovers(out) == []


def test_native_is_refused_where_it_cannot_be(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(errors.OpNotAllowedError, match="MatchingFiles"):
        glowplug.pack(saved_model("uses_file_op"), tmp_path / "m.glow", engine="native")
    packed = glowplug.pack(saved_model("uses_file_op"), tmp_path / "m.glow")
    assert packed.manifest.engine == "savedmodel"
    assert packed.reason is not None
    assert "MatchingFiles" in packed.reason
    assert leftovers(tmp_path) == ["m.glow"]


def test_a_resource_that_only_its_initialiser_can_prepare(tmp_path: Path) -> None:
    """As the forests of TensorFlow Decision Forests are. What prepares it runs at load, if it is allowed to."""
    import tensorflow as tf

    from glowplug.convert.native import convert
    from glowplug.convert.source.saved_model import SavedModel
    from glowplug.convert.source.spool import Spool

    class Queue(tf.saved_model.experimental.TrackableResource):  # type: ignore[misc]
        def _create_resource(self) -> Any:
            return tf.raw_ops.FIFOQueueV2(component_types=[tf.float32], shared_name="glowplug_test")

        def _initialize(self) -> None:
            tf.raw_ops.QueueEnqueueV2(handle=self.resource_handle, components=[tf.constant(1.0)])

    class Uses(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.queue = Queue()
            assert self.queue.resource_handle is not None  # made here, to be captured

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def __call__(self, x: Any) -> Any:
            return {"y": x + tf.cast(tf.raw_ops.QueueSizeV2(handle=self.queue.resource_handle), tf.float32)}

    made = Uses()
    tf.saved_model.save(made, str(tmp_path / "m"), signatures={"serving_default": made.__call__})
    with SavedModel(tmp_path / "m") as source, contextlib.closing(Spool(tmp_path / "spool")) as spool:
        model = convert(source, spool)
    ((prepares,),) = model.initializers
    assert model.graph.nodes[prepares].op == "QueueEnqueueV2"
    with pytest.raises(errors.OpNotAllowedError, match="Queue"):
        job(tmp_path / "m", tmp_path / "native", engine="native")
    assert job(tmp_path / "m", tmp_path / "auto").engine == "savedmodel"


def test_savedmodel_engine_on_demand(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    packed = glowplug.pack(saved_model("two_in_two_out"), tmp_path / "m.glow", engine="savedmodel")
    assert (packed.manifest.engine, packed.reason) == ("savedmodel", None)
    with glowplug.load(tmp_path / "m.glow") as model:
        answer = model({"a": np.ones((2, 4), np.float32), "b": np.ones((2, 6), np.float32)})
        assert {key: value.shape for key, value in answer.items()} == {"left": (2, 2), "right": (2, 1)}


def test_a_wrong_conversion_is_noticed(
    saved_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spoil one weight after conversion: native must fail, and auto must fall back."""
    from glowplug.convert import write
    from glowplug.convert.job import Job, Order

    honest = write._store_weights

    def spoilt(writer: Any, model: Any) -> Any:
        name = next(iter(model.weights.values))
        value = model.weights.values[name]()
        model.weights.values[name] = lambda: value + 0.01
        return honest(writer, model)

    monkeypatch.setattr(write, "_store_weights", spoilt)
    (tmp_path / "native").mkdir()
    with pytest.raises(errors.OutputMismatchError, match="different answers"):
        Job(Order(tmp_path / "native", saved_model("dense"), engine="native"), lambda stage: None).run()
    (tmp_path / "auto").mkdir()
    reason = Job(Order(tmp_path / "auto", saved_model("dense")), lambda stage: None).run()
    assert open_bundle(tmp_path / "auto").manifest.engine == "savedmodel"
    assert "different answers" in (reason or "")


def test_warmup_files(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    a, b = np.ones((2, 4), np.float32), np.zeros((2, 6), np.float32)
    np.savez(tmp_path / "w.npz", a=a, b=b)
    body = {"inputs": {"a": a.tolist(), "b": b.tolist()}}
    rows = {"signature_name": "serve", "instances": [{"a": [1.0] * 4, "b": [2.0] * 6}] * 3}
    (tmp_path / "w.json").write_text(json.dumps([body, rows]))
    for name, batches in (("w.npz", [2]), ("w.json", [2, 3])):
        glowplug.pack(saved_model("two_in_two_out"), tmp_path / "m.glow", warmup=tmp_path / name, force=True)
        with glowplug.load(tmp_path / "m.glow") as model:
            assert [request.inputs["a"].shape[0] for request in model.warmup_requests()] == batches
            assert len(model.warm_up()) == len(batches)


def job(source: Path, folder: Path, **options: Any) -> Any:
    """Pack in this process and return the manifest."""
    from glowplug.convert.job import Job, Order

    folder.mkdir()
    Job(Order(folder, source, **options), lambda stage: None).run()
    return open_bundle(folder).manifest


@pytest.fixture
def picky(tmp_path: Path) -> Path:
    """A model whose first signature refuses what can be made up, and so does its twin; the third takes anything."""
    import tensorflow as tf

    class Picky(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "s")])
        def first(self, s: Any) -> Any:
            with tf.control_dependencies([tf.debugging.assert_equal(s, "open sesame")]):
                return {"y": tf.strings.length(s)}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def easy(self, x: Any) -> Any:
            return {"y": x + 1.0}

    made = Picky()
    signatures = {"serving_default": made.first, "twin": made.first, "easy": made.easy}
    tf.saved_model.save(made, str(tmp_path / "picky"), signatures=signatures)
    return tmp_path / "picky"


def test_a_signature_that_nothing_suits_does_not_demote_the_others(picky: Path, tmp_path: Path) -> None:
    manifest = job(picky, tmp_path / "m.glow")
    assert manifest.engine == "native"
    assert set(manifest.signatures) == {"serving_default", "twin", "easy"}
    assert manifest.equivalence["unproven"] == ["serving_default", "twin"]
    assert set(manifest.equivalence["calls"]) == {"easy"}


def test_a_warmup_file_of_objects_counts_for_every_signature_with_the_same_inputs(picky: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", s=np.array(["open sesame", b"open sesame"], object))
    manifest = job(picky, tmp_path / "m.glow", warmup=tmp_path / "w.npz")
    assert "unproven" not in manifest.equivalence
    assert manifest.equivalence["calls"]["twin"] == 1


class _Opens:
    def __reduce__(self) -> Any:
        return (open, ("/tmp/glowplug-was-here", "w"))


@pytest.mark.parametrize("content", [_Opens(), 1, None])
def test_objects_in_a_warmup_file_are_not_run(content: Any, picky: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", s=np.array([content, "x"], object))
    with pytest.raises(errors.NotAModelError, match="array of objects"):
        job(picky, tmp_path / "m.glow", warmup=tmp_path / "w.npz")
    assert not Path("/tmp/glowplug-was-here").exists()


def test_serving_warmup_file_is_found_by_itself(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    import shutil

    import tensorflow as tf
    from tensorflow.python.framework import tensor_util

    from glowplug.convert.calls.warmup_files import _prediction_log

    source = tmp_path / "source"
    shutil.copytree(saved_model("dense"), source)
    name = next(iter(glowplug.load(_packed(saved_model("dense"), tmp_path)).signatures["serving_default"].inputs))
    log = _prediction_log()()
    tensor = tensor_util.make_tensor_proto(np.ones((3, 16), np.float32))
    log.predict_log.request.inputs[name] = tensor.SerializeToString()
    (source / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(str(source / "assets.extra" / "tf_serving_warmup_requests")) as writer:
        writer.write(log.SerializeToString())
    glowplug.pack(source, tmp_path / "m.glow", prefer="any")
    with glowplug.load(tmp_path / "m.glow") as model:
        assert [request.inputs[name].shape for request in model.warmup_requests()] == [(3, 16)]


def _packed(source: Path, folder: Path) -> Path:
    glowplug.pack(source, folder / "plain.glow", prefer="any")
    return folder / "plain.glow"


@pytest.mark.parametrize("content", ["{", "[1]", '{"inputs": {"nope": [1]}}', '{"signature_name": "x", "inputs": [1]}'])
def test_bad_warmup_files(content: str, saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(content)
    with pytest.raises(errors.GlowplugError) as caught:
        glowplug.pack(saved_model("dense"), tmp_path / "m.glow", warmup=tmp_path / "w.json")
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path) == ["w.json"]


def test_packs_without_a_place_for_the_seal(
    saved_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("scalar", "uses_file_op"):
        glowplug.pack(saved_model(name), tmp_path / f"{name}.glow", prefer="any")
    glowplug.load(tmp_path / "scalar.glow").close()
    glowplug.load(tmp_path / "uses_file_op.glow", trust=True).close()
    with pytest.raises(errors.UntrustedBundleError):
        glowplug.load(tmp_path / "uses_file_op.glow")


def test_progress_names_every_stage(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    told: list[str] = []
    packed = glowplug.pack(saved_model("scalar"), tmp_path / "m.glow", progress=told.append, prefer="any")
    assert told == list(packed.stages_ns)
    assert "compare answers" in told


def test_a_killed_pack_leaves_no_bundle_and_the_next_one_cleans_up(
    saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    import signal
    import subprocess
    import sys

    code = (
        "import sys, glowplug\n"
        "def tell(stage):\n"
        "    if stage == 'compare answers':\n"
        "        print('now', flush=True); sys.stdin.readline()\n"
        "glowplug.pack(sys.argv[1], sys.argv[2], progress=tell, prefer='any')\n"
    )
    command = [sys.executable, "-c", code, str(saved_model("scalar")), str(tmp_path / "m.glow")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "m.glow").exists()
    glowplug.pack(saved_model("scalar"), tmp_path / "m.glow", prefer="any")
    assert leftovers(tmp_path) == ["m.glow"]
