"""The initialisers draw what Keras' draw: the same distribution, from a seed alone, whatever the threads."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from glowplug.train import initializers
from glowplug.train.fresh import draws

pytestmark = pytest.mark.tensorflow

NAMES = [name for name in initializers.__all__ if name != "Orthogonal"]
SHAPE = (400, 500)


def ks_statistic(first: np.ndarray, second: np.ndarray) -> float:
    """The largest distance between two empirical distributions (Kolmogorov and Smirnov)."""
    first, second = np.sort(first.ravel()), np.sort(second.ravel())
    both = np.concatenate([first, second])
    return float(
        np.abs(
            np.searchsorted(first, both, "right") / first.size - np.searchsorted(second, both, "right") / second.size
        ).max()
    )


@pytest.mark.parametrize("name", NAMES)
def test_same_distribution_as_keras(name):
    ours = np.asarray(getattr(initializers, name)(seed=1)(SHAPE))
    theirs = np.asarray(getattr(keras.initializers, name)(seed=1)(SHAPE))
    # The critical value of the two-sample test at a significance of one in a million.
    assert ks_statistic(ours, theirs) < 2.69 * math.sqrt(2 / ours.size)
    deviation = theirs.std()
    assert abs(ours.mean() - theirs.mean()) < 5 * deviation * math.sqrt(2 / ours.size)
    assert ours.std() == pytest.approx(deviation, rel=0.01)
    fourth = [np.mean(((x - x.mean()) / x.std()) ** 4) for x in (ours, theirs)]
    assert fourth[0] == pytest.approx(fourth[1], rel=0.05)
    assert abs(np.corrcoef(ours[:-1].ravel(), ours[1:].ravel())[0, 1]) < 5 / math.sqrt(ours.size)


def test_the_distance_sees_another_distribution():
    normal = np.asarray(initializers.RandomNormal(stddev=1.0, seed=1)(SHAPE))
    truncated = np.asarray(initializers.TruncatedNormal(stddev=1.0, seed=1)(SHAPE))
    assert ks_statistic(normal, truncated) > 2.69 * math.sqrt(2 / normal.size)


@pytest.mark.parametrize("distribution", ["uniform", "truncated_normal", "untruncated_normal"])
@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg"])
def test_variance_scaling_scales_as_keras(mode, distribution):
    arguments = {"scale": 0.7, "mode": mode, "distribution": distribution, "seed": 3}
    ours = np.asarray(initializers.VarianceScaling(**arguments)((3, 3, 40, 200)))
    theirs = np.asarray(keras.initializers.VarianceScaling(**arguments)((3, 3, 40, 200)))
    assert ours.std() == pytest.approx(theirs.std(), rel=0.02)
    for level in (0.5, 0.99, 0.999):
        assert np.quantile(np.abs(ours), level) == pytest.approx(np.quantile(np.abs(theirs), level), rel=0.05)


@pytest.mark.parametrize("fill", [draws.uniform(-1, 1), draws.normal(0, 1), draws.truncated_normal(0, 1)])
def test_the_number_of_threads_changes_nothing(fill):
    shape = (3 * draws.CHUNK + 17,)
    one, *others = (draws.draw(shape, "float32", [5], fill, workers=workers) for workers in (1, 2, 3, 7))
    for other in others:
        np.testing.assert_array_equal(one, other)
    chunks = one[: 3 * draws.CHUNK].reshape(3, -1)
    assert not np.array_equal(chunks[0], chunks[1])
    assert not np.array_equal(chunks[1], chunks[2])


def test_limits_hold():
    values = draws.draw((2_000_000,), "float32", [1], draws.truncated_normal(0.0, 1.0))
    assert np.abs(values).max() < 2
    values = draws.draw((2_000_000,), "float32", [1], draws.uniform(-0.05, 0.05))
    assert values.min() >= np.float32(-0.05)
    assert values.max() <= np.float32(0.05)
    assert np.isfinite(draws.draw((2_000_001,), "float32", [1], draws.normal(0.0, 1.0))).all()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (0, 4), (5, 1, 2)])
def test_any_shape(shape):
    assert np.asarray(initializers.TruncatedNormal(seed=1)(shape)).shape == shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_any_float(dtype):
    value = initializers.HeNormal(seed=1)((20, 30), dtype=dtype)
    assert value.dtype.name == dtype
    assert np.asarray(value).astype("float32").std() > 0


def test_seeds_mean_what_they_mean_in_keras():
    seeded = initializers.GlorotUniform(seed=7)
    np.testing.assert_array_equal(seeded((4, 5)), seeded((4, 5)))
    np.testing.assert_array_equal(seeded((4, 5)), initializers.GlorotUniform(seed=7)((4, 5)))
    assert not np.array_equal(seeded((4, 5)), initializers.GlorotUniform(seed=8)((4, 5)))
    assert not np.array_equal(initializers.GlorotUniform()((4, 5)), initializers.GlorotUniform()((4, 5)))
    generator = keras.random.SeedGenerator(1)
    moving = initializers.GlorotUniform(seed=generator)
    assert not np.array_equal(moving((4, 5)), moving((4, 5)))
    with pytest.raises(ValueError, match="seed"):
        initializers.GlorotUniform(seed="seven")


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (3, 3, 4, 8)])
def test_orthogonal(shape):
    value = np.asarray(initializers.Orthogonal(gain=2.0, seed=1)(shape)).reshape(-1, shape[-1])
    product = value.T @ value if value.shape[0] >= value.shape[1] else value @ value.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_orthogonal_needs_two_dimensions():
    with pytest.raises(ValueError, match="two dimensions"):
        initializers.Orthogonal()((3,))


@pytest.mark.parametrize("name", initializers.__all__)
def test_serialises(name):
    initializer = getattr(initializers, name)(seed=4)
    assert isinstance(initializer, getattr(keras.initializers, name))
    again = keras.initializers.deserialize(keras.initializers.serialize(initializer))
    assert type(again) is type(initializer)
    np.testing.assert_array_equal(again((6, 7)), initializer((6, 7)))


def test_in_a_model_and_its_file(tmp_path):
    layer = keras.layers.Dense(4, kernel_initializer=initializers.HeNormal(seed=2))
    model = keras.Sequential([keras.Input((3,)), layer])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 4)), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.layers[0].kernel_initializer) is initializers.HeNormal
    np.testing.assert_array_equal(loaded.layers[0].kernel, layer.kernel)


def test_training_does_not_write_into_an_array_that_is_shared():
    first = initializers.RandomNormal(seed=1)((8, 8))
    before = np.array(first)
    variable = keras.Variable(lambda shape, dtype: first, shape=(8, 8))
    variable.value.assign_add(np.ones((8, 8), "float32"))
    np.testing.assert_array_equal(first, before)


def test_in_a_graph_keras_own_runs():
    import tensorflow as tf

    initializer = initializers.RandomUniform(seed=3)
    in_graph = tf.function(lambda: initializer((4, 5)))()
    np.testing.assert_array_equal(in_graph, keras.initializers.RandomUniform(seed=3)((4, 5)))
