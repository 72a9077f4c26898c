"""Models with lookup tables inside: a table is its contents, and bound like a variable."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

TEXTS = ["a red house", "the blue sea", "a green hill", "red and blue", "the hill", "sea and hill", "house", "green"]
WORDS = ["red", "blue", "green", "hill"]


def _text(words: Any = None) -> tuple[Any, Any]:
    import keras
    import numpy as np

    layer = keras.layers.TextVectorization(output_sequence_length=4, vocabulary=words)
    if words is None:
        layer.adapt(TEXTS)
    layers = [layer, keras.layers.Embedding(20, 3), keras.layers.Flatten()]
    return layers, np.array(TEXTS, dtype=object)[:, None]


def _strings(words: Any = None, **options: Any) -> tuple[Any, Any]:
    import keras
    import numpy as np

    layer = keras.layers.StringLookup(vocabulary=words, output_mode="multi_hot", **options)
    if words is None:
        layer.adapt(WORDS)
    values = np.array([WORDS[number % 4] for number in range(8)], dtype=object)[:, None]
    return [layer, keras.layers.Dense(3)], values


def _numbers(words: Any = (3, 5, 9)) -> tuple[Any, Any]:
    import keras
    import numpy as np

    layer = keras.layers.IntegerLookup(vocabulary=list(words), output_mode="one_hot")
    return [layer], np.array([3, 5, 9, 1, 3, 3, 5, 7])


MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "adapted text": _text,
    "text with a vocabulary": lambda: _text(WORDS),
    "adapted strings": _strings,
    "strings with a vocabulary": lambda: _strings(WORDS),
    "numbers": _numbers,
}


def _run(make: Callable[[], tuple[Any, Any]]) -> list[Any]:
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.clear_session()
    keras.utils.set_random_seed(4)
    layers, x = make()
    shape, dtype = ((1,), "string") if x.dtype == object else ((), "int64")
    model = keras.Sequential([keras.Input(shape, dtype=dtype), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    values = tf.constant(x.tolist(), tf.string if x.dtype == object else tf.int64)
    data = tf.data.Dataset.from_tensor_slices((values, np.arange(8, dtype="float32"))).batch(3)
    return [model.fit(data, epochs=2, verbose=0).history["loss"], model.predict(data, verbose=0).tolist()]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_a_table(name, tmp_path, caplog):
    from glowplug import train

    expected = _run(MODELS[name])
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert _run(MODELS[name]) == expected
        counted = train.counts()
        assert counted["stored"] == counted["traced"], caplog.text
        assert _run(MODELS[name]) == expected
        assert train.counts()["restored"] == train.counts()["traced"] == counted["traced"]


def test_other_contents_are_another_program(tmp_path):
    from glowplug import train

    makes = [lambda: _strings(WORDS), lambda: _strings(WORDS[::-1]), lambda: _strings(["red", "sea", "hill", "house"])]
    expected = [_run(make) for make in makes]
    assert expected[0] != expected[1] != expected[2]
    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            assert [_run(make) for make in makes] == expected


def test_a_table_that_can_change_is_refused(tmp_path, caplog):
    import tensorflow as tf

    from glowplug import train

    def make() -> Any:
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
        table.insert(tf.constant(["a"]), tf.constant([7], tf.int64))
        return table, train.function(table.lookup)

    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        for _ in range(2):
            table, find = make()
            assert find(tf.constant(["a", "b"])).numpy().tolist() == [7, -1]
            table.insert(tf.constant(["b"]), tf.constant([8], tf.int64))
            assert find(tf.constant(["a", "b"])).numpy().tolist() == [7, 8]
        assert train.counts() == {"traced": 2, "refused": 2}
    assert "MutableHashTable.lookup is traced as usual: it looks up in a table that can change" in caplog.text


def test_a_static_table_in_a_function(tmp_path):
    import tensorflow as tf

    from glowplug import train

    def run(values: list[int], default: int) -> list[int]:
        initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant(values, tf.int64))
        table = tf.lookup.StaticHashTable(initializer, default)

        @train.function
        def find(words: Any) -> Any:
            return table.lookup(words) * 2

        return list(find(tf.constant(["b", "c", "a"])).numpy().tolist())

    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            assert run([1, 2], -1) == [4, -2, 2]
            assert run([1, 3], -1) == [6, -2, 2]
            assert run([1, 2], 5) == [4, 10, 2]
        assert train.counts() == {"traced": 3, "stored": 3, "restored": 3}
