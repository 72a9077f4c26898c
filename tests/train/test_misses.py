"""Every edit that changes what a step computes is a miss, and gives the right result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def schedule(rate: float) -> Callable[[], Any]:
    import keras

    def make() -> Any:
        return keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(rate, 10, 0.9))

    return make


def optimizer(name: str, **options: Any) -> Callable[[], Any]:
    import keras

    return lambda: getattr(keras.optimizers, name)(**options)


def layer_from(source: str) -> Any:
    """Return the layer class that a script with this source defines."""
    from keras import layers

    space = {"layers": layers, "__name__": "user_script"}
    exec(compile(source, "user_script.py", "exec"), space)
    return space["Mine"]


LAYER = """
STRENGTH = 2.0
def helper(x):
    return x + OFFSET
OFFSET = 1.0
class Mine(layers.Layer):
    def call(self, x, training=False):
        return helper(x) * STRENGTH
"""


def frozen(index: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.layers[index].trainable = False

    return change


def attribute(index: int, name: str, value: Any) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        setattr(model.layers[index], name, value)

    return change


def make(options: Callable[[], dict[str, Any]]) -> Any:
    from tests.train import models

    return models.small(**options())


EDITS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[], dict[str, Any]]]] = {
    "width": (lambda: {}, lambda: {"width": 7}),
    "activation": (lambda: {}, lambda: {"activation": "tanh"}),
    "loss": (lambda: {"loss": _cross_entropy(False)}, lambda: {"loss": _loss(1.0)}),
    "loss option": (
        lambda: {"loss": _cross_entropy(True)},
        lambda: {"loss": _cross_entropy(False)},
    ),
    "metric": (lambda: {}, lambda: {"metrics": ("accuracy", "sparse_top_k_categorical_accuracy")}),
    "schedule": (lambda: {"optimizer": schedule(0.1)}, lambda: {"optimizer": schedule(0.2)}),
    "optimizer": (lambda: {}, lambda: {"optimizer": optimizer("SGD", momentum=0.9)}),
    "optimizer option": (
        lambda: {"optimizer": optimizer("Adam", beta_1=0.9)},
        lambda: {"optimizer": optimizer("Adam", beta_1=0.8)},
    ),
    "clipping": (
        lambda: {"optimizer": optimizer("Adam")},
        lambda: {"optimizer": optimizer("Adam", global_clipnorm=0.01)},
    ),
    "trainable": (lambda: {}, lambda: {"change": frozen(0)}),
    "attribute after construction": (lambda: {}, lambda: {"change": attribute(2, "rate", 0.5)}),
    "attribute of a custom layer": (
        lambda: {"custom": _scaled(2.0)},
        lambda: {"custom": _scaled(3.0)},
    ),
    "source of a custom layer": (
        lambda: {"custom": layer_from(LAYER)},
        lambda: {"custom": layer_from(LAYER.replace("* STRENGTH", "/ STRENGTH"))},
    ),
    "global of a custom layer": (
        lambda: {"custom": layer_from(LAYER)},
        lambda: {"custom": layer_from(LAYER.replace("STRENGTH = 2.0", "STRENGTH = 3.0"))},
    ),
    "global of a function it calls": (
        lambda: {"custom": layer_from(LAYER)},
        lambda: {"custom": layer_from(LAYER.replace("OFFSET = 1.0", "OFFSET = 4.0"))},
    ),
    "regularizer": (lambda: {}, lambda: {"change": _regularized}),
    "custom loss": (lambda: {"loss": _loss(1.0)}, lambda: {"loss": _loss(2.0)}),
    "jit": (lambda: {}, lambda: {"jit_compile": True}),
}


def _cross_entropy(ignore: bool) -> Any:
    import keras

    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0 if ignore else None)


def _scaled(factor: float) -> Callable[[], Any]:
    from tests.train import models

    return lambda: models.Scaled(factor)


def _regularized(model: Any) -> None:
    import keras

    model.layers[0].kernel.regularizer = keras.regularizers.L2(0.1)


def _loss(strength: float) -> Callable[[Any, Any], Any]:
    import keras

    def weighted(y_true: Any, y_pred: Any) -> Any:
        return strength * keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)

    return weighted


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_a_miss_and_gives_the_right_result(name, tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    before, after = EDITS[name]
    expected = models.trained(make(before)), models.trained(make(after))
    with train.enabled(tmp_path / "cache"):
        first = models.trained(make(before))
        again = models.trained(make(before))
        traced = train.counts()["traced"]
        assert train.counts()["restored"] == traced
        edited = models.trained(make(after))
        assert train.counts()["traced"] > traced, "the edit was not noticed"
        again_edited = models.trained(make(after))
    assert (first, edited) == expected
    assert (again, again_edited) == expected


def test_the_batch_size_of_train_on_batch(tmp_path):
    from glowplug import train
    from tests.train import models

    x, y = models.data()

    def step(count):
        return float(models.small().train_on_batch(x[:count], y[:count])[0])

    expected = step(8), step(6)
    with train.enabled(tmp_path / "cache"):
        assert (step(8), step(8), step(6)) == (expected[0], *expected)
        assert train.counts() == {"traced": 2, "stored": 2, "restored": 1}


def test_the_batch_size_of_a_dataset_without_remainder(tmp_path):
    from glowplug import train
    from tests.train import models

    def losses(batch):
        return models.small().fit(models.dataset(batch), verbose=0).history["loss"]

    expected = losses(4), losses(5)
    with train.enabled(tmp_path / "cache"):
        assert (losses(4), losses(4), losses(5)) == (expected[0], *expected)
        assert train.counts()["traced"] == 2


def test_the_dtype_policy(tmp_path):
    import keras

    from glowplug import train
    from tests.train import models

    def run(policy):
        keras.config.set_dtype_policy(policy)
        return models.trained(models.small())

    expected = run("float32"), run("mixed_bfloat16")
    with train.enabled(tmp_path / "cache"):
        first = run("float32")
        traced = train.counts()["traced"]
        second = run("mixed_bfloat16")
        assert train.counts()["traced"] == 2 * traced
    assert (first, second) == expected


def test_a_layer_changed_by_hand_in_a_stock_class(tmp_path, monkeypatch):
    """Code that replaces a method of Keras is custom code."""
    from keras import layers

    from glowplug import train
    from tests.train import models

    def call(self, x, training=None):
        return stock(self, x, training=training) + 1.0

    stock = layers.Dense.call
    plain = models.trained(models.small())
    with train.enabled(tmp_path / "cache"):
        assert models.trained(models.small()) == plain
        traced = train.counts()["traced"]
        monkeypatch.setattr(layers.Dense, "call", call)
        replaced = models.trained(models.small())
        assert train.counts()["traced"] == 2 * traced
    assert replaced == models.trained(models.small()) != plain


def test_a_function_replaced_inside_keras(tmp_path, monkeypatch):
    from keras.src.backend.tensorflow import nn

    from glowplug import train
    from tests.train import models

    def relu(x):
        return stock(x) * 2.0

    stock = nn.relu
    plain = models.trained(models.small())
    with train.enabled(tmp_path / "cache"):
        assert models.trained(models.small()) == plain
        monkeypatch.setattr(nn, "relu", relu)
        replaced = models.trained(models.small())
    assert replaced == models.trained(models.small()) != plain


@pytest.mark.parametrize("name", ["TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS", "KERAS_SOMETHING"])
def test_an_environment_variable(name, tmp_path, monkeypatch):
    from glowplug import train
    from tests.train import models

    monkeypatch.delenv(name, raising=False)
    with train.enabled(tmp_path / "cache"):
        models.trained(models.small())
        traced = train.counts()["traced"]
        monkeypatch.setenv(name, "1")
        models.trained(models.small())
        assert train.counts()["traced"] == 2 * traced
        monkeypatch.setenv(name, "2")
        models.trained(models.small())
        assert train.counts()["traced"] == 3 * traced
        assert "restored" not in train.counts()


def test_a_miss_says_what_changed(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    with train.enabled(tmp_path / "cache"):
        models.trained(models.small())
    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        models.trained(models.small(change=attribute(2, "rate", 0.5)))
    said = [record.message for record in caplog.records if "the train step" in record.message]
    assert len(said) == 1
    assert ".rate 0.25 -> 0.5" in said[0]


def test_a_seed_matters_only_where_random_operations_take_theirs_from_it(tmp_path):
    import tensorflow as tf

    from glowplug import train
    from tests.train import models

    class Noise(models.layers.Layer):
        def call(self, x):
            return x + tf.random.normal([5])

    def run(custom, seed):
        model = models.small(custom=custom)
        tf.random.set_seed(seed)
        return models.trained(model)

    expected = [run(Noise, seed) for seed in (1, 2)]
    assert expected[0] != expected[1]
    with train.enabled(tmp_path / "cache"):
        assert [run(Noise, seed) for seed in (1, 2)] == expected
        traced = train.counts()["traced"]
        assert "restored" not in train.counts()
        assert [run(Noise, seed) for seed in (1, 2)] == expected
        assert train.counts()["traced"] == traced
        run(None, 1)
        traced = train.counts()["traced"]
        run(None, 2)
        assert train.counts()["traced"] == traced
