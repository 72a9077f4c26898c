"""Pitfalls of state that no attribute of a model shows: registries, remembered traces, settings of libraries, names,
files, vocabularies, and what callbacks do between steps.
"""

from __future__ import annotations

import abc
import collections.abc
import colorsys
import json
import logging
import types
import typing
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train.pitfalls import FOLDER, different, layer_of, replaced, same, unstable, with_layer
from tests.train.pitfalls_python import attribute, scaled
from tests.train.pitfalls_stock import fitted

LOGGER = logging.getLogger("pitfalls")


def multiplier(factor: float) -> Any:
    """Return one of many functions with the same code."""
    return lambda x: x * factor


def two_multipliers() -> list[Any]:
    return [multiplier(2.0), multiplier(3.0)]


@different
def a_registered_function_with_the_code_of_another(v: int) -> Any:
    kept = two_multipliers()
    keras.saving.get_custom_objects()["pitfall"] = kept[v]
    try:
        return with_layer(lambda: layer_of(lambda self, x: keras.saving.get_registered_object("pitfall")(x), kept=kept))
    finally:
        keras.saving.get_custom_objects().clear()


@different
def a_dispatcher_with_the_code_of_another(v: int) -> Any:
    class Wrapped(tf.experimental.ExtensionType):  # type: ignore[misc]
        value: tf.Tensor

    def handler_of(factor: float) -> Any:
        return lambda function, x: function(x.value) * factor

    kept = [handler_of(2.0), handler_of(3.0)]
    tf.experimental.dispatch_for_unary_elementwise_apis(Wrapped)(kept[v])
    return with_layer(lambda: layer_of(lambda self, x: tf.math.tanh(Wrapped(x)), kept=kept))


@different
def a_dispatcher_for_one_function(v: int) -> Any:
    class Wrapped(tf.experimental.ExtensionType):  # type: ignore[misc]
        value: tf.Tensor

    def handler_of(factor: float) -> Any:
        def handler(x: Any, name: Any = None) -> Any:
            return x.value * factor

        handler.__annotations__ = {"x": Wrapped}
        return handler

    kept = [handler_of(2.0), handler_of(3.0)]
    tf.experimental.dispatch_for_api(tf.math.tanh)(kept[v])
    return with_layer(lambda: layer_of(lambda self, x: tf.math.tanh(Wrapped(x)), kept=kept))


@different
def a_class_registered_with_a_tree(v: int) -> Any:
    import optree

    class Pair:
        def __init__(self, value: Any) -> None:
            self.value = value

    def flatten_of(factor: float) -> Any:
        return lambda pair: ((pair.value * factor,), None, None)

    kept = [flatten_of(2.0), flatten_of(3.0)]
    optree.register_pytree_node(Pair, kept[v], lambda _, parts: Pair(parts[0]), namespace="keras")
    return with_layer(lambda: layer_of(lambda self, x: keras.tree.flatten(Pair(x))[0], kept=kept))


@different
def a_virtual_subclass(v: int) -> Any:
    class Large(abc.ABC):  # noqa: B024
        pass

    class Holder:
        pass

    if v:
        Large.register(Holder)
    return attribute(Holder(), lambda value: 3.0 if isinstance(value, Large) else 2.0)


@different
def a_virtual_subclass_of_a_stock_class(v: int) -> Any:
    class Holder:
        pass

    if v:
        collections.abc.Sequence.register(Holder)
    return attribute(Holder(), lambda value: 3.0 if isinstance(value, collections.abc.Sequence) else 2.0)


@different
def a_function_that_numpy_calls_on_errors(v: int) -> Any:
    def raising(kind: str, flag: int) -> None:
        raise FloatingPointError(kind)

    def silent(kind: str, flag: int) -> None:
        pass

    def factor(kept: Any) -> float:
        try:
            np.float64(1.0) / np.float64(0.0)
        except FloatingPointError:
            return 3.0
        return 2.0

    before = np.seterr(divide="call"), np.seterrcall(raising if v else silent)
    try:
        return attribute([raising, silent], factor)
    finally:
        np.seterr(**before[0])
        np.seterrcall(before[1])


@different
def a_level_of_a_logger(v: int) -> Any:
    LOGGER.setLevel(logging.DEBUG if v else logging.ERROR)
    return scaled(lambda: 3.0 if LOGGER.level < logging.INFO else 2.0)


