"""Makes inputs that suit a signature, to compare the converted model with its source on real calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import numpy_dtype
from glowplug.core.manifest import Port, TensorSpec

BATCHES = (1, 2, 5, 0)
_SIZES = (16, 32, 64, 128, 224, 8, 3, 1)
_SIGNAL = 1024  # for what has no more than a batch and a length: the least that some models of sound take is 400
_BOUNDS = (100, 10, 2, 1)
_MOST = 200  # styles to try: a refused call takes a millisecond, a large image more
_WORDS = (b"the", b"a quick brown fox", b"", b"glow plug", "käse €".encode(), b"12", b"zzz")
_FRACTIONS = ("float", "bfloat")
_DENSE_SIZE = 16  # of each dimension of a sparse tensor
_BATCH, _DOUBLE, _ONE = "batch", "double", "one"

Strings = Callable[[np.random.Generator, int, int], list[bytes]]
Place = tuple[str, int]  # an input and one of its dimensions


@dataclass(frozen=True, slots=True)
class Style:
    """What the specification leaves open: sizes other than the batch, the range of integers, what strings hold.

    With `structure`, integers are the row splits of ragged tensors, or the indices and shapes of sparse ones. `unlike`
    are dimensions that have another size than the rest. Fractions are around zero, or, if `positive`, between zero and
    one, as a probability or a colour is; integers begin at zero, or, if `positive`, at one, as a divisor does.
    """

    size: int
    bound: int
    strings: Mapping[str, Strings]
    batch_scalars: bool = False  # older exporters declare no dimensions where they know none
    structure: bool = False
    unlike: tuple[tuple[Place, str], ...] = ()
    positive: bool = False


def words(random: np.random.Generator, count: int, size: int) -> list[bytes]:
    """Return arbitrary short texts."""
    return [_WORDS[index] for index in random.integers(0, len(_WORDS), count)]


def styles(inputs: Mapping[str, Port], makers: tuple[Strings, ...]) -> Iterator[Style]:
    """Yield styles to try, the likeliest first; what the inputs do not depend on is not varied."""
    return islice(_all_styles(inputs, makers), _MOST)


def _all_styles(inputs: Mapping[str, Port], makers: tuple[Strings, ...]) -> Iterator[Style]:
    specs = {name: port.spec for name, port in inputs.items()}
    texts = [name for name, spec in specs.items() if spec.dtype == "string"]
    encoded = bool(texts) and makers != (words,)
    open_places = [
        (name, place)
        for name, spec in specs.items()
        for place, size in enumerate(spec.shape or ())
        if size is None and (place or len(specs) > 1)
    ]
    unknown_rank = any(spec.shape is None for spec in specs.values())
    varied = encoded or unknown_rank or any(place for _, place in open_places)
    integers = [name for name, spec in specs.items() if _is_integer(spec)]
    scalars = any(spec.shape == () for spec in specs.values())

    def plain(
        unlike: tuple[tuple[Place, str], ...], sizes: tuple[int, ...], structure: bool = False, positive: bool = False
    ) -> Iterator[Style]:
        choices = product(
            (False, True) if scalars else (False,),
            _assignments(texts, makers),
            sizes,
            _BOUNDS if integers and not structure else _BOUNDS[:1],
        )
        for batch_scalars, strings, size, bound in choices:
            yield Style(size, bound, strings, batch_scalars, structure, unlike, positive)

    signals = varied and not unknown_rank and all(len(spec.shape or ()) <= 2 for spec in specs.values())
    yield from plain((), (*_SIZES[:5], *([_SIGNAL] if signals else []), *_SIZES[5:]) if varied else _SIZES[:1])
    if any(spec.dtype.startswith(_FRACTIONS) or _counts(spec) for spec in specs.values()):
        yield from plain((), _SIZES[:3] if varied else _SIZES[:1], positive=True)
    if integers and len(specs) > 1:
        yield from plain((), _SIZES[:1], structure=True)
    if len(specs) > 1 or len(open_places) > 1:
        yield from plain(tuple((place, _BATCH) for place in open_places), _SIZES[:1])
        for place, factor in product(open_places, (_DOUBLE, _ONE, _BATCH)):
            yield from plain(((place, factor),), _SIZES[:1])


def _assignments(texts: list[str], makers: tuple[Strings, ...]) -> Iterator[Mapping[str, Strings]]:
    """Yield who makes the strings of which input: the same for all first."""
    if not texts:
        yield {}
        return
    for maker in makers:
        yield dict.fromkeys(texts, maker)
    if len(texts) > 1:
        for chosen in islice(product(makers, repeat=len(texts)), _MOST):
            if len(set(chosen)) > 1:
                yield dict(zip(texts, chosen, strict=True))


def make_inputs(inputs: Mapping[str, Port], style: Style, batch: int, seed: int) -> dict[str, NDArray[Any]]:
    """Return random inputs of one batch size."""
    random = np.random.default_rng(seed)
    return {name: _make(name, port.spec, style, batch, random) for name, port in inputs.items()}


def has_open_batch(inputs: Mapping[str, Port]) -> bool:
    """Say whether the batch size is the caller's choice."""
    return any(p.spec.shape is None or (p.spec.shape and p.spec.shape[0] is None) for p in inputs.values())


def _make(name: str, spec: TensorSpec, style: Style, batch: int, random: np.random.Generator) -> NDArray[Any]:
    declared = (None,) if spec.shape is None or (spec.shape == () and style.batch_scalars) else spec.shape
    unlike = dict(style.unlike)

    def chosen(place: int) -> int:
        usual = style.size if place else batch
        return {_BATCH: batch, _DOUBLE: 2 * usual, _ONE: 1}.get(unlike.get((name, place), ""), usual)

    shape = tuple(chosen(place) if size is None else size for place, size in enumerate(declared))
    if spec.dtype == "string":
        count = int(np.prod(shape, dtype=np.int64))
        array = np.empty(count, object)
        array[:] = style.strings[name](random, count, style.size)
        return array.reshape(shape)
    wanted = numpy_dtype(spec.dtype)
    if spec.dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    least = int(style.positive)
    if spec.dtype == "uint8":
        return random.integers(least, 256, shape).astype(wanted)
    if _is_integer(spec):
        if style.structure:
            return _structure(declared, shape, batch).astype(wanted)
        bound = min(style.bound, 7) if spec.dtype.endswith("int4") else style.bound
        return random.integers(least, least + bound, shape).astype(wanted)
    values = random.uniform(0.01, 0.99, shape) if style.positive else random.standard_normal(shape)
    if spec.dtype.startswith("complex"):
        return (values + 1j * random.standard_normal(shape)).astype(wanted)
    return values.astype(wanted)


def _counts(spec: TensorSpec) -> bool:
    return spec.dtype.startswith(("int", "uint"))


def _is_integer(spec: TensorSpec) -> bool:
    return spec.dtype.startswith(("int", "uint")) and spec.dtype != "uint8"


def _structure(declared: tuple[int | None, ...], shape: tuple[int, ...], batch: int) -> NDArray[Any]:
    """Return what joins the parts of one ragged or sparse tensor with `batch` values."""
    if len(shape) == 2:  # the indices of a sparse tensor, in their order
        return np.stack([np.arange(shape[0]), *(np.arange(shape[0]) % 2 for _ in range(shape[1] - 1))], axis=1)
    if declared == (None,):  # the row splits of a ragged tensor
        return np.array([0, batch // 2, batch])
    return np.full(shape, _DENSE_SIZE)
