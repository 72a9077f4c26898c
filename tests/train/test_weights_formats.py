"""Every format into every kind of model: what was saved is what the second model of its architecture gets."""

from __future__ import annotations

import numpy as np
import pytest

from glowplug import train
from glowplug.core.errors import GlowplugError, WeightsError

from . import weight_models as models

pytestmark = pytest.mark.tensorflow


def save_safetensors(model, folder):
    train.save_weights(model, folder / "w.safetensors")
    return folder / "w.safetensors"


def save_weights_h5(model, folder):
    model.save_weights(folder / "w.weights.h5")
    return folder / "w.weights.h5"


def save_keras(model, folder):
    model.save(folder / "w.keras")
    return folder / "w.keras"


def save_legacy_h5(model, folder):
    import h5py
    from keras.src.legacy.saving import legacy_h5_format

    with h5py.File(folder / "w.h5", "w") as file:
        legacy_h5_format.save_weights_to_hdf5_group(file, model)
    return folder / "w.h5"


def save_legacy_model(model, folder):
    model.save(folder / "whole.h5")
    return folder / "whole.h5"


def save_checkpoint_of_model(model, folder):
    import tensorflow as tf

    return tf.train.Checkpoint(model).write(str(folder / "ckpt"))


def save_checkpoint(model, folder):
    import tensorflow as tf

    return tf.train.Checkpoint(net=model, step=tf.Variable(3)).save(str(folder / "ckpt"))


def save_checkpoint_folder(model, folder):
    save_checkpoint(model, folder)
    return folder


def save_saved_model(model, folder):
    model.export(folder / "exported", verbose=False)
    return folder / "exported"


FORMATS = [
    save_safetensors,
    save_weights_h5,
    save_keras,
    save_legacy_h5,
    save_legacy_model,
    save_checkpoint_of_model,
    save_checkpoint,
    save_checkpoint_folder,
    save_saved_model,
]
LISTS = {"nested", "subclassed"}  # layers in lists and dicts
CHECKPOINTS = {save_checkpoint, save_checkpoint_of_model, save_checkpoint_folder}


@pytest.mark.parametrize("save", FORMATS)
@pytest.mark.parametrize("build", models.ALL.values(), ids=models.ALL)
def test_the_second_model_gets_what_was_saved(build, save, tmp_path):
    if build.__name__ in LISTS and save in {save_legacy_model, *CHECKPOINTS}:
        pytest.skip("what is saved is not whole: see the next test")
    saved = models.randomize(build())
    path = save(saved, tmp_path)
    second = models.randomize(build(), seed=2)
    assert not models.same(models.values(second), models.values(saved))
    train.load_weights(second, path)
    assert models.same(models.values(second), models.values(saved))


def test_what_tensorflow_left_out_of_a_checkpoint_is_named(tmp_path):
    """Keras 3 does not show TensorFlow the layers in a list, so `tf.train.Checkpoint` does not save them."""
    path = save_checkpoint_of_model(models.nested(), tmp_path)
    second = models.randomize(models.nested())
    before = models.values(second)
    with pytest.raises(WeightsError, match="8 missing"):
        train.load_weights(second, path)
    assert models.same(models.values(second), before)


@pytest.mark.parametrize("save", [save_keras, save_weights_h5, save_legacy_model, save_checkpoint_of_model])
def test_the_state_of_the_optimizer_and_of_metrics_is_left_alone(save, tmp_path):
    saved = compiled_and_fitted()
    path = save(saved, tmp_path)
    second = compiled_and_fitted()
    before = [variable.numpy() for variable in second.optimizer.variables]
    train.load_weights(second, path)
    assert models.same(models.values(second), models.values(saved))
    assert models.same(before, [variable.numpy() for variable in second.optimizer.variables])
    plain = models.functional()
    train.load_weights(plain, path)
    assert models.same(models.values(plain), models.values(saved))


def compiled_and_fitted():
    model = models.functional()
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 8, 8, 3)), np.ones((4, 16)), verbose=0)
    return model