@different
def a_logger_that_is_asked(v: int) -> Any:
    LOGGER.setLevel(logging.DEBUG if v else logging.ERROR)
    return scaled(lambda: 3.0 if LOGGER.isEnabledFor(logging.INFO) else 2.0)


@different
def a_logger_found_by_its_name(v: int) -> Any:
    LOGGER.setLevel(logging.DEBUG if v else logging.ERROR)
    return scaled(lambda: float(logging.getLogger("pitfalls").level + 1))


@different
def the_verbosity_of_tensorflow(v: int) -> Any:
    tf.get_logger().setLevel("DEBUG" if v else "ERROR")
    return scaled(lambda: float(tf.get_logger().level + 1))


@different
def warnings_that_are_caught(v: int) -> Any:
    def factor() -> float:
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn("pitfall", stacklevel=1)
        return 2.0 + len(caught)

    with warnings.catch_warnings():
        warnings.simplefilter("always" if v else "ignore")
        return scaled(factor)


@different
def warnings_that_are_errors(v: int) -> Any:
    def factor() -> float:
        try:
            warnings.warn("pitfall", stacklevel=1)
        except UserWarning:
            return 3.0
        return 2.0

    with warnings.catch_warnings():
        warnings.filterwarnings("error" if v else "ignore", message="pitfall")
        return scaled(factor)


@different
def a_constant_of_the_standard_library(v: int) -> Any:
    with replaced(colorsys, "ONE_THIRD", 0.4 if v else colorsys.ONE_THIRD):
        return scaled(lambda: 1.0 + colorsys.hls_to_rgb(0.2, 0.5, 0.5)[0])


@different
def a_class_in_a_part_of_the_standard_library(v: int) -> Any:
    with replaced(json.JSONEncoder, "item_separator", ",      " if v else ", "):
        return scaled(lambda: float(len(json.JSONEncoder().encode([1, 2, 3]))))


@different
def an_attribute_of_a_stock_function(v: int) -> Any:
    tf.nn.relu.pitfall = 2.0 + v
    return scaled(lambda: tf.nn.relu.pitfall)


@different
def an_attribute_of_a_stock_dtype(v: int) -> Any:
    tf.float32.pitfall = 2.0 + v
    return scaled(lambda: tf.float32.pitfall)


@different
def an_attribute_of_a_tensor(v: int) -> Any:
    tensor = tf.constant([1.0])
    tensor.pitfall = 2.0 + v
    return attribute(tensor, lambda value: value.pitfall)


@different
def an_annotation_through_a_signature(v: int) -> Any:
    import inspect

    def helper(x: Any) -> Any:
        return x

    helper.__annotations__["x"] = 2.0 + v
    return attribute(helper, lambda value: inspect.signature(value).parameters["x"].annotation)


@different
def an_annotation_through_typing(v: int) -> Any:
    class Holder:
        value: Any

    Holder.__annotations__["value"] = int if v else float
    return attribute(Holder(), lambda value: 3.0 if typing.get_type_hints(type(value))["value"] is int else 2.0)


@different
def a_documentation_found_by_its_name(v: int) -> Any:
    def helper() -> None:
        pass

    helper.__doc__ = "a" * (2 + v)
    return attribute(helper, lambda value: float(len(getattr(value, "__doc__"))))  # noqa: B009


@different
def the_name_of_a_function(v: int) -> Any:
    def helper() -> None:
        pass

    helper.__name__ = "a" * (2 + v)
    return attribute(helper, lambda value: float(len(value.__name__)))


@different
def the_name_of_a_class(v: int) -> Any:
    class Holder:
        pass

    Holder.__name__ = "a" * (2 + v)
    return attribute(Holder(), lambda value: float(len(type(value).__name__)))


@different
def a_name_in_a_text(v: int) -> Any:
    def make() -> Any:
        layer = layer_of(lambda self, x: x * float(len(f"{self}")))
        layer.name = "a" * (2 + v)
        return layer

    return with_layer(make)


@different
def a_name_in_a_text_with_percent(v: int) -> Any:
    def make() -> Any:
        layer = layer_of(lambda self, x: x * float(len("%s" % self)))  # noqa: UP031
        layer.name = "a" * (2 + v)
        return layer

    return with_layer(make)


