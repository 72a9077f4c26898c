"""One compiled model, called again with other types: other batch sizes, dtypes, sample weights, sizes of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def _sets(*columns: Any, batch: int, drop: bool = True) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(columns).batch(batch, drop_remainder=drop)


def _small(*, custom: Any = None) -> Any:
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), *([custom()] if custom else []), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def _changed_batch(x: Any, y: Any) -> list[Any]:
    return [(_sets(x, y, batch=batch),) for batch in (4, 5, 4, 10)]


def _static_then_partial(x: Any, y: Any) -> list[Any]:
    return [(_sets(x, y, batch=8),), (_sets(x, y, batch=8, drop=False),), (_sets(x, y, batch=4),)]


def _partial_then_static(x: Any, y: Any) -> list[Any]:
    return [(x, y), (_sets(x, y, batch=8),)]


def _weights(x: Any, y: Any) -> list[Any]:
    import numpy as np

    weights = np.linspace(0.1, 1, len(x), dtype="float32")
    return [(_sets(x, y, batch=4),), (_sets(x, y, weights, batch=4),), (_sets(x, y, batch=5),)]


def _dtypes(x: Any, y: Any) -> list[Any]:
    columns = [(x, y), (x.astype("float64"), y), (x, y.astype("int64"))]
    return [(_sets(*pair, batch=4),) for pair in columns]


PROGRAMS: dict[str, Callable[..., list[Any]]] = {
    "batch size": _changed_batch,
    "static, then partial": _static_then_partial,
    "partial, then static": _partial_then_static,
    "sample weights": _weights,
    "dtypes": _dtypes,
}


def _logs(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: float(each) for name, each in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def _run(program: Callable[..., list[Any]]) -> list[Any]:
    from tests.train import models

    model = _small()
    x, y = models.data()
    found: list[Any] = []
    for given in program(x, y):
        found.append(model.fit(*given, epochs=1, shuffle=False, verbose=0).history)
        found.append(_logs(model.evaluate(*given, verbose=0, return_dict=True)))
        found.append(_logs(model.predict(given[0], verbose=0)))
    found.append([float(model.train_on_batch(x[:n], y[:n])) for n in (6, 3, 8)])
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_model_with_other_types(name, tmp_path):
    from glowplug import train

    expected = _run(PROGRAMS[name])
    with train.enabled(tmp_path / "cache"):
        assert _run(PROGRAMS[name]) == expected
        counted = train.counts()
        assert counted["stored"] == counted["traced"], counted
        assert _run(PROGRAMS[name]) == expected
        assert train.counts()["traced"] == counted["traced"]
        assert train.counts()["restored"] == counted["traced"]


def test_other_sizes_of_images(tmp_path):
    import keras
    import numpy as np

    from glowplug import train

    def run() -> list[Any]:
        keras.utils.set_random_seed(3)
        model = keras.Sequential(
            [
                keras.Input((None, None, 3)),
                keras.layers.Conv2D(4, 3),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(1),
            ]
        )
        model.compile("sgd", "mse")
        rng = np.random.default_rng(1)
        losses: list[Any] = []
        for size in (8, 12, 9):
            images = rng.random((8, size, size, 3), "float32")
            data = _sets(images, images[:, 0, 0, :1], batch=4)
            losses += model.fit(data, epochs=2, verbose=0).history["loss"]
            losses.append(model.predict(images, verbose=0).tolist())
        return losses

    expected = run()
    with train.enabled(tmp_path / "cache"):
        assert run() == expected
        assert run() == expected
        assert train.counts()["restored"] == train.counts()["traced"] == train.counts()["stored"]


def _sized() -> Any:
    """Return a layer whose graph depends on what is known of a shape while it is traced."""
    import keras

    class Sized(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * (2.0 if x.shape[0] is None else 3.0 + x.shape[0])

    return Sized()


def test_the_trace_is_as_general_as_stock_makes_it(tmp_path):
    """Each order of calls asks for other traces of equal types: none may stand in for another."""
    from glowplug import train
    from tests.train import models

    x, y = models.data()

    def run(calls: Any) -> list[float]:
        model = _small(custom=_sized)
        found = []
        for each in calls:
            if isinstance(each, int):
                found += model.fit(_sets(x, y, batch=each), verbose=0).history["loss"]
            else:
                count = 6 if each == "batch" else 3
                found.append(float(model.train_on_batch(x[:count], y[:count])))
        return found

    orders = [(4, 5), (4,), (5,), ("batch",), ("batch", 4), (4, "batch"), (5, 4, "batch"), ("batch", "other batch", 4)]
    expected = [run(each) for each in orders]
    with train.enabled(tmp_path / "cache"):
        for again in range(2):
            for order, losses in zip(orders, expected, strict=True):
                assert run(order) == losses, (again, order)
