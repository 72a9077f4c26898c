"""What a program's data raises is raised as stock raises it, by a restored step too, and no step runs twice."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow


def _model() -> Any:
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def _pairs(dataset: Any) -> Any:
    import tensorflow as tf

    return dataset.map(lambda x: (tf.ensure_shape(x, [2]), x[:1])).batch(2, drop_remainder=True)


def missing_file(good: bool, folder: Any) -> Any:
    import tensorflow as tf

    for number in range(4 if good else 2):
        (folder / f"{good}{number}").write_bytes(np.float32([number, 1]).tobytes())
    names = tf.data.Dataset.from_tensor_slices([str(folder / f"{good}{number}") for number in range(4)])
    return _pairs(names.map(lambda name: tf.io.decode_raw(tf.io.read_file(name), tf.float32)))


def bad_record(good: bool, folder: Any) -> Any:
    import tensorflow as tf

    path = str(folder / f"records {good}")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(4):
            value = tf.train.Feature(float_list=tf.train.FloatList(value=[number, 1.0]))
            whole = tf.train.Example(features=tf.train.Features(feature={"x": value})).SerializeToString()
            writer.write(whole if good or number < 2 else b"not an example")
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    return _pairs(tf.data.TFRecordDataset(path).map(lambda raw: tf.io.parse_single_example(raw, spec)["x"]))


def generator(good: bool, folder: Any) -> Any:
    import tensorflow as tf

    def numbers() -> Any:
        for number in range(4):
            if not good and number == 2:
                raise RuntimeError("the source is gone")
            yield np.float32([number, 1])

    return _pairs(tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([2], tf.float32)))


def first_of_all(good: bool, folder: Any) -> Any:
    """Even the first batch is bad."""
    import tensorflow as tf

    limit = 100.0 if good else -1.0
    check = tf.data.Dataset.range(4).map(lambda n: tf.stack([tf.cast(n, tf.float32), 1.0]))
    return _pairs(check.map(lambda x: tf.debugging.check_numerics(x / tf.cast(x[0] < limit, tf.float32), "bad")))


def ends_early(good: bool, folder: Any) -> Any:
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 2), "float32"))
    return _pairs(data if good else data.take(2))


PROGRAMS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (missing_file, bad_record, generator, first_of_all, ends_early)
}


def _outcome(program: Callable[..., Any], good: bool, folder: Any) -> tuple[Any, ...]:
    """Return the class of the error, the last lines of its message, and the weights: they tell how many steps ran."""
    model = _model()
    folder.mkdir(exist_ok=True)
    try:
        result: Any = model.fit(program(good, folder), epochs=1, steps_per_epoch=2, shuffle=False, verbose=0).history
    except Exception as error:
        text = str(error).partition("[Op:")[0].strip()
        result = type(error), text.splitlines()[:3], text.splitlines()[-1]
    return result, [each.tolist() for each in model.get_weights()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_of_the_data(name, tmp_path, caplog):
    from glowplug import train

    expected = [_outcome(PROGRAMS[name], good, tmp_path / "data") for good in (True, False)]
    with train.enabled(tmp_path / "cache"):
        assert [_outcome(PROGRAMS[name], good, tmp_path / "data") for good in (True, False)] == expected
    entries = sorted((tmp_path / "cache").glob("*.trace"))
    assert len(entries) == 1
    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        assert _outcome(PROGRAMS[name], False, tmp_path / "data") == expected[1]
        assert _outcome(PROGRAMS[name], True, tmp_path / "data") == expected[0]
        assert train.counts() == {"restored": 2}
    assert sorted((tmp_path / "cache").glob("*.trace")) == entries
    assert [record.message for record in caplog.records if record.name == "glowplug.train"] == []
