"""Keras files and live models, of Keras 3 and Keras 2; what cannot be loaded is explained by its cause."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle
from glowplug.convert.job import Job, Order
from glowplug.convert.source import keras_files
from glowplug.convert.source.sources import check_path
from glowplug.core.errors import ModelError, NotAModelError, UnsupportedModelError

pytestmark = pytest.mark.tensorflow


def pack_here(source: Path, folder: Path, **options: Any) -> glowplug.Model:
    folder.mkdir()
    Job(Order(folder, source, **options), lambda stage: None).run()
    assert open_bundle(folder).manifest.engine == "native"
    return glowplug.load(folder)


def legacy_model() -> Any:
    tf_keras = pytest.importorskip("tf_keras")
    layers = tf_keras.layers
    return tf_keras.Sequential([layers.Dense(5, input_shape=(3,)), layers.BatchNormalization(), layers.Dense(2)])


X = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_files_of_keras_2(suffix: str, tmp_path: Path) -> None:
    model = legacy_model()
    model.save(tmp_path / f"m{suffix}")
    with pack_here(tmp_path / f"m{suffix}", tmp_path / "m.glow") as loaded:
        np.testing.assert_allclose(loaded(X), model(X), rtol=1e-5, atol=1e-6)


def test_a_live_model_of_keras_2(tmp_path: Path) -> None:
    model = legacy_model()
    assert glowplug.pack(model, tmp_path / "m.glow", prefer="any").manifest.provenance["source"] == "Keras model"
    with glowplug.load(tmp_path / "m.glow") as loaded:
        np.testing.assert_allclose(loaded(X), model(X), rtol=1e-5, atol=1e-6)


def test_a_layer_of_keras_2_that_cannot_be_traced_for_training(tmp_path: Path) -> None:
    """The saver of Keras 2 traces each layer for training too; a bundle answers calls alone."""
    tf_keras = pytest.importorskip("tf_keras")

    class Picky(tf_keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any, training: bool | None = None) -> Any:
            if training:
                raise ValueError("not for training")
            return 2 * x

    i = tf_keras.Input((3,))
    model = tf_keras.Model(i, tf_keras.layers.Dense(2)(Picky()(i)))
    keras_files.export_keras(model, tmp_path / "source")
    with pack_here(tmp_path / "source", tmp_path / "m.glow") as loaded:
        np.testing.assert_allclose(loaded(X), model(X), rtol=1e-5, atol=1e-6)


def test_without_tf_keras_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    legacy_model().save(tmp_path / "m.keras")
    monkeypatch.setattr(keras_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedModelError, match=r"of Keras 2.*pip install tf_keras"):
        keras_files.load_keras(tmp_path / "m.keras")


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        keras_files.load_keras(path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_a_custom_class_is_named(suffix: str, tmp_path: Path) -> None:
    import keras

    class Doubling(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x * 2

    keras.Sequential([keras.Input((3,)), Doubling()]).save(tmp_path / f"m{suffix}")
    text = refusal(tmp_path / f"m{suffix}")
    assert "Doubling" in text
    assert "custom_objects" in text


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_a_lambda_layer(suffix: str, tmp_path: Path) -> None:
    import keras

    keras.Sequential([keras.Input((3,)), keras.layers.Lambda(lambda x: x * 2)]).save(tmp_path / f"m{suffix}")
    assert "--unsafe-lambda" in refusal(tmp_path / f"m{suffix}")
    with pack_here(tmp_path / f"m{suffix}", tmp_path / "m.glow", unsafe_lambda=True) as loaded:
        np.testing.assert_array_equal(loaded(X), X * 2)


def test_weights_only(tmp_path: Path) -> None:
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.save_weights(tmp_path / "m.weights.h5")
    assert "weights and no model" in refusal(tmp_path / "m.weights.h5")
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.write(tmp_path / "m.weights.h5", "model.weights.h5")
    assert "weights and no model" in refusal(tmp_path / "m.keras")


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_a_damaged_file(suffix: str, tmp_path: Path) -> None:
    import keras

    path = tmp_path / f"m{suffix}"
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(path)
    path.write_bytes(path.read_bytes()[:-300])
    assert "damaged" in refusal(path)


def test_a_checkpoint_and_a_folder_of_versions(tmp_path: Path) -> None:
    import tensorflow as tf

    tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "c" / "model"))
    for path in (tmp_path / "c", tmp_path / "c" / "model-1", tmp_path / "c" / "model-1.index"):
        with pytest.raises(NotAModelError, match="a checkpoint"):
            check_path(path)
    for version in ("3", "10"):
        (tmp_path / "v" / version).mkdir(parents=True)
        (tmp_path / "v" / version / "saved_model.pb").write_bytes(b"\x08\x01")
    with pytest.raises(NotAModelError, match=f"folder of versions.*give one of them: {tmp_path}/v/10"):
        check_path(tmp_path / "v")
    with pytest.raises(NotAModelError, match=f"a folder.*give {tmp_path}/v/3"):
        check_path(tmp_path / "v" / "3" / "saved_model.pb")


def test_a_device_a_fifo_and_a_bundle(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path(os.devnull)):
        with pytest.raises(NotAModelError, match="neither a file nor a folder"):
            check_path(path)
    (tmp_path / "m.glow").mkdir()
    (tmp_path / "m.glow" / "bundle.json").write_text("{}")
    with pytest.raises(NotAModelError, match="packed already"):
        check_path(tmp_path / "m.glow")
