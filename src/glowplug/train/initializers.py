"""Keras' random initialisers, drawn by all cores: the same distributions and arguments, other numbers.

Where there is no memory to fill (in a graph, or in a dtype that numpy cannot draw) Keras' own initialiser runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from .fresh import draws

# What a truncation at two deviations leaves of a deviation; Keras divides by it.
_KEPT_DEVIATION = 0.87962566103423978
_NATIVE = ("float32", "float64")
_CAST = ("float16", "bfloat16")

__all__ = [
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "LecunNormal",
    "LecunUniform",
    "Orthogonal",
]

_serializable = keras.saving.register_keras_serializable(package="glowplug")


class _Drawn:
    """Calls as Keras does: one seed always gives the same numbers, a `SeedGenerator` gives new ones each time."""

    seed: Any

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Any:
        name = keras.backend.standardize_dtype(dtype or keras.config.floatx())
        if name not in (*_NATIVE, *_CAST) or not tf.executing_eagerly():
            return super().__call__(shape, dtype=dtype)  # type: ignore[misc]
        sizes = tuple(int(size) for size in shape)
        array = self._values(sizes, name if name in _NATIVE else "float32", self._entropy())
        return _as_tensor(array) if name in _NATIVE else tf.cast(array, name)

    def _values(self, shape: tuple[int, ...], dtype: str, entropy: list[int]) -> draws.Floats:
        return draws.draw(shape, dtype, entropy, self._draw(shape))

    def _draw(self, shape: tuple[int, ...]) -> draws.Draw:
        raise NotImplementedError

    def _entropy(self) -> list[int]:
        if isinstance(self.seed, int):
            return [self.seed & 0xFFFFFFFFFFFFFFFF]
        return [int(part) & 0xFFFFFFFF for part in np.asarray(self.seed.next())]


@_serializable
class RandomNormal(_Drawn, keras.initializers.RandomNormal):  # type: ignore[misc]
    """Normal, with a mean and a deviation."""

    def _draw(self, shape: tuple[int, ...]) -> draws.Draw:
        return draws.normal(self.mean, self.stddev)


@_serializable
class TruncatedNormal(_Drawn, keras.initializers.TruncatedNormal):  # type: ignore[misc]
    """Normal, nothing two deviations or more from the mean."""

    def _draw(self, shape: tuple[int, ...]) -> draws.Draw:
        return draws.truncated_normal(self.mean, self.stddev)


@_serializable
class RandomUniform(_Drawn, keras.initializers.RandomUniform):  # type: ignore[misc]
    """Even between two values."""

    def _draw(self, shape: tuple[int, ...]) -> draws.Draw:
        return draws.uniform(self.minval, self.maxval)


class _Scaled(_Drawn):
    scale: float
    mode: str
    distribution: str
    input_axes: Any
    output_axes: Any

    def _draw(self, shape: tuple[int, ...]) -> draws.Draw:
        from keras.src.initializers.random_initializers import compute_fans

        axes = {"input_axes": self.input_axes, "output_axes": self.output_axes} if hasattr(self, "input_axes") else {}
        fan_in, fan_out = compute_fans(shape, **axes)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        scale = self.scale / max(1.0, fans[self.mode])
        if self.distribution == "uniform":
            limit = math.sqrt(3 * scale)
            return draws.uniform(-limit, limit)
        if self.distribution == "untruncated_normal":
            return draws.normal(0.0, math.sqrt(scale))
        return draws.truncated_normal(0.0, math.sqrt(scale) / _KEPT_DEVIATION)


@_serializable
class VarianceScaling(_Scaled, keras.initializers.VarianceScaling):  # type: ignore[misc]
    """Scaled by the number of a weight's inputs, outputs or both."""


@_serializable
class GlorotUniform(_Scaled, keras.initializers.GlorotUniform):  # type: ignore[misc]
    """Even, scaled by the average of inputs and outputs."""


@_serializable
class GlorotNormal(_Scaled, keras.initializers.GlorotNormal):  # type: ignore[misc]
    """Truncated normal, scaled by the average of inputs and outputs."""


@_serializable
class HeUniform(_Scaled, keras.initializers.HeUniform):  # type: ignore[misc]
    """Even, scaled by the inputs, doubled for rectifiers."""


@_serializable
class HeNormal(_Scaled, keras.initializers.HeNormal):  # type: ignore[misc]
    """Truncated normal, scaled by the inputs, doubled for rectifiers."""


@_serializable
class LecunUniform(_Scaled, keras.initializers.LecunUniform):  # type: ignore[misc]
    """Even, scaled by the inputs."""


@_serializable
class LecunNormal(_Scaled, keras.initializers.LecunNormal):  # type: ignore[misc]
    """Truncated normal, scaled by the inputs."""


@_serializable
class Orthogonal(_Drawn, keras.initializers.Orthogonal):  # type: ignore[misc]
    """Orthogonal columns, or rows where there are fewer of those: the Q of a normal matrix, by LAPACK."""

    def _values(self, shape: tuple[int, ...], dtype: str, entropy: list[int]) -> draws.Floats:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal needs at least two dimensions. Received: shape={shape} of rank {len(shape)}.")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        normal = draws.draw((max(rows, columns), min(rows, columns)), dtype, entropy, draws.normal(0.0, 1.0))
        q, r = np.linalg.qr(normal)
        q *= np.sign(np.diag(r)) * self.gain  # without the signs Q would not be evenly distributed
        return np.ascontiguousarray((q if rows >= columns else q.T).reshape(shape), dtype)


def _as_tensor(array: draws.Floats) -> Any:
    """Return a tensor over the array's own memory, without a copy."""
    if array.size == 0 or array.ctypes.data % draws.ALIGNMENT:
        return tf.convert_to_tensor(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
