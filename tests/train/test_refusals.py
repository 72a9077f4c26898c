"""What cannot be proven safe is traced as usual, gives stock's results, and says why in one line."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

GLOBAL_GENERATOR: Any = None


def _reads_the_clock() -> Any:
    import time

    from keras import layers

    class Clock(layers.Layer):
        def call(self, x):
            return x + (time.time() > 0)

    return Clock


def _draws_random_numbers() -> Any:
    import numpy as np
    from keras import layers

    class Drawn(layers.Layer):
        def call(self, x):
            np.random.seed(1)
            return x + np.random.rand()

    return Drawn


def _reads_a_file() -> Any:
    from keras import layers

    class Reader(layers.Layer):
        def call(self, x):
            with open(__file__) as stream:  # noqa: PTH123
                return x + float(len(stream.readline()) > 0)

    return Reader


def _calls_python() -> Any:
    import tensorflow as tf
    from keras import layers

    class Python(layers.Layer):
        def call(self, x):
            y = tf.py_function(lambda value: value * 2, [x], x.dtype)
            return tf.ensure_shape(y, x.shape)

    return Python


def _holds_a_table() -> Any:
    import tensorflow as tf
    from keras import layers

    class Table(layers.Layer):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 1.0)
            self.table.insert(tf.constant([0, 1], tf.int64), tf.constant([0.5, 2.0]))

        def call(self, x):
            return x * tf.ensure_shape(self.table.lookup(tf.constant(1, tf.int64)), [])

    return Table


def _holds_a_generator() -> Any:
    from keras import layers

    class Generator(layers.Layer):
        def __init__(self):
            super().__init__()
            self.numbers = (n for n in range(3))

        def call(self, x):
            return x * 1.0

    return Generator


def _uses_a_captured_variable_of_its_own() -> Any:
    import tensorflow as tf
    from keras import layers

    hidden = [tf.Variable(2.0)]

    class Hidden(layers.Layer):
        def call(self, x):
            return x * reach()

    def reach():
        return hidden[0]

    return Hidden


REFUSED = {
    "clock": (_reads_the_clock, "uses time"),
    "random": (_draws_random_numbers, "np.random"),
    "file": (_reads_a_file, "reads __file__"),
    "py_function": (_calls_python, "uses tf.py_function"),
    "table": (_holds_a_table, "a table that can change"),
    "generator": (_holds_a_generator, "numbers is a builtins.generator"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_traced_as_usual_and_says_why(name, tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    make, reason = REFUSED[name]
    layer = make()
    expected = models.trained(models.small(custom=layer))
    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        assert models.trained(models.small(custom=layer)) == expected
        assert models.trained(models.small(custom=layer)) == expected
        assert train.counts()["refused"] == train.counts()["traced"] == 2
    said = [record.message for record in caplog.records]
    assert len(said) == 1
    assert reason in said[0]
    assert all(each.startswith("optimised graph") for each in models.kept(tmp_path / "cache"))


def test_a_variable_that_only_a_closure_reaches_is_bound_by_position(tmp_path):
    from glowplug import train
    from tests.train import models

    layer = _uses_a_captured_variable_of_its_own()
    expected = models.trained(models.small(custom=layer))
    with train.enabled(tmp_path / "cache"):
        assert models.trained(models.small(custom=layer)) == expected
        assert models.trained(models.small(custom=layer)) == expected
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"run_eagerly": True}, "run_eagerly")],
)
def test_what_stays_stock(options, reason, tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    expected = models.trained(models.small(**options))
    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        assert models.trained(models.small(**options)) == expected
        assert train.counts() == {}
    assert [reason in record.message for record in caplog.records] == [True]


def test_a_strategy_stays_stock(tmp_path, caplog):
    import tensorflow as tf

    from glowplug import train
    from tests.train import models

    def run():
        with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
            model = models.small()
        return models.trained(model)

    expected = run()
    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        assert run() == expected
        assert train.counts() == {}
    assert any("strategy" in record.message for record in caplog.records)


def test_an_unknown_keras_stays_stock(tmp_path, caplog, monkeypatch):
    from glowplug import train
    from glowplug.train.trainer import seam
    from tests.train import models

    monkeypatch.setitem(seam.KNOWN_SOURCES, "_make_function", frozenset())
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        models.trained(models.small())
        assert train.counts() == {}
    assert ["_make_function" in record.message for record in caplog.records] == [True]


def test_functions_that_run_eagerly(tmp_path):
    import tensorflow as tf

    from glowplug import train
    from tests.train import models

    with train.enabled(tmp_path / "cache"):
        model = models.small()
        first = models.trained(model)
        tf.config.run_functions_eagerly(True)
        try:
            second = models.trained(model)
        finally:
            tf.config.run_functions_eagerly(False)
    assert len(first) == len(second)
    assert train.counts() == {}


@pytest.mark.parametrize("part", ["keeping", "walking"])
def test_a_mistake_of_the_cache_does_not_fail_the_run(part, tmp_path, caplog, monkeypatch):
    from glowplug import train
    from glowplug.train.trace import cached
    from glowplug.train.trainer import step
    from tests.train import models

    def broken(*_):
        raise AttributeError("another Keras")

    expected = models.trained(models.small())
    if part == "keeping":
        monkeypatch.setattr(cached, "capture_plan", broken)
    else:
        monkeypatch.setattr(step.ModelStep, "walk", broken)
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert models.trained(models.small()) == expected
        assert train.counts()["refused"] == 1
    assert ["another Keras" in record.message for record in caplog.records] == [True]
