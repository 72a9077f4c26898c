"""Makes inputs that suit a signature, to compare the converted model with its source on real calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import numpy_dtype
from glowplug.core.manifest import Port, TensorSpec

BATCHES = (1, 2, 5, 0)
_SIZES = (16, 32, 64, 128, 224, 8, 3, 1)
_BOUNDS = (100, 10, 2, 1)
_WORDS = (b"the", b"a quick brown fox", b"", b"glow plug", "käse €".encode(), b"12", b"zzz")

Strings = Callable[[np.random.Generator, int], list[bytes]]


@dataclass(frozen=True, slots=True)
class Style:
    """What the specification leaves open: sizes other than the batch, the range of integers, what strings hold."""

    size: int
    bound: int
    strings: Strings
    batch_scalars: bool = False  # older exporters declare no dimensions where they know none


def words(random: np.random.Generator, count: int) -> list[bytes]:
    """Return arbitrary short texts."""
    return [_WORDS[index] for index in random.integers(0, len(_WORDS), count)]


def styles(inputs: Mapping[str, Port], makers: tuple[Strings, ...]) -> Iterator[Style]:
    """Yield styles to try, the likeliest first; what the inputs do not depend on is not varied."""
    specs = [port.spec for port in inputs.values()]
    open_sizes = any(spec.shape is None or None in spec.shape[1:] for spec in specs)
    integers = any(spec.dtype.startswith(("int", "uint")) and spec.dtype != "uint8" for spec in specs)
    strings = any(spec.dtype == "string" for spec in specs)
    scalars = any(spec.shape == () for spec in specs)
    choices = product(
        (False, True) if scalars else (False,),
        makers if strings else makers[:1],
        _SIZES if open_sizes else _SIZES[:1],
        _BOUNDS if integers else _BOUNDS[:1],
    )
    for batch_scalars, maker, size, bound in choices:
        yield Style(size, bound, maker, batch_scalars)


def make_inputs(inputs: Mapping[str, Port], style: Style, batch: int, seed: int) -> dict[str, NDArray[Any]]:
    """Return random inputs of one batch size."""
    random = np.random.default_rng(seed)
    return {name: _make(port.spec, style, batch, random) for name, port in inputs.items()}


def has_open_batch(inputs: Mapping[str, Port]) -> bool:
    """Say whether the batch size is the caller's choice."""
    return any(p.spec.shape is None or (p.spec.shape and p.spec.shape[0] is None) for p in inputs.values())


def _make(spec: TensorSpec, style: Style, batch: int, random: np.random.Generator) -> NDArray[Any]:
    declared = (None,) if spec.shape is None or (spec.shape == () and style.batch_scalars) else spec.shape
    shape = tuple(
        size if size is not None else batch if place == 0 else style.size for place, size in enumerate(declared)
    )
    if spec.dtype == "string":
        count = int(np.prod(shape, dtype=np.int64))
        array = np.empty(count, object)
        array[:] = style.strings(random, count)
        return array.reshape(shape)
    wanted = numpy_dtype(spec.dtype)
    if spec.dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if spec.dtype == "uint8":
        return random.integers(0, 256, shape).astype(wanted)
    if spec.dtype.startswith(("int", "uint")):
        bound = min(style.bound, 7) if spec.dtype.endswith("int4") else style.bound
        return random.integers(0, bound, shape).astype(wanted)
    values = random.standard_normal(shape)
    if spec.dtype.startswith("complex"):
        return (values + 1j * random.standard_normal(shape)).astype(wanted)
    return values.astype(wanted)
