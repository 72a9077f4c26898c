"""Where the digits of a converted convolutional network go: how far each way to compute it is from float64.

    bench/rounding.py [MODEL of keras.applications ...]

The batch normalisations get statistics as training leaves them: those of data, and scales and offsets of some spread.
Compared are the source in stock TensorFlow, the converted model with batch normalisations inside the weights and
without, and float64 arithmetic with the weights rounded to float32 after they were scaled: what folding itself costs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import machine
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

import glowplug
from glowplug.convert.calls import equivalence
from glowplug.convert.job import Job, Order

SIZE, ROWS = 128, 24


class Converted(Job):
    """A native conversion of one kind, whatever its difference to the source."""

    fuse: bool

    def _proven_native(self) -> Any:
        return self._native(fuse=self.fuse, for_cpu=True)


def build(name: str) -> keras.Model:
    keras.utils.set_random_seed(5)
    model: keras.Model = getattr(keras.applications, name)(weights=None, input_shape=(SIZE, SIZE, 3), classes=10)
    return model


def settle(model: keras.Model, random: np.random.Generator) -> None:
    """Give the batch normalisations what training would: moments of what flows through them."""
    for layer in normalisations(model):
        if layer.gamma is not None:
            layer.gamma.assign(np.exp(random.uniform(np.log(0.1), np.log(2.5), layer.gamma.shape)))
        layer.beta.assign(random.normal(0, 0.5, layer.beta.shape))
        layer.momentum = 0.0
    model(random.normal(size=(16, SIZE, SIZE, 3)).astype("float32"), training=True)


def normalisations(model: keras.Model) -> list[Any]:
    return [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]


def round_as_folded(model: keras.Model) -> None:
    """Change the float64 weights before each batch normalisation as if scaled, rounded and scaled back."""
    for layer in normalisations(model):
        before = layer.input._keras_history.operation
        if not isinstance(before, keras.layers.Conv2D) or layer.gamma is None:
            continue
        gamma, beta, mean, variance = layer.get_weights()
        scale = gamma / np.sqrt(variance + layer.epsilon)
        kernel, *bias = before.get_weights()
        rounded = [_rounded(kernel * scale) / scale]
        if bias:
            rounded.append((_rounded(bias[0] * scale + beta - mean * scale) - beta + mean * scale) / scale)
        before.set_weights(rounded)


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values.astype(np.float32).astype(np.float64)


def apart(answer: NDArray[Any], exact: NDArray[np.float64]) -> dict[str, float]:
    """Return the largest difference and its root mean square, in parts of the largest value."""
    difference, largest = np.abs(answer - exact), float(np.max(np.abs(exact)))
    return {"max": float(difference.max()) / largest, "rms": float(np.sqrt(np.mean(difference**2))) / largest}


def measure(name: str, folder: Path) -> dict[str, Any]:
    random = np.random.default_rng(1)
    keras.config.set_dtype_policy("float32")
    model = build(name)
    settle(model, random)
    model.export(str(folder / "source"), verbose=False)
    x = random.normal(size=(ROWS, SIZE, SIZE, 3)).astype("float32")
    keras.config.set_dtype_policy("float64")
    wide = build(name)
    wide.set_weights([weight.astype("float64") for weight in model.get_weights()])
    exact = wide(x.astype("float64"), training=False).numpy()
    stock = tf.saved_model.load(str(folder / "source")).signatures["serving_default"]
    found = {"source": apart(next(iter(stock(tf.constant(x)).values())).numpy(), exact)}
    for fuse in (True, False):
        bundle = folder / f"bundle-{fuse}"
        bundle.mkdir()
        job = Converted(Order(bundle, folder / "source", engine="native"), lambda stage: None)
        job.fuse = fuse
        job.run()
        with glowplug.load(bundle) as loaded:
            found["folded" if fuse else "not folded"] = apart(loaded(x), exact)
    round_as_folded(wide)
    found["folded weights, float64"] = apart(wide(x.astype("float64"), training=False).numpy(), exact)
    return found


def main() -> None:
    equivalence.TOLERANCES["float32"] = 1.0  # the difference is what is measured
    rows = {}
    for name in sys.argv[1:] or ["ResNet50"]:
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = measure(name, Path(folder))
        for way, found in rows[name].items():
            print(f"{name} {way:<26} largest {found['max']:.1e}  rms {found['rms']:.1e}", flush=True)
    machine.write_result("rounding", {"machine": machine.describe(), "models": rows}, partial=len(sys.argv) > 1)


if __name__ == "__main__":
    main()
