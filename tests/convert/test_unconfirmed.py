"""Answers that are made of memory which nobody has written prove nothing, and are found by asking twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]


@pytest.fixture
def unwritten(tmp_path: Path) -> Path:
    """A model that answers whatever is in its memory where a signal is shorter than 20."""
    import tensorflow as tf

    module = tf.Module()
    module.weight = tf.Variable(np.linspace(1.0, 2.0, 3, dtype="f"))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def score(x):
        rows = tf.stack([tf.shape(x)[0], 3])
        mean = tf.reduce_mean(x, axis=1, keepdims=True) * module.weight
        return {
            "scores": tf.cond(tf.shape(x)[1] < 20, lambda: tf.raw_ops.Empty(shape=rows, dtype=tf.float32), lambda: mean)
        }

    module.score = score
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": score})
    return tmp_path / "model"


def test_calls_that_a_twin_answers_otherwise_are_left_out(unwritten: Path) -> None:
    from glowplug.convert.calls.recording import record
    from glowplug.convert.source.saved_model import SavedModel

    with SavedModel(unwritten) as source:
        assert {call.request.inputs["x"].shape[1] for call in record(source, ()).calls} == {16}
    with SavedModel(unwritten) as source, SavedModel(unwritten) as twin:
        recording = record(source, (), twin)
    assert recording.left_out == 1
    assert {call.request.inputs["x"].shape[1] for call in recording.calls} == {32}
    assert not recording.unproven


def test_memory_is_filled_inside_the_block_alone() -> None:
    from glowplug.convert.calls.memory import other_memory

    with other_memory():
        assert set(np.empty(100_000, np.uint8)) == {0x7F}
    assert set(np.zeros(100_000, np.uint8)) == {0}


def test_a_model_of_sound_gets_a_signal_that_is_long_enough(tmp_path: Path) -> None:
    """What is left of a short one is nothing."""
    import tensorflow as tf

    from glowplug.bundle.reader import open_bundle
    from glowplug.convert.job import Job, Order

    module = tf.Module()
    module.filters = tf.Variable(np.ones((400, 1, 2), "f") / 400)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def score(x):
        windows = tf.signal.frame(x, 400, 160)
        tf.debugging.assert_greater(tf.shape(windows)[1], 0)
        return {"scores": tf.einsum("bfw,wic->bfc", windows, module.filters)}

    module.score = score
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": score})
    (tmp_path / "bundle").mkdir()
    Job(Order(tmp_path / "bundle", tmp_path / "model"), lambda stage: None).run()
    equivalence = open_bundle(tmp_path / "bundle").manifest.equivalence
    assert set(equivalence["calls"]) == {"serving_default"}
    assert "unproven" not in equivalence