@different
def a_nested_function_that_was_called_before(v: int) -> Any:
    holder = types.SimpleNamespace(factor=2.0)
    function = tf.function(lambda x: x * holder.factor)
    if v:
        function(tf.zeros((10, 5)))  # as large as a batch: the step uses this trace
    holder.factor = 3.0
    return with_layer(lambda: layer_of(lambda self, x: function(x)))


@different
def a_method_that_was_called_before(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        factor = 2.0

        @tf.function
        def scaled(self, x: Any) -> Any:
            return x * self.factor

        def call(self, x: Any) -> Any:
            return self.scaled(x)

    def make() -> Any:
        layer = Mine()
        if v:
            layer.scaled(tf.zeros((10, 5)))
        layer.factor = 3.0
        return layer

    return with_layer(make)


@different
def a_nested_function_traced_when_the_model_was_built(v: int) -> Any:
    holder = types.SimpleNamespace(factor=2.0 + v)
    function = tf.function(lambda x: x * holder.factor)

    def change(layer: Any) -> None:
        holder.factor = 5.0  # too late: the trace is there

    return with_layer(lambda: layer_of(lambda self, x: function(x)), change)


@different
def a_trace_of_ones_own(v: int) -> Any:
    factor = 2.0 + v
    spec = tf.TensorSpec((10, 5), tf.float32)
    concrete = tf.function(lambda x: x * factor).get_concrete_function(spec)
    return with_layer(lambda: layer_of(lambda self, x: concrete(x), kept=concrete))


@different
def a_saved_model_that_is_loaded(v: int) -> Any:
    factor = 2.0 + v
    module = tf.Module()
    module.scale = tf.function(lambda x: x * factor, input_signature=[tf.TensorSpec((None, 5), tf.float32)])
    tf.saved_model.save(module, str(FOLDER[0] / "saved"))
    loaded = tf.saved_model.load(str(FOLDER[0] / "saved"))
    return with_layer(lambda: layer_of(lambda self, x: loaded.scale(x), kept=loaded))


@different
def a_normalization_of_other_data(v: int) -> Any:
    layer = layers.Normalization()
    layer.adapt(np.arange(30, dtype="float32").reshape(6, 5) * (1.0 + v))
    return with_layer(lambda: layer)


@different
def boundaries_of_other_data(v: int) -> Any:
    layer = layers.Discretization(num_bins=3, epsilon=0.01)
    layer.adapt(np.linspace(0, 1, 50, dtype="float32") ** (1 + 2 * v))
    keras.utils.set_random_seed(1)
    return fitted(keras.Sequential([keras.Input((4,)), layer, layers.Rescaling(1.0), layers.Dense(1)]))


@different
def a_vocabulary_in_a_file(v: int) -> Any:
    file = FOLDER[0] / "words.txt"
    file.write_text("red\ngreen\nblue\n" if v else "green\nblue\nred\n")
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((1,), dtype="string"),
            layers.StringLookup(vocabulary=str(file), output_mode="one_hot"),
            layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    words = tf.constant([["red"], ["green"], ["blue"], ["red"]])
    return model.fit(words, np.arange(4.0), verbose=0, shuffle=False).history["loss"]


@different
def weights_of_words(v: int) -> Any:
    layer = layers.TextVectorization(output_mode="tf_idf")
    layer.set_vocabulary(["red", "green"], idf_weights=[0.5, 1.0 + v])
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((), dtype="string"), layer, layers.Dense(1)])
    model.compile("sgd", "mse")
    words = tf.constant(["red green", "green", "blue red", "red"])
    return model.fit(words, np.arange(4.0), verbose=0, shuffle=False).history["loss"]


@different
def an_epsilon_of_the_older_keras(v: int) -> Any:
    from tensorflow.python.keras import backend_config
    from tensorflow.python.keras import losses as older

    before = backend_config.epsilon()
    backend_config.set_epsilon(0.5 if v else before)
    try:
        return scaled(lambda: older.mean_absolute_percentage_error([[0.0, 1.0]], [[2.0, 3.0]]))
    finally:
        backend_config.set_epsilon(before)


