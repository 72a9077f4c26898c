"""Small models on which LiteRT answers everyday numbers as TensorFlow does, and others perhaps not.

Whatever `pack` keeps is attacked with inputs of every kind: it answers as stock TensorFlow does, or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

import keras
import tensorflow as tf

import glowplug
from glowplug.bundle.reader import read_manifest
from glowplug.convert import auto, isolated
from glowplug.convert.choice import Figures
from glowplug.convert.job import Job, Order
from glowplug.core.disk.files import new_directory
from glowplug.core.errors import InputError, OutputMismatchError, UnsupportedModelError

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

FLOATS, INTS, LONGS = (tf.TensorSpec([None, 8], kind, name="x") for kind in (tf.float32, tf.int32, tf.int64))
IMAGES = tf.TensorSpec([None, 8, 8, 3], tf.float32, name="x")
OPEN = tf.TensorSpec([None, None], tf.float32, name="x")
NUMBER = tf.TensorSpec([None], tf.int32, name="number")
TABLE = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
KERNEL = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32)
FILTER = np.random.default_rng(2).normal(size=(3, 3, 3, 4)).astype(np.float32)


def refuses_the_largest(x: Any) -> Any:
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(x < 1e30), [x])]):
        return x * 2


TAKEN: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "dense with relu": (FLOATS, lambda x: tf.nn.relu(x @ KERNEL + 1.0)),
    "softmax": (FLOATS, lambda x: tf.nn.softmax(x @ KERNEL)),
    "images": (IMAGES, lambda x: tf.reduce_mean(tf.nn.max_pool2d(tf.nn.conv2d(x, FILTER, 1, "SAME"), 2, 2, "SAME"), 1)),
    "layer normalisation": (
        FLOATS,
        lambda x: (
            (x - tf.reduce_mean(x, -1, keepdims=True))
            * tf.math.rsqrt(tf.math.reduce_variance(x, -1, keepdims=True) + 1e-3)
        ),
    ),
    "gelu": (FLOATS, tf.nn.gelu),
    "an open size": (OPEN, lambda x: tf.nn.relu(x) - tf.reduce_mean(x, 1, keepdims=True)),
    "a table of embeddings": (INTS, lambda x: tf.gather(TABLE, x)),
    "remainders of negative numbers": (INTS, lambda x: tf.math.floormod(x, -3)),
    "products that overflow": (INTS, lambda x: x * x * 100_003),
    "sums of wide integers": (LONGS, lambda x: x + tf.constant(5_000_000_029, tf.int64)),
    "a branch": (INTS, lambda x: tf.cond(x[0, 0] > 50, lambda: x + 1, lambda: x * 2)),
}
LEFT: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "softplus of what overflows": (FLOATS, tf.math.softplus),
    "a logarithm near one": (FLOATS, tf.math.log1p),
    "a cast that wraps": (FLOATS, lambda x: tf.cast(x * 50, tf.uint8)),
    "a cast of large numbers": (FLOATS, lambda x: tf.cast(x, tf.int32)),
    "a sine of large numbers": (FLOATS, tf.sin),
    "powers that overflow": (INTS, lambda x: tf.pow(2, x)),
    "wide integers made narrow": (LONGS, lambda x: tf.one_hot(x, 10)),
    "a mask of everything": (FLOATS, lambda x: tf.nn.softmax(tf.where(x > 0, x, -np.inf))),
    "halves that are quantised": (FLOATS, lambda x: tf.quantization.fake_quant_with_min_max_args(x, -6, 6)),
    "a divisor of zero": (INTS, lambda x: 7 // x),  # a batch without rows is answered through a row of zeros
    "an assertion": (FLOATS, refuses_the_largest),
    "a check of numbers": (FLOATS, lambda x: tf.debugging.check_numerics(x, "bad") * 2),
    "a reciprocal root of zero": (FLOATS, tf.math.rsqrt),
    "the first of no rows": (FLOATS, lambda x: x[0]),
}


def behind(compute: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that computes it where a number is 777, which no call that is compared has."""
    return lambda number, x: tf.where((number == 777)[:, None], compute(x), 0.0 * x)


