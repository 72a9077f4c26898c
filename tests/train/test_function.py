"""`train.function` in loops of one's own."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def loop(make_function: Any, *, rate: float = 0.1, build: bool = True, passed: bool = False) -> list[float]:
    """Train with a step of our own, decorated by `make_function`, and return the losses."""
    import keras
    import tensorflow as tf

    from tests.train import models

    model = models.small()
    optimizer = keras.optimizers.SGD(rate, momentum=0.9)
    if build:
        optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @make_function
    def step(x, y, model=None if passed else model):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return {"loss": loss, "parts": (loss * 2, [None])}

    x, y = models.data()
    losses = []
    for _ in range(3):
        result = step(x, y, model) if passed else step(x, y)
        assert result["parts"][1] == [None]
        losses.append(float(result["loss"]))
    return losses


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize("build", [False, True])
def test_a_custom_loop(build, passed, tmp_path):
    import tensorflow as tf

    from glowplug import train

    expected = loop(tf.function, build=build, passed=passed)
    assert loop(train.function, build=build, passed=passed) == expected
    with train.enabled(tmp_path / "cache"):
        first = loop(train.function, build=build, passed=passed)
        assert train.counts() == {"traced": 1, "stored": 1}
        assert train.counts()["restored"] == 0  # and no KeyError
        second = loop(train.function, build=build, passed=passed)
        assert train.counts()["restored"] == 1
    assert first == second == expected


def test_another_learning_rate_is_a_variable_and_not_a_miss(tmp_path):
    import tensorflow as tf

    from glowplug import train

    expected = loop(tf.function, rate=0.01)
    with train.enabled(tmp_path / "cache"):
        loop(train.function, rate=0.1)
        assert loop(train.function, rate=0.01) == expected
        assert train.counts()["restored"] == 1


def test_options_and_attributes_are_those_of_tf_function(tmp_path):
    import tensorflow as tf

    from glowplug import train

    @train.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def double(x):
        """Twice."""
        return x * 2

    with train.enabled(tmp_path / "cache"):
        assert double(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
        assert double(tf.constant([1.0])).numpy().tolist() == [2.0]
        assert train.counts()["traced"] == 1
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    assert double.experimental_get_tracing_count() == 1


def test_a_method(tmp_path):
    import tensorflow as tf

    from glowplug import train

    class Counter(tf.Module):
        def __init__(self, by):
            super().__init__()
            self.by = by
            self.total = tf.Variable(0.0)

        @train.function
        def add(self, x):
            return self.total.assign_add(x * self.by)

    with train.enabled(tmp_path / "cache"):
        first, second, third = Counter(1.0), Counter(1.0), Counter(5.0)
        assert [float(each.add(2.0)) for each in (first, second, third)] == [2.0, 2.0, 10.0]
        assert [float(each.add(2.0)) for each in (first, second, third)] == [4.0, 4.0, 20.0]
        assert train.counts() == {"traced": 2, "stored": 2, "restored": 1}


def test_inside_a_tape_and_inside_another_function_it_is_stock(tmp_path):
    import tensorflow as tf

    from glowplug import train

    @train.function
    def square(x):
        return x * x

    x = tf.Variable(3.0)
    with train.enabled(tmp_path / "cache"):
        assert float(square(x)) == 9.0
        with tf.GradientTape() as tape:
            y = square(x)
        assert float(tape.gradient(y, x)) == 6.0
        assert float(tf.function(lambda v: square(v) + 1)(x)) == 10.0
        assert train.counts()["traced"] == 1


def test_python_arguments_are_part_of_the_key(tmp_path):
    import tensorflow as tf

    from glowplug import train

    def make():
        @train.function
        def power(x, exponent, flag=True):
            return x**exponent if flag else x

        return power

    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            power = make()
            assert float(power(tf.constant(3.0), 2)) == 9.0
            assert float(power(tf.constant(3.0), 3)) == 27.0
            assert float(power(tf.constant(3.0), 3, flag=False)) == 3.0
        assert train.counts() == {"traced": 3, "stored": 3, "restored": 3}


def test_a_global_of_the_loop_is_part_of_the_key(tmp_path):
    import tensorflow as tf

    from glowplug import train

    def run(factor):
        space = {"train": train, "FACTOR": factor}
        exec("@train.function\ndef scale(x):\n    return x * FACTOR\n", space)
        return float(space["scale"](tf.constant(2.0)))

    with train.enabled(tmp_path / "cache"):
        assert [run(3.0), run(3.0), run(4.0)] == [6.0, 6.0, 8.0]
        assert train.counts() == {"traced": 2, "stored": 2, "restored": 1}


def test_what_creates_variables_inside_is_traced_and_says_so(tmp_path, caplog):
    import keras
    import tensorflow as tf

    from glowplug import train

    layer = keras.layers.Dense(2)

    @train.function
    def apply(x):
        return layer(x)

    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        assert apply(tf.ones([1, 3])).shape == (1, 2)
        assert train.counts() == {"refused": 1, "traced": 1}
    assert "is not built" in caplog.text


def test_a_dataset_inside_is_refused(tmp_path, caplog):
    import tensorflow as tf

    from glowplug import train

    numbers = tf.data.Dataset.range(3)

    @train.function
    def total():
        return numbers.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)

    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        assert int(total()) == 3
        assert train.counts() == {"refused": 1, "traced": 1}
