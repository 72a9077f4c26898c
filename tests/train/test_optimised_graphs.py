"""What is traced in every process runs the graph that Grappler made of it in an earlier one, and nobody can tell."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def long(x: Any) -> Any:
    """Enough operations to be worth a file."""
    import tensorflow as tf

    for number in range(80):
        x = tf.sin(x) * 1.01 + float(number)
    return x


def plain() -> Callable[[Any], Any]:
    return lambda x: {"sum": long(x), "parts": (x, [x + 1.0])}


def with_a_variable() -> Callable[[Any], Any]:
    import tensorflow as tf

    state = tf.Variable([1.0, 2.0])

    def step(x: Any) -> Any:
        state.assign_add(long(x))
        return state.read_value()

    return step


def with_seeded_draws() -> Callable[[Any], Any]:
    import tensorflow as tf

    tf.random.set_seed(5)
    return lambda x: long(x) + tf.random.normal([2]) + tf.random.stateless_uniform([2], [1, 2])


def with_a_generator() -> Callable[[Any], Any]:
    import tensorflow as tf

    generator = tf.random.Generator.from_seed(3)
    return lambda x: long(x) + generator.normal([2])


def with_a_table() -> Callable[[Any], Any]:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1]), tf.constant([5.0, 7.0])), -1.0
    )
    return lambda x: long(x) + table.lookup(tf.cast(x, tf.int32))


def with_a_call_back() -> Callable[[Any], Any]:
    import tensorflow as tf

    calls: list[int] = []

    def count(value: Any) -> Any:
        calls.append(1)
        return value + float(len(calls))

    return lambda x: tf.numpy_function(count, [long(x)], tf.float32)


def with_loops_and_branches() -> Callable[[Any], Any]:
    import tensorflow as tf

    def step(x: Any) -> Any:
        value = long(x)
        for _ in tf.range(3):
            value = tf.cond(tf.reduce_sum(value) > 0.0, lambda v=value: v * 0.5, lambda v=value: long(v))
        return value

    return step


def with_an_inner_function() -> Callable[[Any], Any]:
    import tensorflow as tf

    inner = tf.function(long)
    return lambda x: inner(x) + inner(x * 2.0)


def without_results() -> Callable[[Any], Any]:
    import tensorflow as tf

    state = tf.Variable([0.0, 0.0])

    def step(x: Any) -> None:
        state.assign(long(x))

    step.state = state  # type: ignore[attr-defined]
    return step


FOUND = [plain, with_a_variable, with_seeded_draws, with_a_generator, with_a_table]
FOUND += [with_loops_and_branches, with_an_inner_function, without_results]


def results(make: Callable[[], Callable[[Any], Any]]) -> list[Any]:
    """Trace a function anew, call it three times, and return what it gave and left in its variable."""
    import tensorflow as tf

    function = make()
    traced = tf.function(function)
    given = [traced(tf.constant([1.0, x])) for x in (0.0, 1.0, 2.0)]
    found = [each if each is None else tf.nest.map_structure(lambda t: t.numpy().tolist(), each) for each in given]
    assert traced.experimental_get_tracing_count() == 1
    state = getattr(function, "state", None)
    return [*found, None if state is None else state.numpy().tolist()]


@pytest.mark.parametrize("make", FOUND)
def test_a_graph_is_found_and_gives_the_same(make, tmp_path):
    from glowplug import train

    expected = results(make)
    with train.enabled(tmp_path / "cache"):
        assert results(make) == expected
        assert "optimised" not in train.counts()
        assert results(make) == expected
        assert train.counts()["optimised"] == 1


def test_what_calls_back_into_python_is_optimised_anew(tmp_path):
    from glowplug import train

    expected = results(with_a_call_back)
    with train.enabled(tmp_path / "cache"):
        assert [results(with_a_call_back) for _ in range(2)] == [expected, expected]
        assert "optimised" not in train.counts()


@pytest.mark.parametrize("factor", [1.02, 1.03])
def test_another_graph_is_not_found(factor, tmp_path):
    import tensorflow as tf

    from glowplug import train

    def step(factor):
        return tf.function(lambda x: long(x) * factor)(tf.constant([1.0])).numpy().tolist()

    expected = step(factor)
    with train.enabled(tmp_path / "cache"):
        step(1.0)
        assert step(factor) == expected
        assert "optimised" not in train.counts()


def test_variables_of_another_shape_are_another_graph(tmp_path):
    import tensorflow as tf

    from glowplug import train

    def step(size):
        state = tf.Variable(tf.ones([size]), shape=tf.TensorShape([size]))
        return tf.function(lambda: long(state.read_value()))().numpy().tolist()

    expected = step(3)
    with train.enabled(tmp_path / "cache"):
        step(2)
        assert step(3) == expected
        assert "optimised" not in train.counts()


def test_under_a_tape_and_inside_a_function_the_traced_graph_runs(tmp_path):
    import tensorflow as tf

    from glowplug import train

    def gradient():
        traced, x = tf.function(long), tf.constant([1.0, 2.0])
        traced(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        outer = tf.function(lambda x: traced(x) + 1.0)
        return tape.gradient(y, x).numpy().tolist(), outer(x).numpy().tolist()

    expected = gradient()
    with train.enabled(tmp_path / "cache"):
        assert [gradient(), gradient()] == [expected, expected]
        assert train.counts()["optimised"] > 0


def test_an_error_is_told_as_stock_tells_it(tmp_path):
    import re

    import tensorflow as tf

    from glowplug import train

    def error():
        traced = tf.function(lambda x: tf.debugging.check_numerics(long(x) / x, "not a number"))
        traced(tf.constant([1.0]))
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            traced(tf.constant([0.0]))
        return re.sub(r"<lambda>_\d+", "lambda", str(caught.value))

    expected = error()
    with train.enabled(tmp_path / "cache"):
        assert [error(), error()] == [expected, expected]
        assert train.counts()["optimised"] == 1


def test_options_that_change_later_are_respected(tmp_path):
    import tensorflow as tf

    from glowplug import train

    with train.enabled(tmp_path / "cache"):
        expected = results(plain)
        traced = tf.function(plain())
        assert traced(tf.constant([1.0, 0.0]))["sum"].numpy().tolist() == expected[0]["sum"]
        tf.config.optimizer.set_experimental_options({"constant_folding": False})
        try:
            assert traced(tf.constant([1.0, 1.0]))["sum"].numpy().tolist() == expected[1]["sum"]
        finally:
            tf.config.optimizer.set_experimental_options({"constant_folding": True})


def test_saving_and_concrete_functions_see_the_traced_function(tmp_path):
    import tensorflow as tf

    from glowplug import train

    def saved(name):
        module = tf.Module()
        module.step = tf.function(long, input_signature=[tf.TensorSpec([2])])
        value = module.step(tf.constant([1.0, 2.0])).numpy().tolist()
        concrete = module.step.get_concrete_function()
        tf.saved_model.save(module, str(tmp_path / name))
        loaded = tf.saved_model.load(str(tmp_path / name))
        again = loaded.step(tf.constant([1.0, 2.0])).numpy().tolist()
        return value, again, concrete(tf.constant([1.0, 2.0])).numpy().tolist(), len(concrete.graph.get_operations())

    expected = saved("stock")
    with train.enabled(tmp_path / "cache"):
        assert [saved("first"), saved("second")] == [expected, expected]
        assert train.counts()["optimised"] > 0


def test_a_function_of_the_users_own_is_named_with_the_remedy(tmp_path, caplog):
    import tensorflow as tf

    from glowplug import train

    def my_step(x):
        return long(x)

    with train.enabled(tmp_path / "cache"), caplog.at_level(logging.WARNING, "glowplug.train"):
        tf.function(my_step)(tf.constant([1.0]))
        tf.function(lambda x: x + 1.0)(tf.constant([1.0]))
    said = [record.message for record in caplog.records]
    assert len(said) == 1
    assert "the function my_step is traced in every run" in said[0]
    assert "@glowplug.train.function" in said[0]


def test_switched_off_nothing_of_it_is_left(tmp_path):
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

    from glowplug import train

    stock = ConcreteFunction._call_flat
    with train.enabled(tmp_path / "cache"):
        assert ConcreteFunction._call_flat is not stock
    assert ConcreteFunction._call_flat is stock


PROGRAM = """
import json, sys, time
import keras, numpy as np, tensorflow as tf
if sys.argv[1:]:
    from glowplug import train
    train.enable(sys.argv[1])