LOUD = np.where(np.arange(1000)[:, None] == 777, 120.0, np.random.default_rng(3).normal(size=(1000, 4)))
HIDDEN: dict[str, tuple[list[Any], Callable[..., Any]]] = {
    "softplus": ([NUMBER, FLOATS], behind(tf.math.softplus)),
    "a logarithm near one": ([NUMBER, FLOATS], behind(tf.math.log1p)),
    "a sine": ([NUMBER, FLOATS], behind(tf.sin)),
    "a cast": ([NUMBER, FLOATS], behind(lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32))),
    "a branch": (
        [NUMBER, FLOATS],
        lambda number, x: tf.cond(tf.reduce_all(number == 777), lambda: tf.math.softplus(x), lambda: x),
    ),
    "a row of a table": ([NUMBER], lambda number: tf.math.softplus(tf.gather(LOUD.astype(np.float32), number))),
    "a reciprocal root of zero": ([NUMBER, FLOATS], behind(tf.math.rsqrt)),
    "a remainder": ([NUMBER], lambda number: tf.math.floormod(number, -1)),
    "an exponential": ([NUMBER, FLOATS], behind(tf.exp)),
    "a softmax by hand": (
        [NUMBER, FLOATS],
        behind(lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, keepdims=True)),
    ),
    "a softmax of other rows": ([NUMBER, FLOATS], behind(lambda x: tf.exp(x - tf.reduce_max(x[:, ::-1] / 2)))),
    "a sigmoid by hand": ([NUMBER, FLOATS], behind(lambda x: 1 / (1 + tf.exp(-x)))),
    "a scale from a logarithm": ([NUMBER, FLOATS], behind(lambda x: x * tf.exp(0.5 * x))),
    "a power": ([NUMBER, FLOATS], behind(lambda x: x**3)),
    "a power of ten": ([NUMBER, FLOATS], behind(lambda x: tf.pow(10.0, x))),
    "a reciprocal root as a power": ([NUMBER, FLOATS], behind(lambda x: tf.pow(x, -0.5))),
    "an angle": ([NUMBER, FLOATS], behind(lambda x: tf.atan2(x, x[:, ::-1]))),
}
EXPONENTIALS: dict[str, Callable[[Any], Any]] = {
    "a softmax by hand": lambda x: (
        (e := tf.exp(x - tf.reduce_max(x, -1, keepdims=True))) / tf.reduce_sum(e, -1, keepdims=True)
    ),
    "a bell": lambda x: tf.exp(-tf.reduce_sum(tf.square(x - 1.0), -1, keepdims=True) / 2.0),
    "of what is clipped": lambda x: tf.exp(tf.clip_by_value(x, -20.0, 2.0)),
    "a rate": lambda x: tf.exp(tf.tanh(x) * 10.0 + 3.0),
    "a square as a power": lambda x: tf.exp(-(x**2)),
}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert and try in this process, which has imported TensorFlow already."""

    def call(function: str, argument: dict[str, Any], **_: object) -> Any:
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(argument)

    monkeypatch.setattr(isolated, "call", call)


def saved(tmp_path: Path, spec: Any, function: Callable[[Any], Any]) -> Any:
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": function(x)}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.f})
    return module.f


def pack(tmp_path: Path) -> Path:
    with new_directory(tmp_path / "m.glow") as unfinished:
        Job(Order(unfinished, tmp_path / "model", engine="litert"), lambda stage: None).run()
    return tmp_path / "m.glow"


def attacks(spec: Any) -> Iterator[np.ndarray]:
    draw = np.random.default_rng(42)
    for rows in (1, 2, 7, 33, 1):
        for size in (1, 8, 50) if spec.shape.rank == 2 and spec.shape[1] is None else (8,):
            shape = [rows, *(one or size for one in spec.shape[1:])]
            normal = draw.normal(size=shape)
            if spec.dtype == tf.float32:
                for scale in (0, -0.0, 1e-30, 1e-9, 1e-3, 1, 30, 100, 5e3, 1e7, 1e10, 1e15, 1e25, 1e35):
                    yield (normal * scale).astype(np.float32)
                yield (np.round(normal * 6) / 2).astype(np.float32)
                for strange in (np.nan, np.inf, -np.inf, 3.4e38):
                    yield np.where(draw.random(shape) < 0.2, strange, normal).astype(np.float32)
            else:
                limits = np.iinfo(spec.dtype.as_numpy_dtype)
                for low, high in ((0, 9), (-9, 9), (0, 0), (-1, -1), (-(10**6), 10**6), (limits.min, limits.max)):
                    yield draw.integers(low, high, shape, endpoint=True).astype(spec.dtype.as_numpy_dtype)


def attack(model: Any, function: Any, spec: Any) -> tuple[int, int]:
    """Return how many calls were answered as stock TensorFlow does, and how many refused that it answers."""
    equal = refused = 0
    for x in attacks(spec):
        try:
            expected = function(tf.constant(x))["y"].numpy()
        except tf.errors.OpError:
            expected = None
        try:
            seen = model(x)
        except InputError:
            refused += expected is not None
            continue
        assert expected is not None, f"answers what stock refuses: {x.min()} to {x.max()}"
        assert seen.shape == expected.shape
        where = f"{x.shape} from {x.min()} to {x.max()}"
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(seen, expected, where)
        else:
            finite = expected[np.isfinite(expected)]
            largest = float(np.abs(finite).max(initial=0))
            np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=2e-4 * largest, err_msg=where)
        equal += 1
    return equal, refused


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_answers_everything_as_stock_does_or_refuses(name: str, tmp_path: Path) -> None:
    spec, function = TAKEN[name]
    stock = saved(tmp_path, spec, function)
    path = pack(tmp_path)
    with glowplug.load(path) as model:
        equal, refused = attack(model, stock, spec)
    assert equal > refused
    largest = read_manifest(path).litert.largest
    assert largest is None or largest >= 1e12


@pytest.mark.parametrize("name", LEFT)
def test_what_answers_otherwise_somewhere_is_left_to_native(name: str, tmp_path: Path) -> None:
    spec, function = LEFT[name]
    saved(tmp_path, spec, function)
    with pytest.raises((OutputMismatchError, UnsupportedModelError)) as caught:
        pack(tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "m.glow").exists()


@pytest.mark.parametrize("name", HIDDEN)
def test_what_no_compared_call_shows_is_not_left_to_litert(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever LiteRT is a candidate at all, it wins here."""
    monkeypatch.setattr(auto, "_measure", lambda *_: [Figures("native", 9, 9), Figures("litert", 1, 1)])
    specs, function = HIDDEN[name]
    module = tf.Module()
    module.f = tf.function(lambda *inputs: {"y": function(*inputs)}, input_signature=specs)
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.f})
    with new_directory(tmp_path / "m.glow") as unfinished:
        Job(Order(unfinished, tmp_path / "model", prefer="start"), lambda stage: None).run()
    manifest = read_manifest(tmp_path / "m.glow")
    assert manifest.engine == "native"
    assert "not known to compute" in manifest.measured["engines"]["litert"]["failed"]


