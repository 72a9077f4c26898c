"""SavedModels become `litert` bundles that answer as their source does, or are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

import tensorflow as tf

import glowplug
from glowplug.bundle import layout
from glowplug.bundle.verify import verify
from glowplug.convert.calls.recording import record
from glowplug.convert.calls.typical import typical_request
from glowplug.convert.job import Job, Order
from glowplug.convert.litert import bundles
from glowplug.convert.source.saved_model import SavedModel
from glowplug.core.disk.files import new_directory
from glowplug.core.errors import InputError, OutputMismatchError, UnsupportedModelError, UsageError
from glowplug.core.manifest import Manifest

pytestmark = pytest.mark.tensorflow


def packed(source: Path, target: Path, **wishes: object) -> Manifest:
    """Pack in this process, which has imported TensorFlow already."""
    with new_directory(target) as unfinished:
        Job(Order(unfinished, source, engine="litert", **wishes), lambda stage: None).run()
    return verify(target).manifest


class Several(tf.Module):
    """Signatures that share weights: two that are alike, one with other inputs, of types that few engines have."""

    def __init__(self) -> None:
        self.kernel = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def score(self, x):
        return {"scores": x @ self.kernel, "sums": tf.reduce_sum(x, axis=1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="ids"), tf.TensorSpec([], tf.int64, name="add")])
    def count(self, ids, add):
        return {"counted": ids + add}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("several") / "model"
    module = Several()
    tf.saved_model.save(module, str(path), {"serving_default": module.score, "same": module.score, "n": module.count})
    return path


def test_every_signature_answers_under_its_own_names(several: Path, tmp_path: Path) -> None:
    manifest = packed(several, tmp_path / "m.glow")
    assert manifest.engine == "litert"
    assert sorted(manifest.equivalence["calls"]) == ["n", "same", "serving_default"]
    one, other = manifest.signatures["same"], manifest.signatures["serving_default"]
    assert [port.tensor for port in one.inputs.values()] == [port.tensor for port in other.inputs.values()]
    stock = tf.saved_model.load(str(several)).signatures
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    with glowplug.load(tmp_path / "m.glow") as model:
        assert str(model.signatures["n"]) == "(add: int64[], ids: int64[?]) -> (counted: int64[?])"
        answer, expected = model(x), stock["serving_default"](x=tf.constant(x))
        for name in ("scores", "sums"):
            np.testing.assert_allclose(answer[name], expected[name].numpy(), rtol=1e-5, atol=1e-6)
        counted = model.signature("n")({"ids": np.arange(3), "add": np.array(7)})
        np.testing.assert_array_equal(counted, np.arange(3) + 7)


class Nearly(tf.Module):
    """Two signatures that answer everyday numbers alike, and a third that is the first under another name."""

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def bounded(self, x):
        return {"y": tf.minimum(x * 2.0, 5e4)}

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def unbounded(self, x):
        return {"y": tf.minimum(x * 2.0, 9e4)}


def test_signatures_that_only_seem_alike_stay_apart(tmp_path: Path) -> None:
    module = Nearly()
    names = {"serving_default": module.bounded, "same": module.bounded, "other": module.unbounded}
    tf.saved_model.save(module, str(tmp_path / "model"), names)
    signatures = packed(tmp_path / "model", tmp_path / "m.glow").signatures
    tensors = {name: signatures[name].outputs["y"].tensor for name in names}
    assert tensors["same"] == tensors["serving_default"] != tensors["other"]
    x = np.full((1, 4), 4e4, np.float32)
    with glowplug.load(tmp_path / "m.glow") as model:
        for name, function in names.items():
            np.testing.assert_array_equal(model.signature(name)(x), function(x)["y"].numpy())


def test_numbers_that_litert_answers_otherwise_are_refused(tmp_path: Path) -> None:
    module = tf.Module()
    spec = tf.TensorSpec([None, 4, 4, 1], tf.float32, name="x")
    module.f = tf.function(lambda x: {"y": tf.nn.max_pool2d(x, 2, 2, "SAME")}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.f})
    largest = packed(tmp_path / "model", tmp_path / "m.glow").litert.largest
    assert largest is not None
    assert largest >= 1e12
    x = np.ones((2, 4, 4, 1), np.float32)
    with glowplug.load(tmp_path / "m.glow") as model:
        assert model(x).shape == (2, 2, 2, 1)
        for strange in (np.nan, np.inf, -np.inf):
            x[1, 2, 2, 0] = strange
            with pytest.raises(InputError, match=r"'x' has numbers beyond .* pack the model with --engine native"):
                model(x)
        assert model(np.zeros((0, 4, 4, 1), np.float32)).shape == (0, 2, 2, 1)


def test_large_models_get_packed_weights(
    saved_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "SMALL_BYTES", 0)
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(tmp_path / "cache"))
    manifest = packed(saved_model("dense"), tmp_path / "m.glow")
    assert manifest.litert.interface == "compiled"
    assert manifest.litert.packed.size == (tmp_path / "m.glow" / layout.PACKED).stat().st_size
    assert layout.PACKED not in manifest.files
    with glowplug.load(tmp_path / "m.glow") as model:
        assert model(np.ones((5, 16), np.float32)).shape == (5, 3)
        assert model.info.notes == ()
    assert not (tmp_path / "cache").exists()


def test_an_operation_that_litert_lacks_is_named(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"lacks an operation of this model: \w+") as caught:
        packed(saved_model("lstm"), tmp_path / "m.glow")
    assert caught.value.exit_code == 3
    assert "TensorListReserve" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_quantising_costs_is_kept_and_bounded(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    manifest = packed(saved_model("dense"), tmp_path / "m.glow", quantize="dynamic")
    assert manifest.equivalence["quantize"] == "dynamic"
    assert manifest.equivalence["tolerance"] == 0.05
    assert 1e-5 < manifest.equivalence["dtypes"]["float32"]["max_rel"] < 0.05
    with pytest.raises(OutputMismatchError, match=r"relative difference \S+, allowed for float32 is 1e-07"):
        packed(saved_model("dense"), tmp_path / "n.glow", quantize="float16", tolerance=1e-7)


def test_int8_is_calibrated_with_requests(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    requests = np.random.default_rng(0).normal(size=(32, 16)).astype(np.float32)
    source = saved_model("dense")
    (name,) = glowplug_inputs(source)
    np.savez(tmp_path / "requests.npz", **{name: requests})
    manifest = packed(source, tmp_path / "m.glow", quantize="int8", calibration=tmp_path / "requests.npz")
    assert manifest.equivalence["quantize"] == "int8"
    assert str(manifest.signatures["serving_default"]).startswith(f"({name}: float32")


def glowplug_inputs(source: Path) -> list[str]:
    return list(tf.saved_model.load(str(source)).signatures["serving_default"].structured_input_signature[1])


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"quantize": "int8", "engine": "litert"}, "calibration"),
        ({"quantize": "dynamic", "engine": "litert", "calibration": "x.npz"}, "calibration"),
        ({"quantize": "int8", "engine": "litert", "calibration": "no.npz"}, "no such calibration file"),
        ({"quantize": "dynamic"}, "only the litert engine"),
        ({"quantize": "int4", "engine": "litert"}, "no such quantisation"),
        ({"tolerance": 0.1, "engine": "litert"}, "quantised model only"),
        ({"keep_variables": True, "engine": "litert"}, "no place for variables"),
        ({"tolerance": -1.0, "quantize": "dynamic", "engine": "litert"}, "above zero"),
    ],
)
def test_wishes_that_contradict_each_other(wishes: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        glowplug.pack(tmp_path, tmp_path / "m.glow", **wishes)


def test_the_state_of_an_lstm_ends_with_the_call(tmp_path: Path) -> None:
    """The converter keeps it in variables of the file, which live on."""
    keras = pytest.importorskip("tf_keras")
    model = keras.Sequential([keras.layers.InputLayer((5, 3), batch_size=1), keras.layers.LSTM(4)])
    spec = tf.TensorSpec([1, 5, 3], tf.float32, name="x")
    function = tf.function(lambda x: {"y": model(x)}, input_signature=[spec]).get_concrete_function()
    tf.saved_model.save(model, str(tmp_path / "model"), signatures={"serving_default": function})
    assert packed(tmp_path / "model", tmp_path / "m.glow").litert.interface == "interpreter"
    x = np.ones((1, 5, 3), np.float32)
    with glowplug.load(tmp_path / "m.glow") as loaded:
        first = loaded(x)
        np.testing.assert_array_equal(loaded(x), first)
        np.testing.assert_allclose(first, model(x).numpy(), rtol=1e-5, atol=1e-6)


class Wide(tf.Module):
    """Images of any size, of which the first made-up one is too small: what is left of it is the average of nothing.

    With some instructions TensorFlow's convolution answers whatever is in its memory there.
    """

    def __init__(self) -> None:
        self.filters = tf.Variable(tf.random.stateless_normal([17, 17, 3, 2], [1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, name="x")])
    def score(self, x):
        return {"scores": tf.reduce_mean(tf.nn.conv2d(x, self.filters, 1, "VALID"), axis=(1, 2))}


def test_images_that_are_too_small_to_say_anything_prove_nothing(tmp_path: Path) -> None:
    module = Wide()
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.score})
    manifest = packed(tmp_path / "model", tmp_path / "m.glow")
    assert np.isfinite(manifest.equivalence["outputs"]["serving_default:scores"]["max_abs"])
    x = np.random.default_rng(0).normal(size=(2, 40, 24, 3)).astype("f")
    with glowplug.load(tmp_path / "m.glow") as model:
        np.testing.assert_allclose(model(x), module.score(x)["scores"], rtol=1e-4, atol=1e-4)


def test_the_call_to_measure_with_says_something(tmp_path: Path) -> None:
    module = Wide()
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.score})
    with SavedModel(tmp_path / "model") as source, SavedModel(tmp_path / "model") as twin:
        request = typical_request(record(source, (), twin))
    assert request is not None
    assert request.inputs["x"].shape == (1, 32, 32, 3)
