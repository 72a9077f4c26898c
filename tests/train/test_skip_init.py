"""A model built without its initialisers: no random numbers, no memory, and no way to use it half loaded."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from glowplug import train
from glowplug.core.errors import UsageError, WeightsError

pytestmark = pytest.mark.tensorflow

X = np.ones((2, 4), "float32")


def build():
    layers = [keras.layers.Dense(3, name="first"), keras.layers.BatchNormalization(name="norm")]
    return keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dropout(0.5), keras.layers.Dense(2, name="last")])


class Forbidden(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None):
        raise AssertionError("an initialiser ran")


@pytest.mark.parametrize("suffix", [".weights.h5", ".keras"])
def test_weights_from_a_file(tmp_path, suffix):
    source = build()
    path = tmp_path / f"model{suffix}"
    (source.save_weights if suffix == ".weights.h5" else source.save)(path)
    with train.skip_init() as skipped:
        model = build()
        assert len(skipped.unset()) == 8
        model.load_weights(path)
        assert not skipped.unset()
    np.testing.assert_array_equal(model(X), source(X))
    model.compile("adam", "mse")
    before = np.array(model.layers[-1].bias)
    model.fit(X, np.ones((2, 2)), verbose=0)
    assert not np.array_equal(model.layers[-1].bias, before)


def test_no_initialiser_runs():
    with train.skip_init():
        layer = keras.layers.Dense(3, kernel_initializer=Forbidden(), bias_initializer=Forbidden())
        model = keras.Sequential([keras.Input((4,)), layer])
        model.set_weights([np.ones((4, 3)), np.ones(3)])
    np.testing.assert_array_equal(model(X), np.full((2, 3), 5.0))


def test_no_memory_is_touched(run_script):
    source = """
import json, keras
from pathlib import Path
from glowplug import train
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
before = resident()
try:
    with train.skip_init():
        keras.Sequential([keras.Input((10_000,)), keras.layers.Dense(20_000)])
        grown = resident() - before
except Exception as error:
    print(json.dumps([grown, type(error).__name__]))
"""
    grown, error = run_script(source)
    assert error == "WeightsError"
    assert grown < 20e6  # the kernel alone has 800 MB


def assign_all_but_the_last_layer():
    with train.skip_init():
        for layer in build().layers[:-1]:
            layer.set_weights([np.ones(weight.shape) for weight in layer.weights])


def test_leaving_the_block_names_what_is_unset():
    with pytest.raises(WeightsError, match=r"^2 variables .*last/kernel, .*last/bias; load"):
        assign_all_but_the_last_layer()


USES = {
    "call": lambda model: model(X),
    "predict": lambda model: model.predict(X, verbose=0),
    "fit": lambda model: model.fit(X, np.ones((2, 2)), verbose=0),
}


def use_too_early(use):
    with train.skip_init():
        model = build()
        model.compile("sgd", "mse")
        use(model)
        pytest.fail("a model without weights was used")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_using_it_too_early_names_what_is_unset(use):
    with pytest.raises(WeightsError, match="first/kernel"):
        use_too_early(use)


def fail_inside():
    with train.skip_init():
        build()
        raise ZeroDivisionError


def test_an_error_in_the_block_comes_through_and_all_is_as_before():
    plain = keras.layers.Layer.add_weight, keras.layers.Layer.__call__
    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert (keras.layers.Layer.add_weight, keras.layers.Layer.__call__) == plain
    assert np.any(build().layers[0].kernel)


def test_blocks_do_not_nest():
    with train.skip_init(), pytest.raises(UsageError, match="nested"), train.skip_init():
        pass
    with train.skip_init():
        pass


class Nested(keras.Model):
    """Its layers are built while Keras infers shapes."""

    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(3, kernel_initializer=Forbidden())

    def call(self, inputs):
        return self.inner(inputs)


def test_a_subclassed_model():
    with train.skip_init():
        inputs = keras.Input((4,))
        model = keras.Model(inputs, Nested()(inputs))
        model.set_weights([np.ones((4, 3)), np.zeros(3)])
    np.testing.assert_array_equal(model(X), np.full((2, 3), 4.0))


def test_a_step_of_training_does_not_change_what_was_assigned():
    value = tf.ones((4, 3))
    with train.skip_init():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, use_bias=False)])
        model.layers[0].kernel.assign(value)
    model.compile("sgd", "mse")
    model.train_on_batch(X, np.zeros((2, 3)))
    np.testing.assert_array_equal(value, np.ones((4, 3)))
    assert not np.array_equal(model.layers[0].kernel, value)