@pytest.mark.parametrize(
    "normalise",
    [
        TAKEN["layer normalisation"][1],
        lambda x: tf.math.l2_normalize(x, 1),
        keras.layers.LayerNormalization(center=False, scale=False),
        keras.ops.rms_normalization,
        keras.layers.GroupNormalization(2, center=False, scale=False),
    ],
)
def test_roots_that_are_kept_from_zero_are_left_to_litert(
    normalise: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "_measure", lambda *_: [Figures("native", 9, 9), Figures("litert", 1, 1)])
    saved(tmp_path, FLOATS, normalise)
    with new_directory(tmp_path / "m.glow") as unfinished:
        Job(Order(unfinished, tmp_path / "model", prefer="start"), lambda stage: None).run()
    assert read_manifest(tmp_path / "m.glow").engine == "litert"


@pytest.mark.parametrize("name", EXPONENTIALS)
def test_exponentials_that_stay_small_are_left_to_litert(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "_measure", lambda *_: [Figures("native", 9, 9), Figures("litert", 1, 1)])
    stock = saved(tmp_path, FLOATS, EXPONENTIALS[name])
    with new_directory(tmp_path / "m.glow") as unfinished:
        Job(Order(unfinished, tmp_path / "model", prefer="start"), lambda stage: None).run()
    manifest = read_manifest(tmp_path / "m.glow")
    assert manifest.engine == "litert", manifest.measured
    with glowplug.load(tmp_path / "m.glow") as model:
        equal, refused = attack(model, stock, FLOATS)
    assert equal > refused


