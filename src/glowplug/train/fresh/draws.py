"""Random numbers for weights, drawn by all cores into memory that is touched once.

An array is cut into chunks of a fixed size and each chunk has a generator of its own, seeded by the seed and the
chunk's number. So the numbers depend on the seed alone, never on how many threads drew them or in which order.
numpy releases the interpreter's lock while it draws.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Draw = Callable[[np.random.Generator, Floats], None]

CHUNK = 1 << 19  # as much as one generator draws, so that seeding it does not count
BLOCK = 1 << 17  # stays in a core's own cache, and is long enough for threads to seldom wait for each other
ALIGNMENT = 64  # TensorFlow copies an array that begins elsewhere
TRUNCATED_AT = 2.0  # standard deviations, as Keras and TensorFlow cut
# M. Giles, "Approximating the erfinv function" (2010), single precision, the branch for |x| below 0.9966: what lies
# within two deviations ends at 0.9545. The highest power comes first.
_ERFINV = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_BELOW_CUT = np.nextafter(np.float32(TRUNCATED_AT), np.float32(0))
_ERF_AT_CUT = math.erf(TRUNCATED_AT / math.sqrt(2))


def draw(shape: Sequence[int], dtype: Any, seed: Sequence[int], fill: Draw, *, workers: int | None = None) -> Floats:
    """Return a new array of random numbers; `fill` draws one chunk of it."""
    array = _aligned(shape, np.dtype(dtype))
    flat = array.reshape(-1)
    chunks = range(0, flat.size, CHUNK)

    def run(start: int) -> None:
        sequence = np.random.SeedSequence([*seed, start // CHUNK])
        generator = np.random.Generator(np.random.SFC64(sequence))
        for block in range(start, min(start + CHUNK, flat.size), BLOCK):
            fill(generator, flat[block : block + BLOCK])

    workers = min(len(chunks), workers or len(os.sched_getaffinity(0)))
    if workers <= 1:
        for start in chunks:
            run(start)
    else:
        with ThreadPoolExecutor(workers, "glowplug-draw") as pool:
            for _ in pool.map(run, chunks):
                pass
    return array


def uniform(low: float, high: float) -> Draw:
    """Draw evenly from [low, high)."""

    def fill(generator: np.random.Generator, out: Floats) -> None:
        _between_one_and_two(generator, out)
        out -= 1
        out *= high - low
        out += low

    return fill


def normal(mean: float, deviation: float) -> Draw:
    """Draw from the normal distribution."""

    def fill(generator: np.random.Generator, out: Floats) -> None:
        _standard_normal(generator, out)
        _scale(out, mean, deviation)

    return fill


def truncated_normal(mean: float, deviation: float) -> Draw:
    """Draw from the normal distribution, cut at two deviations from the mean."""

    def fill(generator: np.random.Generator, out: Floats) -> None:
        if out.dtype == np.float32:
            _inverse_truncated(generator, out)
            _scale(out, mean, deviation)
            return
        _standard_normal(generator, out)
        outside = np.flatnonzero(np.abs(out) >= TRUNCATED_AT)
        while outside.size:
            again = np.empty(outside.size, out.dtype)
            _standard_normal(generator, again)
            out[outside] = again
            outside = outside[np.abs(again) >= TRUNCATED_AT]
        _scale(out, mean, deviation)

    return fill


def _inverse_truncated(generator: np.random.Generator, out: Floats) -> None:
    """Turn even numbers into truncated normal ones by the inverse of their distribution: nothing is drawn again."""
    _between_one_and_two(generator, out)
    out -= 1.5
    out *= 2 * _ERF_AT_CUT
    power = np.multiply(out, out)
    np.subtract(1, power, out=power)
    np.log(power, out=power)
    power += 2.5
    np.negative(power, out=power)
    total = np.multiply(power, _ERFINV[0])
    for coefficient in _ERFINV[1:-1]:
        total += coefficient
        total *= power
    total += _ERFINV[-1]
    out *= total
    out *= math.sqrt(2)
    np.clip(out, -_BELOW_CUT, _BELOW_CUT, out=out)  # rounding may reach the cut, which Keras never does


def _standard_normal(generator: np.random.Generator, out: Floats) -> None:
    """Box and Muller's way, since numpy has vector instructions for it and none for its own ziggurat."""
    half = (out.size + 1) // 2
    pairs = np.empty((2, half), out.dtype)
    _between_one_and_two(generator, pairs.reshape(-1))
    radius, angle = pairs
    np.subtract(2, radius, out=radius)  # (0, 1]: a logarithm of zero cannot come up
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle -= 1
    angle *= 2 * np.pi
    np.multiply(np.cos(angle), radius, out=out[:half])
    np.multiply(np.sin(angle[: out.size - half]), radius[: out.size - half], out=out[half:])


def _between_one_and_two(generator: np.random.Generator, out: Floats) -> None:
    """Fill with [1, 2): random bits under a constant exponent, the way TensorFlow makes its uniform numbers."""
    if out.dtype == np.float64:
        generator.random(out=out)
        out += 1
        return
    raw = generator.bit_generator.random_raw((out.size + 1) // 2)
    bits = raw.view(np.uint32)[: out.size]
    np.right_shift(bits, 9, out=bits)
    np.bitwise_or(bits, 0x3F800000, out=out.view(np.uint32))


def _scale(out: Floats, mean: float, deviation: float) -> None:
    out *= deviation
    if mean:
        out += mean


def _aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Floats:
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    offset = -memory.ctypes.data % ALIGNMENT
    return memory[offset : offset + nbytes].view(dtype).reshape(tuple(shape))