def test_tf1_names(tmp_path):
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        kernel = tf.compat.v1.get_variable("dense/kernel", (4, 2))
        tf.compat.v1.get_variable("dense/bias", (2,))
        tf.compat.v1.get_variable("dense/kernel/Adam", (4, 2))
        tf.compat.v1.get_variable("global_step", (), tf.int64, tf.compat.v1.zeros_initializer())
        session.run(tf.compat.v1.global_variables_initializer())
        expected = session.run(kernel)
        path = tf.compat.v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
    model = dense("dense")
    train.load_weights(model, path)
    assert np.array_equal(model.layers[0].kernel.numpy(), expected)


def dense(name, units=2, dtype="float32"):
    import keras

    model = keras.Sequential([keras.layers.Dense(units, name=name, dtype=dtype)])
    model.build((None, 4))
    for variable in model.weights:  # as `dense/kernel`, without the name of the model in front
        variable._path = variable.path.partition("/")[2] if variable.path.count("/") > 1 else variable.path
    return model


@pytest.mark.parametrize("save", [save_safetensors, save_weights_h5, save_keras, save_saved_model])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_dtypes(save, dtype, tmp_path):
    saved = models.randomize(dense("one", dtype=dtype))
    path = save(saved, tmp_path)
    second = dense("one", dtype=dtype)
    train.load_weights(second, path)
    assert models.same(models.values(second), models.values(saved))
    with pytest.raises(GlowplugError, match=f"stored as {dtype}"):
        train.load_weights(dense("one", dtype="float32"), path)


def test_compressed_h5(tmp_path):
    import h5py

    saved = models.randomize(models.functional())
    path = save_weights_h5(saved, tmp_path)
    with h5py.File(path) as source, h5py.File(tmp_path / "small.weights.h5", "w") as target:

        def copy(name, item):
            if isinstance(item, h5py.Dataset) and item.shape:
                target.create_dataset(name, data=item[...], compression="gzip", dtype=item.dtype.newbyteorder(">"))

        source.visititems(copy)
    second = models.functional()
    train.load_weights(second, tmp_path / "small.weights.h5")
    assert models.same(models.values(second), models.values(saved))


def test_a_compressed_keras_file(tmp_path):
    import zipfile

    saved = models.randomize(models.functional())
    path = save_keras(saved, tmp_path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(tmp_path / "z.keras", "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    second = models.functional()
    train.load_weights(second, tmp_path / "z.keras")
    assert models.same(models.values(second), models.values(saved))


def test_normalization_uses_what_was_loaded(tmp_path):
    import keras

    def build():
        model = keras.Sequential([keras.Input((3,)), keras.layers.Normalization()])
        return model

    saved = build()
    saved.layers[0].adapt(np.arange(12, dtype="float32").reshape(4, 3))
    rows = np.ones((2, 3), "float32")
    for save in (save_safetensors, save_weights_h5, save_legacy_h5):
        second = build()
        train.load_weights(second, save(saved, tmp_path))
        assert np.array_equal(second(rows), saved(rows))


def test_shared_layers_and_equal_names(tmp_path):
    import keras

    def build():
        inputs = keras.Input((4,))
        shared = keras.layers.Dense(4)
        x = shared(shared(inputs))
        for _ in range(2):
            inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, name="same")])
            x = inner(x)
        return keras.Model(inputs, x)

    saved = models.randomize(build())
    for save in (save_safetensors, save_weights_h5, save_keras, save_saved_model, save_checkpoint):
        second = models.randomize(build(), seed=3)
        train.load_weights(second, save(saved, tmp_path))
        assert models.same(models.values(second), models.values(saved)), save


@pytest.mark.parametrize("save", [one for one in FORMATS if one is not save_legacy_model])
def test_metrics_of_the_models_own(save, tmp_path):
    import keras

    class Tracking(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = keras.layers.Dense(4)
            self.tracker = keras.metrics.Mean(name="tracker")

        def call(self, x):
            return self.body(x)

    def build():
        model = Tracking()
        model(np.zeros((1, 3), "float32"))
        model.tracker.update_state(2.0)
        return model

    saved = models.randomize(build())
    second = build()
    second.tracker.update_state(7.0)
    train.load_weights(second, save(saved, tmp_path))
    assert models.same(models.values(second), models.values(saved))
    assert float(second.tracker.result()) == 4.5
