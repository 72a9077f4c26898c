"""Pitfalls of TensorFlow, Keras and numpy: parts of theirs replaced or set, registries, scopes, models that change."""

from __future__ import annotations

import functools
import types
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train import models
from tests.train.pitfalls import different, layer_of, replaced, same, trained, unstable, with_layer


def activated(name: str = "relu") -> Any:
    """Train a model whose hidden layer has a stock activation."""
    return with_layer(lambda: layers.Activation(name))


def fitted(model: Any, loss: Any = "mse", optimizer: Any = "sgd", **options: Any) -> Any:
    model.compile(optimizer, loss)
    x = np.random.default_rng(1).random((8, 4), "float32")
    return model.fit(x, x[:, :1], verbose=0, shuffle=False, **options).history["loss"]


@different
def a_keras_function_replaced_by_one_of_the_same_name(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    def relu(x: Any) -> Any:
        return tf.nn.relu6(x * 4.0)

    relu.__module__, relu.__qualname__ = nn.__name__, "relu"
    with replaced(nn, "relu", relu if v else nn.relu):
        return activated()


@different
def the_code_of_a_keras_function_exchanged(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    stock = nn.silu.__code__
    nn.silu.__code__ = nn.softplus.__code__ if v else stock
    try:
        return activated("silu")
    finally:
        nn.silu.__code__ = stock


@different
def a_default_of_a_keras_function(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    stock = nn.leaky_relu.__defaults__
    nn.leaky_relu.__defaults__ = (0.2 + 0.5 * v,)
    try:
        return with_layer(lambda: layer_of(lambda self, x: nn.leaky_relu(x)))
    finally:
        nn.leaky_relu.__defaults__ = stock


@different
def a_default_of_a_tensorflow_function(v: int) -> Any:
    from tensorflow.python.ops import nn_ops

    inner = nn_ops.leaky_relu
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    stock = inner.__defaults__
    inner.__defaults__ = (0.2 + 0.5 * v, *stock[1:])
    try:
        return with_layer(lambda: layer_of(lambda self, x: tf.nn.leaky_relu(x)))
    finally:
        inner.__defaults__ = stock


@different
def a_constant_in_the_code_of_keras(v: int) -> Any:
    from keras.src import activations

    function = activations.hard_silu
    from keras.src.backend.tensorflow import nn

    function = nn.hard_sigmoid
    stock = function.__code__
    constants = tuple(4.0 if each == 3.0 and v else each for each in stock.co_consts)
    function.__code__ = stock.replace(co_consts=constants)
    try:
        return activated("hard_sigmoid")
    finally:
        function.__code__ = stock


@different
def a_function_of_tensorflow_replaced_in_its_interface(v: int) -> Any:
    with replaced(tf.nn, "relu", tf.nn.softplus if v else tf.nn.relu):
        return activated()


@different
def a_function_of_tensorflow_replaced_in_its_module(v: int) -> Any:
    from tensorflow.python.ops import math_ops

    with replaced(math_ops, "tanh", math_ops.sin if v else math_ops.tanh):
        return with_layer(lambda: layer_of(lambda self, x: tf.math.tanh(x) + math_ops.tanh(x)))


@different
def a_module_of_keras_exchanged(v: int) -> Any:
    from keras.src.activations import activations as operations
    from keras.src.backend.tensorflow import nn

    fake = types.SimpleNamespace(**vars(operations.backend))
    fake.nn = types.SimpleNamespace(**{**vars(nn), "relu": nn.softplus if v else nn.silu})
    with replaced(operations, "backend", fake):
        return activated()


@different
def a_method_of_a_base_class_of_keras(v: int) -> Any:
    stock = layers.Layer.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = stock(self, *args, **kwargs)
        return result * 2.0 if v and type(self).__name__ == "Activation" else result

    with replaced(layers.Layer, "__call__", call):
        return activated()


@different
def a_property_of_a_class_of_keras(v: int) -> Any:
    with replaced(layers.Dropout, "glowplug", 1) if hasattr(layers.Dropout, "glowplug") else _nothing():
        layers.LeakyReLU.negative = property(lambda self: 0.1 + v)
        try:
            return with_layer(lambda: layer_of(lambda self, x: x * layers.LeakyReLU().negative))
        finally:
            del layers.LeakyReLU.negative


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


@different
def a_method_of_an_optimizer(v: int) -> Any:
    stock = keras.optimizers.SGD.update_step

    def update_step(self: Any, gradient: Any, variable: Any, learning_rate: Any) -> Any:
        return stock(self, gradient * (1.0 + v), variable, learning_rate)

    with replaced(keras.optimizers.SGD, "update_step", update_step):
        return models.trained(models.small(optimizer=lambda: keras.optimizers.SGD(0.5)), batch=4)


@different
def a_method_of_an_optimizer_exchanged_for_a_stock_one(v: int) -> Any:
    kind = keras.optimizers.SGD
    with replaced(kind, "update_step", keras.optimizers.Lion.update_step if v else kind.update_step):
        optimizer = kind(0.5, momentum=0.9)
        optimizer.beta_1 = optimizer.beta_2 = 0.5
        if v:
            optimizer._momentums = optimizer.momentums = []
            stock_build = kind.build

            def build(self: Any, variables: Any) -> None:
                stock_build(self, variables)
                self._momentums = self.momentums

            with replaced(kind, "build", build):
                return models.trained(models.small(optimizer=lambda: optimizer), batch=4)
        return models.trained(models.small(optimizer=lambda: optimizer), batch=4)


@different
def a_function_of_numpy_replaced(v: int) -> Any:
    with replaced(np, "sqrt", np.exp if v else np.sqrt):
        return with_layer(lambda: layer_of(lambda self, x: x * float(np.sqrt(2.0))))


@different
def a_value_put_into_a_module_of_keras(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    nn.glowplug_pitfall = 2.0 + v
    try:
        return with_layer(lambda: layer_of(lambda self, x: x * nn.glowplug_pitfall))
    finally:
        del nn.glowplug_pitfall


@different
def a_value_of_a_module_of_keras(v: int) -> Any:
    from keras.src.layers.normalization import batch_normalization

    space = vars(batch_normalization)
    before = space.get("ops")
    fake = types.SimpleNamespace(**{**vars(ops), "cast": ops.cast})
    space["ops"] = fake if v else before
    try:
        return [v, models.trained(models.small(), batch=10, epochs=1)]
    finally:
        space["ops"] = before


@different
def a_gradient_that_was_registered(v: int) -> Any:
    from tensorflow.python.framework import ops as framework

    registry = framework.gradient_registry._registry
    stock = registry["Tanh"]
    registry["Tanh"] = {**stock, "type": lambda op, gradient: stock["type"](op, gradient) * (1.0 + v)}
    layer = layer_of(lambda self, x: tf.tanh(x))
    return models.trained(models.small(custom=lambda: layer, optimizer=lambda: keras.optimizers.SGD(0.5)), batch=4)


@different
def an_object_registered_with_keras(v: int) -> Any:
    def first(x: Any) -> Any:
        return x * 2.0

    def second(x: Any) -> Any:
        return x * 3.0

    keras.saving.get_custom_objects()["pitfall_a"] = second if v else first
    keras.saving.get_custom_objects()["pitfall_b"] = first if v else second
    try:
        return with_layer(
            lambda: layer_of(lambda self, x: keras.saving.get_registered_object("pitfall_a")(x), kept=[first, second])
        )
    finally:
        keras.saving.get_custom_objects().clear()


@different
def a_scope_of_custom_objects(v: int) -> Any:
    with keras.saving.CustomObjectScope({"pitfall": (lambda x: x * 3.0) if v else (lambda x: x * 2.0)}):
        return with_layer(lambda: layer_of(lambda self, x: keras.saving.get_registered_object("pitfall")(x)))


@different
def a_dtype_policy(v: int) -> Any:
    keras.config.set_dtype_policy("mixed_bfloat16" if v else "float32")
    try:
        return with_layer(lambda: layers.Dense(5))
    finally:
        keras.config.set_dtype_policy("float32")


@different
def the_policy_of_one_layer(v: int) -> Any:
    return with_layer(lambda: layers.Dense(5, dtype="mixed_bfloat16" if v else "float32"))


@different
def a_subclassed_dtype_policy(v: int) -> Any:
    class Mine(keras.DTypePolicy):  # type: ignore[misc]
        @property
        def compute_dtype(self) -> str:
            return "bfloat16" if v else "float32"

    return with_layer(lambda: layers.Dense(5, dtype=Mine("float32")))


@different
def the_behaviour_of_numpy(v: int) -> Any:
    if v:
        tf.experimental.numpy.experimental_enable_numpy_behavior()
    layer = layer_of(lambda self, x: x * tf.cast(tf.constant(7) / 2, "float32") + tf.constant(1.5)[...])
    return [v, with_layer(lambda: layer)]


@different
def an_optimizer_option_of_tensorflow(v: int) -> Any:
    tf.config.optimizer.set_experimental_options({"constant_folding": not v})
    return [v, activated()]


@different
def a_device(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return x * float(len(list(tf.compat.v1.get_default_graph()._device_function_stack.peek_objs())) + 1)

    with tf.device("/CPU:0") if v else _nothing():
        return [v, with_layer(lambda: layer_of(call))]


@different
def a_scope_of_names(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return x * float(len(tf.identity(x).name))

    with tf.name_scope("outer") if v else _nothing(), keras.name_scope("another") if v else _nothing():
        return [v, with_layer(lambda: layer_of(call))]


@different
def flash_attention(v: int) -> Any:
    keras.config.enable_flash_attention() if v else keras.config.disable_flash_attention()
    return [v, activated()]


@different
def a_custom_gradient_with_state(v: int) -> Any:
    state = {"factor": 1.0 + v}

    @tf.custom_gradient
    def straight(x: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            return upstream * state["factor"]

        return tf.identity(x), gradient

    layer = layer_of(lambda self, x: straight(x))
    return models.trained(models.small(custom=lambda: layer, optimizer=lambda: keras.optimizers.SGD(0.5)), batch=4)


@different
def a_gradient_stopped(v: int) -> Any:
    layer = layer_of(lambda self, x: ops.stop_gradient(x) if self.stop else x, stop=bool(v))
    return models.trained(models.small(custom=lambda: layer, optimizer=lambda: keras.optimizers.SGD(0.5)), batch=4)


@different
def control_flow_over_a_python_value(v: int) -> Any:
    @tf.function
    def scaled(x: Any, times: int) -> Any:
        for _ in range(times):
            if tf.reduce_sum(x) > -1e9:
                x = x * 1.5
        return x

    return with_layer(lambda: layer_of(lambda self, x: scaled(x, self.times), times=1 + v))


@different
def a_constant_of_tensorflow(v: int) -> Any:
    constant = tf.constant([2.0 + v] * 5)
    return with_layer(lambda: layer_of(lambda self, x: x * constant))


@different
def a_ragged_constant(v: int) -> Any:
    constant = tf.ragged.constant([[2.0 + v], [1.0, 1.0]])
    return with_layer(lambda: layer_of(lambda self, x: x * constant.to_tensor()[0, 0]))


@different
def a_sparse_constant(v: int) -> Any:
    constant = tf.sparse.from_dense([[2.0 + v, 0.0]])
    return with_layer(lambda: layer_of(lambda self, x: x * tf.sparse.reduce_sum(constant)))


@different
def a_variable_exchanged_for_another(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.first = self.add_weight(shape=(), initializer=keras.initializers.Constant(2.0))
            self.second = self.add_weight(shape=(), initializer=keras.initializers.Constant(3.0))
            self.used = self.second if v else self.first

        def call(self, x: Any) -> Any:
            return x * self.used

    return with_layer(Mine)


@different
def an_attribute_of_a_variable(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.weight = self.add_weight(shape=(), initializer="ones")
            self.weight.factor = 2.0 + v

        def call(self, x: Any) -> Any:
            return x * self.weight * self.weight.factor

    return with_layer(Mine)


@different
def the_class_of_a_variable(v: int) -> Any:
    class Mine(keras.Variable):  # type: ignore[misc]
        def __mul__(self, other: Any) -> Any:
            return self.value * other * (1.0 + v)

    class Layer(layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.weight = Mine(2.0)

        def call(self, x: Any) -> Any:
            return self.weight * x

    return with_layer(Layer)


@different
def the_constraint_of_a_variable(v: int) -> Any:
    def limited(weight: Any) -> Any:
        return ops.clip(weight, -0.01 * (1 + 5 * v), 0.01 * (1 + 5 * v))

    return [with_layer(lambda: layers.Dense(5, kernel_constraint=limited))]


@different
def a_constraint_put_on_afterwards(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.kernel.constraint = (lambda weight: weight * 0.5) if v else None

    return with_layer(lambda: layers.Dense(5), change)


@different
def a_regularizer_put_on_afterwards(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.kernel.regularizer = keras.regularizers.L2(0.5 + v)

    return with_layer(lambda: layers.Dense(5), change)


@different
def trainable_switched_off(v: int) -> Any:
    model = models.small(optimizer=lambda: keras.optimizers.SGD(0.5))
    model.layers[0].trainable = not v
    return models.trained(model, batch=4)


@different
def trainable_of_a_variable_switched_off(v: int) -> Any:
    model = models.small(optimizer=lambda: keras.optimizers.SGD(0.5))
    model.layers[0].kernel.trainable = not v
    return models.trained(model, batch=4)


@different
def a_layer_added_afterwards(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(4)])
    if v:
        model.add(layers.Activation("tanh"))
    model.add(layers.Dense(1))
    return fitted(model)


@different
def a_branch_for_training(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any, training: Any = None) -> Any:
            return x * (self.factor if training else 1.0)

    def change(layer: Any) -> None:
        layer.factor = 2.0 + v

    return with_layer(Mine, change)


@different
def a_mask(v: int) -> Any:
    keras.utils.set_random_seed(3)
    inputs = keras.Input((4,), dtype="int32")
    x = layers.Embedding(5, 3, mask_zero=bool(v))(inputs)
    model = keras.Model(inputs, layers.Dense(1)(layers.LSTM(2)(x)))
    model.compile("sgd", "mse")
    data = np.random.default_rng(1).integers(0, 5, (8, 4))
    return model.fit(data, data[:, :1].astype("float32"), verbose=0, shuffle=False).history["loss"]


@different
def a_mask_computed_by_ones_own_code(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        supports_masking = True

        def compute_mask(self, x: Any, mask: Any = None) -> Any:
            return x[:, :, 0] > (0.5 if v else 0.1)

        def call(self, x: Any) -> Any:
            return x

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Reshape((4, 1)), Mine(), layers.LSTM(2), layers.Dense(1)])
    return fitted(model)


@different
def names_that_code_reads(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * float(len(self.name))

    return with_layer(lambda: Mine(name="longer" if v else "short"))


@different
def compiled_by_xla_or_not(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=bool(v))
    x = np.ones((8, 4), "float32")
    return [v, model.fit(x, x[:, :1], verbose=0).history["loss"]]


@different
def a_metric_that_counts_in_python(v: int) -> Any:
    class Mine(keras.metrics.Mean):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name="mine")
            self.seen = v

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            self.seen += 1
            return super().update_state(ops.mean(y_pred) * float(self.seen))

    return trained(models.small(metrics=(Mine(),)))


@different
def a_schedule_with_state(v: int) -> Any:
    class Mine(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        rates = (0.1, 0.7)

        def __call__(self, step: Any) -> Any:
            return self.rates[self.index]

    schedule = Mine()
    schedule.index = v
    return models.trained(models.small(optimizer=lambda: keras.optimizers.SGD(schedule)), batch=4)


@different
def a_stock_schedule_changed(v: int) -> Any:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    schedule.decay_rate = 0.5 + 0.4 * v
    return models.trained(models.small(optimizer=lambda: keras.optimizers.SGD(schedule)), batch=4)


@different
def a_loss_changed_in_place(v: int) -> Any:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = models.small(loss=loss)
    loss._fn_kwargs["from_logits"] = not v
    return trained(model)


@different
def weights_of_losses_changed_in_place(v: int) -> Any:
    model = models.small(loss_weights=[1.0])
    trained(model)
    model._compile_loss._user_loss_weights[0] = 1.0 + v
    model._compile_loss._flat_losses[0] = model._compile_loss._flat_losses[0]._replace(loss_weights=1.0 + v)
    model.make_train_function(force=True)
    return [v, trained(model)]


@different
def a_loss_with_a_closure_in_a_class(v: int) -> Any:
    class Mine(keras.losses.Loss):  # type: ignore[misc]
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return ops.mean(ops.abs(y_pred), axis=-1) * self.scale()

    loss = Mine()
    loss.scale = lambda: 1.0 + v
    return trained(models.small(loss=loss))


@different
def a_model_changed_between_epochs(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        factor = 1.0

        def call(self, x: Any) -> Any:
            return x * self.factor

    layer = Mine()
    model = models.small(custom=lambda: layer)

    class Change(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            layer.factor = 2.0 + v
            self.model.make_train_function(force=True)
            self.model.train_function = self.model.make_train_function()

    x, y = models.data()
    first = model.fit(x, y, verbose=0, shuffle=False, callbacks=[Change()]).history["loss"]
    return [v, first, model.fit(x, y, verbose=0, shuffle=False).history["loss"]]


@different
def a_train_step_with_a_table(v: int) -> Any:
    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1)
            self.settings = {"weight": 1.0}

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(y - self(x, training=True))) * self.settings["weight"]
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    keras.utils.set_random_seed(3)
    model = Mine()
    model.settings["weight"] = 1.0 + v
    fitted(model, loss=None)  # Keras shows no loss of a step of one's own
    return [variable.numpy().tolist() for variable in model.trainable_variables]


@different
def a_keras_function_replaced_on_the_instance_of_a_loss(v: int) -> Any:
    loss = keras.losses.MeanSquaredError()
    loss.fn = keras.losses.mean_absolute_error if v else keras.losses.mean_squared_error
    keras.utils.set_random_seed(3)
    return fitted(keras.Sequential([keras.Input((4,)), layers.Dense(1)]), loss=loss)


@different
def a_named_history_on_a_layer(v: int) -> Any:
    history = keras.callbacks.History()
    history.factor = 2.0 + v
    return with_layer(lambda: layer_of(lambda self, x: x * self.history.factor, history=history))


@different
def the_history_of_a_model(v: int) -> Any:
    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x) * self.history.factor

    keras.utils.set_random_seed(3)
    model = Mine()
    model.history = keras.callbacks.History()
    model.history.factor = 2.0 + v
    model.compile("sgd", "mse")
    x = np.ones((8, 4), "float32")
    model.train_on_batch(x, x[:, :1])
    return float(model.train_on_batch(x, x[:, :1]))


@different
def an_initializer_under_its_usual_name(v: int) -> Any:
    class Mine(layers.Dense):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return super().call(x) * getattr(self, "kernel_" + "initializer")([1])

    return with_layer(lambda: Mine(5, kernel_initializer=keras.initializers.Constant(0.5 + v)))


@different
def a_partial_of_keras_operations(v: int) -> Any:
    operation = functools.partial(ops.clip, x_min=-0.1 * (1 + v), x_max=0.1 * (1 + v))
    return with_layer(lambda: layers.Lambda(operation))


@different
def a_dispatcher_of_tensorflow(v: int) -> Any:
    class Wrapped(tf.experimental.ExtensionType):  # type: ignore[misc]
        value: tf.Tensor

    @tf.experimental.dispatch_for_unary_elementwise_apis(Wrapped)
    def handler(function: Any, x: Any) -> Any:
        return function(x.value) * (2.0 + v)

    return with_layer(lambda: layer_of(lambda self, x: tf.math.tanh(Wrapped(x))))


@unstable
def a_python_function_inside_the_graph() -> Any:
    def call(self: Any, x: Any) -> Any:
        return tf.ensure_shape(tf.py_function(lambda value: value * 2.0, [x], tf.float32), x.shape)

    return with_layer(lambda: layer_of(call))


@unstable
def a_number_that_keras_counts() -> Any:
    from keras.src.backend.common import global_state

    def call(self: Any, x: Any) -> Any:
        count = global_state.get_global_attribute("pitfall", 0) + 1
        global_state.set_global_attribute("pitfall", count)
        return x * float(count)

    return with_layer(lambda: layer_of(call))


@unstable
def a_unique_number_of_tensorflow() -> Any:
    from tensorflow.python.framework import ops as framework

    return with_layer(lambda: layer_of(lambda self, x: x * float(framework.uid() % 97)))


@unstable
def a_file_read_by_tensorflow() -> Any:
    from tests.train.pitfalls import FOLDER

    place = FOLDER[0] / "factor.txt"
    place.write_text("2.0")
    return with_layer(
        lambda: layer_of(lambda self, x: x * float(tf.io.gfile.GFile(self.place).read()), place=str(place))
    )


@unstable
def eager_values_in_a_scope() -> Any:
    from tensorflow.python.eager import context

    def call(self: Any, x: Any) -> Any:
        with context.eager_mode():
            factor = float(tf.random.uniform([]))
        return x * factor

    return with_layer(lambda: layer_of(call))


@same
def a_stock_convolution() -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((8, 8, 1)), layers.Conv2D(2, 3, activation="relu"), layers.GlobalMaxPooling2D(), layers.Dense(1)]
    )
    model.compile("adam", "mse", metrics=["mae"])
    x = np.random.default_rng(1).random((8, 8, 8, 1), "float32")
    return model.fit(x, x[:, 0, 0], verbose=0, shuffle=False).history["loss"]


@different
def a_flag_of_tensorflow_itself(v: int) -> Any:
    from tensorflow.core.config import flags

    flag = flags.config().tf_shape_default_int64
    flag.reset(bool(v))
    try:
        return with_layer(
            lambda: layer_of(lambda self, x: x + tf.cast(tf.shape(x)[0] * 1_000_000_000 // 1_000_000_000, x.dtype))
        )
    finally:
        flag.reset(False)