def test_roots_and_logarithms_refuse_what_comes_near_the_largest_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteRT's root of 1.4e38 is 1.8e19, and no call that is compared shows it here."""
    monkeypatch.setattr(auto, "_measure", lambda *_: [Figures("native", 9, 9), Figures("litert", 1, 1)])
    module = tf.Module()
    module.f = tf.function(
        lambda number, x: {"y": behind(lambda x: tf.sqrt(tf.reduce_sum(x * x, -1, keepdims=True)) + x)(number, x)},
        input_signature=[NUMBER, FLOATS],
    )
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.f})
    with new_directory(tmp_path / "m.glow") as unfinished:
        Job(Order(unfinished, tmp_path / "model", prefer="start"), lambda stage: None).run()
    number = np.full(3, 777, np.int32)
    with glowplug.load(tmp_path / "m.glow") as model:
        assert model.engine == "litert"
        for x in (np.full((3, 8), 2.5, np.float32), np.full((3, 8), 1e14, np.float32)):
            np.testing.assert_allclose(model(number=number, x=x), module.f(number, x)["y"], rtol=1e-5)
        with pytest.raises(InputError, match="beyond"):
            model(number=number, x=np.full((3, 8), 4.2e18, np.float32))


def test_no_number_is_refused_where_no_compared_call_shows_what_becomes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteRT's maximum keeps NaN only where it comes first, and here it counts for one number alone."""
    monkeypatch.setattr(auto, "_measure", lambda *_: [Figures("native", 9, 9), Figures("litert", 1, 1)])
    module = tf.Module()
    module.f = tf.function(
        lambda number, x: {"y": behind(lambda x: tf.maximum(x, x[:, ::-1]))(number, x)},
        input_signature=[NUMBER, FLOATS],
    )
    tf.saved_model.save(module, str(tmp_path / "model"), {"serving_default": module.f})
    with new_directory(tmp_path / "m.glow") as unfinished:
        Job(Order(unfinished, tmp_path / "model", prefer="start"), lambda stage: None).run()
    number, x = np.full(3, 777, np.int32), np.ones((3, 8), np.float32)
    with glowplug.load(tmp_path / "m.glow") as model:
        assert model.engine == "litert"
        np.testing.assert_array_equal(model(number=number, x=x), module.f(number, x)["y"])
        x[:, 0] = np.nan
        with pytest.raises(InputError, match="NaN"):
            model(number=number, x=x)


def test_rows_without_elements_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    """Stock TensorFlow refuses them here, too. LiteRT would answer from memory, and give its usual kernels up."""
    stock = saved(tmp_path, OPEN, lambda x: x[:, 0] + 1.0)
    with glowplug.load(pack(tmp_path)) as model:
        for rows in (0, 2):
            with pytest.raises(InputError, match="no elements"):
                model(np.zeros((rows, 0), np.float32))
        for x in (np.full((2, 3), np.inf, np.float32), np.zeros((0, 3), np.float32)):
            np.testing.assert_array_equal(model(x), stock(tf.constant(x))["y"].numpy())


def test_tiny_numbers_are_zero_as_in_tensorflow(tmp_path: Path) -> None:
    def count(x: Any) -> Any:
        return tf.reduce_sum(tf.cast(tf.not_equal(x, 0.0), tf.float32), 1) + tf.reduce_sum(tf.sign(x), 1)

    stock = saved(tmp_path, FLOATS, count)
    with glowplug.load(pack(tmp_path)) as model:
        for rows in (1, 2, 500):
            x = np.full((rows, 8), 1e-40, np.float32)
            np.testing.assert_array_equal(model(x), stock(tf.constant(x))["y"].numpy())
