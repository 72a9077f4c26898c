"""Whatever breaks in Glowplug around a step, the step runs as in stock Keras, once, and one line says so."""

from __future__ import annotations

import logging
from functools import reduce
from importlib import import_module
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

# Places that the next release of TensorFlow or Keras may break: module, and the name in it.
PLACES = [
    ("glowplug.train.trainer.seam", "why_stock"),
    ("glowplug.train.trainer.seam", "ModelStep"),
    ("glowplug.train.trace.cached", "TracedTypes"),
    ("glowplug.train.trace.cached", "plain_eager"),
    ("glowplug.train.trace.cached", "_stored_form"),
    ("glowplug.train.trace.dispatch", "TracedTypes.target"),
    ("glowplug.train.trace.dispatch", "TracedTypes.add"),
    ("glowplug.train.trace.signature", "arguments_of"),
    ("glowplug.train.trace.signature", "visit_inputs"),
    ("glowplug.train.trace.signature", "traced_shapes"),
    ("glowplug.train.trainer.step", "build_for"),
    ("glowplug.train.trainer.step", "ModelStep.before_trace"),
    ("glowplug.train.trainer.step", "ModelStep.served"),
    ("glowplug.train.caching", "Caching.find"),
    ("glowplug.train.caching", "Caching.missed"),
    ("glowplug.train.caching", "Caching.keep"),
    ("glowplug.train.fingerprint.walker", "Walker.finish"),
    ("tensorflow.python.eager.context", "Context.export_run_metadata"),
]


def _run() -> list[Any]:
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    from tests.train import models

    x, y = models.data()
    found = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]
    return [*found, model.predict(x, verbose=0).tolist(), int(model.optimizer.iterations.numpy())]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return _run()


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_what_breaks_before_or_after_a_step(module, name, expected, tmp_path, monkeypatch, caplog):
    from glowplug import train

    def broken(*_: Any, **__: Any) -> Any:
        raise AttributeError("a private name is gone")

    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        *owners, last = name.split(".")
        monkeypatch.setattr(reduce(getattr, owners, import_module(module)), last, broken)
        assert _run() == expected
        assert train.counts().get("restored", 0) == 0
    said = [record.message for record in caplog.records if record.name == "glowplug.train"]
    assert said
    assert len(said) == len(set(said)) <= 2  # one for `fit`, one for `predict`


def test_what_breaks_while_a_trace_is_restored(expected, tmp_path, monkeypatch, caplog):
    from glowplug import train
    from glowplug.train.trace import cached

    def broken(*_: Any, **__: Any) -> Any:
        raise TypeError("another signature")

    with train.enabled(tmp_path / "cache"):
        assert _run() == expected
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        monkeypatch.setattr(cached, "RestoredFunction", broken)
        assert _run() == expected
        assert train.counts()["traced"] == 2
    assert "another signature" in caplog.text


@pytest.mark.parametrize("version", ["2.15.1", "2.99.0", "3.0.0-rc1"])
def test_a_tensorflow_that_is_not_known(version, tmp_path, monkeypatch, caplog):
    import tensorflow as tf

    from glowplug import train

    monkeypatch.setattr(tf, "__version__", version)
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert train.function(lambda x: x + 1)(tf.constant(1)) == 2
        assert train.counts() == {}
    assert caplog.text.count("is not known to Glowplug") == 1


def test_a_tensorflow_that_lacks_a_private_name(tmp_path, monkeypatch, caplog):
    from tensorflow.python.eager import execute

    from glowplug.train import releases

    assert releases.unknown_tensorflow() == ""
    monkeypatch.delattr(execute, "execute")
    assert "has no tensorflow.python.eager.execute.execute" in releases.unknown_tensorflow()


def test_an_error_of_the_programs_own_is_raised_word_for_word(tmp_path):
    import keras
    import numpy as np

    from glowplug import train

    class Broken(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            raise ValueError(f"no {x.shape[1]} today")

    class Late(keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            return {"loss": self.no_such_thing}

    def outcome(make: Any) -> tuple[Any, ...]:
        keras.utils.clear_session()
        model = make()
        model.compile("sgd", "mse")
        with pytest.raises(Exception) as caught:
            model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
        return caught.type, str(caught.value)

    makes = [lambda: keras.Sequential([Broken(), keras.layers.Dense(1)]), Late]
    expected = [outcome(make) for make in makes]
    with train.enabled(tmp_path / "cache"):
        assert [outcome(make) for make in makes] == expected
