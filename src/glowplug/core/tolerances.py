"""How far apart two answers of one model may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Largest difference allowed, relative to the largest magnitude of the output. Other dtypes must agree exactly.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}


def distance(expected: NDArray[Any], seen: NDArray[Any]) -> tuple[float, float]:
    """Return the largest difference of floating-point numbers, and its relation to the largest of them.

    What is not finite must be so in both; otherwise they are infinitely far apart. Numbers too small for the usual form
    of their type are zero: so they are for most of TensorFlow's kernels, and it says nothing which of them keep them.
    """
    import numpy as np

    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    first, second = expected.astype(wide), seen.astype(wide)
    finite = np.isfinite(first)
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True) or not np.isfinite(second[finite]).all():
        return np.inf, np.inf
    first, second = first[finite], second[finite]
    if not first.size:
        return 0.0, 0.0
    if expected.dtype in (np.float32, np.float64):
        least = float(np.finfo(expected.dtype).tiny)
        first, second = (np.where(np.abs(one) < least, 0.0, one) for one in (first, second))
    absolute = float(np.max(np.abs(first - second)))
    return absolute, absolute / max(float(np.max(np.abs(first))), float(np.finfo(np.float32).tiny))