class Odd(keras.layers.Layer):
    def call(self, x):
        return x * (1.5 if time.time() > 0 else 2.0)
keras.utils.set_random_seed(1)
x = inputs = keras.Input((6,))
for _ in range(3):
    x = Odd()(keras.layers.BatchNormalization()(keras.layers.Dense(8, activation="gelu")(keras.layers.Dropout(0.1)(x))))
model = keras.Model(inputs, keras.layers.Dense(2)(x))
model.compile("adam", "mse")
data = np.linspace(-1, 1, 48).reshape(8, 6).astype("float32"), np.ones((8, 2), "float32")
losses = model.fit(*data, batch_size=4, epochs=2, verbose=0).history["loss"]
losses += [float(model.evaluate(*data, verbose=0)), float(model.train_on_batch(*data))]
print(json.dumps([[each.hex() for each in losses], train.counts() if sys.argv[1:] else {}]))
"""


def test_a_refused_step_of_keras_in_another_process(run_script, tmp_path):
    stock, _ = run_script(PROGRAM)
    first, counts = run_script(PROGRAM, str(tmp_path / "cache"))
    assert counts["refused"] == 3
    assert "optimised" not in counts
    second, counts = run_script(PROGRAM, str(tmp_path / "cache"), PYTHONHASHSEED="3")
    assert counts["optimised"] == 2  # the step of `evaluate` is too small
    assert first == second == stock