class Changes(keras.callbacks.Callback):  # type: ignore[misc]
    """Changes a layer in the middle of training, and makes the step anew."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            self.model.layers[-1].factor = self.factor
            self.model.make_train_function(force=True)


@different
def a_step_made_anew_by_a_callback(v: int) -> Any:
    keras.utils.set_random_seed(1)
    last = layer_of(lambda self, x: x * self.factor, factor=1.0)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1), last])
    return fitted(model, epochs=3, callbacks=[Changes(2.0 + v)])


@different
def an_optimizer_with_a_counter_of_its_own(v: int) -> Any:
    class Mine(keras.optimizers.SGD):  # type: ignore[misc]
        rounds = 0

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            super().update_step(gradient * (1.0 + self.rounds), variable, learning_rate)

    optimizer = Mine(0.1)
    optimizer.rounds = v
    keras.utils.set_random_seed(1)
    return fitted(keras.Sequential([keras.Input((4,)), layers.Dense(1)]), optimizer=optimizer, epochs=2)


@different
def a_call_in_another_mode(v: int) -> Any:
    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1)
            self.flag = bool(v)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.dense(layers.GaussianNoise(0.0)(x, training=training)) * (
                3.0 if training and self.flag else 2.0
            )

    keras.utils.set_random_seed(1)
    return fitted(Mine())


@different
def a_mask_of_another_layer(v: int) -> Any:
    class Masking(layers.Layer):  # type: ignore[misc]
        supports_masking = True

        def call(self, x: Any) -> Any:
            return x

        def compute_mask(self, x: Any, mask: Any = None) -> Any:
            return ops.any(ops.greater(x, self.limit), axis=-1)

    layer = Masking()
    layer.limit = 0.5 + 0.3 * v
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((2, 2)), layer, layers.LSTM(3), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(1).random((8, 2, 2), "float32")
    return model.fit(x, x[:, 0, :1], verbose=0, shuffle=False).history["loss"]


@different
def a_stock_method_patched_after_training(v: int) -> Any:
    """The first step is traced, then a method is replaced, then a new model is trained."""

    def call(self: Any, inputs: Any, training: Any = None) -> Any:
        return inputs * 3.0

    first = with_layer(lambda: layers.Activation("tanh"))
    with replaced(layers.Activation, "call", call if v else layers.Activation.call):
        return [first, with_layer(lambda: layers.Activation("tanh"))]


@different
def a_value_that_takes_the_place_of_another(v: int) -> Any:
    """Three values one after the other: the third may lie where the first has been."""
    from keras.src.backend.tensorflow import nn

    results = []
    for factor in (0.1 + v, 0.2 + v, 0.3 + v):
        nn.pitfall = float(str(factor))
        nn.pitfall = float(str(factor + 0.5))
        results.append(with_layer(lambda: layer_of(lambda self, x: x * nn.pitfall)))
    return results


@unstable
def a_summary_that_is_written() -> Any:
    writer = tf.summary.create_file_writer(str(FOLDER[0] / "logs"))

    def call(self: Any, x: Any) -> Any:
        with writer.as_default(step=0):
            tf.summary.write("mean", tf.reduce_mean(x))
        return x * 2.0

    return with_layer(lambda: layer_of(call))


@unstable
def the_order_of_a_set_of_objects() -> Any:
    class Holder:
        def __init__(self, factor: float) -> None:
            self.factor = factor

    pair = [Holder(2.0), Holder(3.0)]
    return attribute(pair, lambda value: list(set(value))[0].factor)  # noqa: RUF015


@unstable
def a_strategy_around_the_model() -> Any:
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        return with_layer(lambda: layers.Activation("relu"))


@same
def a_set_that_is_only_asked() -> Any:
    kinds = frozenset({"scale", "shift"})
    return with_layer(lambda: layer_of(lambda self, x: x * (2.0 if "scale" in {"scale", "clip"} else 1.0), kinds=kinds))


@same
def a_nested_function_for_two_sizes_of_batches() -> Any:
    function = tf.function(lambda x: x * 2.0)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1), layer_of(lambda self, x: function(x))])
    model.compile("sgd", "mse")
    x = np.random.default_rng(1).random((7, 4), "float32")
    return model.fit(x, x[:, :1], batch_size=4, verbose=0, shuffle=False).history["loss"]


@same
def a_logger_that_is_told() -> Any:
    LOGGER.setLevel(logging.ERROR)

    def call(self: Any, x: Any) -> Any:
        LOGGER.info("pitfall %s", x.shape)
        return x * 2.0

    return with_layer(lambda: layer_of(call))
