"""Programs in two variants that look alike: what differs is hidden where a careless key would not look.

Each case trains from fixed seeds and returns what it computed. `DIFFERENT` cases compute something else in each;
`UNSTABLE` cases look outside the program while they are traced, so that no trace of theirs may ever be restored. `SAME`
cases are honest programs that look suspicious: their second run restores.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train import models

DIFFERENT: dict[str, Callable[[int], Any]] = {}
UNSTABLE: dict[str, Callable[[], Any]] = {}
SAME: dict[str, Callable[[], Any]] = {}

TABLE = {"scale": 2.0}
HIDDEN: list[Any] = []  # a variable, made by the case: the process that forks must not run an operation
LOCAL = threading.local()
FOLDER: list[Path] = []


def different(run: Callable[[int], Any]) -> Callable[[int], Any]:
    DIFFERENT[run.__name__] = run
    return run


def unstable(run: Callable[[], Any]) -> Callable[[], Any]:
    UNSTABLE[run.__name__] = run
    return run


def same(run: Callable[[], Any]) -> Callable[[], Any]:
    SAME[run.__name__] = run
    return run


def trained(model: Any) -> Any:
    return models.trained(model, batch=10, epochs=1)


def with_layer(make: Callable[[], Any], after: Callable[[Any], None] | None = None) -> Any:
    """Train the small model with a layer in it, which `after` may change once it is built."""
    keras.utils.set_random_seed(3)
    layer = make()
    model = keras.Sequential([keras.Input((6,)), layers.Dense(5), layer, layers.Dense(3)])
    model.compile(keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    if after is not None:
        after(layer)
    return trained(model)


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Any:
    stock = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, stock)


def layer_of(call: Callable[..., Any], **attributes: Any) -> Any:
    """Return a layer with this method and these attributes."""

    class Mine(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for name, value in attributes.items():
                setattr(self, name, value)

    Mine.call = call
    return Mine()


@different
def a_dict_changed_in_place(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.table["scale"] = 2.0 + v

    return with_layer(lambda: layer_of(lambda self, x: x * self.table["scale"], table={"scale": 1.0}), change)


@different
def a_list_changed_in_place(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.factors.append(2.0 + v)

    return with_layer(lambda: layer_of(lambda self, x: x * self.factors[-1], factors=[1.0]), change)


@different
def an_array_changed_in_place(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.weights_of_mine[2] = 5.0 + v

    array = np.ones(5, "float32")
    return with_layer(lambda: layer_of(lambda self, x: x * self.weights_of_mine, weights_of_mine=array), change)


@different
def the_mask_of_a_masked_array(v: int) -> Any:
    array = np.ma.MaskedArray(np.full(5, 3.0, "float32"), mask=[v, 1, 0, 0, 1])
    return with_layer(lambda: layer_of(lambda self, x: x * self.kept.filled(0.5), kept=array))


@different
def the_class_of_an_array(v: int) -> Any:
    array = np.full((2, 2), 3.0).view(np.matrix if v else np.ndarray)
    return with_layer(lambda: layer_of(lambda self, x: x * (self.square * self.square)[0, 0], square=array))


@different
def the_factory_of_a_defaultdict(v: int) -> Any:
    holder = types.SimpleNamespace(table=collections.defaultdict(lambda: 2.0 + v))
    return with_layer(lambda: layer_of(lambda self, x: x * self.holder.table.default_factory(), holder=holder))


@different
def an_attribute_of_a_class(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        factor = 2.0

        def call(self, x: Any) -> Any:
            return x * self.factor

    Mine.factor = 2.0 + v
    return with_layer(Mine)


@different
def an_attribute_set_on_a_class_of_keras(v: int) -> Any:
    layers.Layer.glowplug_test_factor = 2.0 + v
    try:
        return with_layer(lambda: layer_of(lambda self, x: x * self.glowplug_test_factor))
    finally:
        del layers.Layer.glowplug_test_factor


@different
def a_keras_function_replaced_by_another_of_keras(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    with replaced(nn, "relu", nn.softplus if v else nn.relu):
        return trained(models.small())


@different
def a_keras_function_replaced_by_a_partial(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    with replaced(nn, "relu", functools.partial(nn.leaky_relu, negative_slope=0.1 + v)):
        return trained(models.small())


@different
def a_keras_function_replaced_by_an_object(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    stock = nn.relu

    class Relu:
        def __call__(self, x: Any) -> Any:
            return stock(x) * (1.0 + v)

    with replaced(nn, "relu", Relu()):
        return trained(models.small())


@different
def a_keras_function_replaced_by_one_typed_at_a_prompt(v: int) -> Any:
    from keras.src.backend.tensorflow import nn

    space = {"stock": nn.relu, "__name__": "__main__"}
    exec(compile(f"def relu(x): return stock(x) * {1.0 + v}", "<stdin>", "exec"), space)
    with replaced(nn, "relu", space["relu"]):
        return trained(models.small())


@different
def a_method_of_keras_replaced_by_another_of_keras(v: int) -> Any:
    with replaced(layers.Dropout, "call", layers.GaussianNoise.call if v else layers.Dropout.call):
        model = models.small()
        model.layers[2].stddev = 0.5
        return trained(model)


@different
def a_method_of_keras_replaced_by_a_partial_method(v: int) -> Any:
    stock = layers.Dense.call

    def call(self: Any, x: Any, training: Any = None, *, factor: float) -> Any:
        return stock(self, x) * factor

    with replaced(layers.Dense, "call", functools.partialmethod(call, factor=1.0 + v)):
        return trained(models.small())


@different
def a_method_replaced_on_an_instance(v: int) -> Any:
    def change(model: Any) -> None:
        stock = model.layers[0].call
        model.layers[0].call = lambda x, training=None: stock(x) * (1.0 + v)

    return trained(models.small(change=change))


@different
def a_partial_with_other_keywords(v: int) -> Any:
    return with_layer(lambda: layers.Activation(functools.partial(ops.leaky_relu, negative_slope=0.1 + v)))


@different
def a_lambda_with_another_default(v: int) -> Any:
    return with_layer(lambda: layers.Lambda(lambda x, factor=2.0 + v: x * factor))


@different
def a_flag_of_a_subclassed_model(v: int) -> Any:
    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(3)
            self.flag = False

        def call(self, x: Any) -> Any:
            return self.dense(ops.tanh(x) if self.flag else x)

    keras.utils.set_random_seed(3)
    model = Mine()
    model.flag = bool(v)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return trained(model)


@different
def a_schedule_of_ones_own(v: int) -> Any:
    class Mine(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rate = 0.1

        def __call__(self, step: Any) -> Any:
            return self.rate / (1.0 + ops.cast(step, "float32"))

    schedule = Mine()
    schedule.rate = 0.1 + v
    return trained(models.small(optimizer=lambda: keras.optimizers.SGD(schedule)))


@different
def a_loss_over_an_array(v: int) -> Any:
    weights = np.ones(3, "float32")
    weights[1] += v

    def loss(y_true: Any, y_pred: Any) -> Any:
        return ops.sum(ops.square(y_pred) * weights, axis=-1)

    return trained(models.small(loss=loss))


@different
def a_regularizer_of_ones_own(v: int) -> Any:
    class Mine(keras.regularizers.Regularizer):  # type: ignore[misc]
        def __init__(self, strength: float) -> None:
            self.strength = strength

        def __call__(self, x: Any) -> Any:
            return self.strength * ops.sum(ops.abs(x))

    return with_layer(lambda: layers.Dense(5, kernel_regularizer=Mine(0.1 + v)))


@different
def epsilon(v: int) -> Any:
    stock = keras.config.epsilon()
    keras.config.set_epsilon(0.1 if v else stock)
    try:
        return trained(models.small(loss="sparse_categorical_crossentropy", activation="softmax"))
    finally:
        keras.config.set_epsilon(stock)


@different
def floatx(v: int) -> Any:
    keras.config.set_floatx("float64" if v else "float32")
    try:
        return trained(models.small())
    finally:
        keras.config.set_floatx("float32")


@different
def image_data_format(v: int) -> Any:
    stock = keras.config.image_data_format()
    keras.config.set_image_data_format("channels_first" if v else "channels_last")
    try:
        keras.utils.set_random_seed(3)
        pool = layers.GlobalAveragePooling2D()
        shape = (6, 6, 6)
        model = keras.Sequential([keras.Input(shape), pool, layers.Dense(1)])
        model.compile("sgd", "mse")
        x = np.random.default_rng(1).random((4, *shape), "float32")
        return model.fit(x, x[:, 0, 0, :1], verbose=0).history["loss"]
    finally:
        keras.config.set_image_data_format(stock)


@different
def the_seed_of_a_dropout(v: int) -> Any:
    def change(model: Any) -> None:
        model.layers[2].seed_generator.state.assign([1 + v, 0])

    return trained(models.small(change=change))


@different
def the_global_seed(v: int) -> Any:
    model = models.small(custom=lambda: layer_of(lambda self, x: x + keras.random.normal([5])))
    keras.utils.set_random_seed(5 + v)
    keras.backend.clear_session()
    return trained(model)


@different
def a_variable_outside_the_model(v: int) -> Any:
    HIDDEN[:] = [tf.Variable(2.0 + v)]
    return with_layer(lambda: layer_of(lambda self, x: x * HIDDEN[0]))


@different
def a_global_table(v: int) -> Any:
    TABLE["scale"] = 2.0 + v
    return with_layer(lambda: layer_of(lambda self, x: x * TABLE["scale"]))


@different
def weights_of_classes(v: int) -> Any:
    x, y = models.data()
    options = {"batch_size": 10, "verbose": 0, "shuffle": False}
    return models.small().fit(x, y, class_weight={0: 1.0, 1: 2.0 + v, 2: 1.0}, **options).history


@different
def named_inputs_that_change_places(v: int) -> Any:
    keras.utils.set_random_seed(3)
    names = ("a", "b") if v else ("b", "a")
    first, second = (keras.Input((4,), name=name) for name in names)
    model = keras.Model([first, second], layers.Dense(1)(ops.tanh(first) + second * 2.0))
    model.compile("sgd", "mse")
    x = np.random.default_rng(1).random((8, 4), "float32")
    return model.fit({"a": x, "b": x * x}, x[:, :1], verbose=0, shuffle=False).history["loss"]


@different
def named_outputs_that_change_places(v: int) -> Any:
    keras.utils.set_random_seed(3)
    names = ("a", "b") if v else ("b", "a")
    inputs = keras.Input((4,))
    outputs = [layers.Dense(1, name=names[0])(inputs), layers.Dense(1, name=names[1], activation="tanh")(inputs)]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", {"a": "mse", "b": "mae"})
    x = np.random.default_rng(1).random((8, 4), "float32")
    return model.fit(x, {"a": x[:, :1], "b": x[:, 1:2]}, verbose=0, shuffle=False).history["loss"]


@different
def names_that_weight_decay_leaves_out(v: int) -> Any:
    keras.utils.set_random_seed(3)
    names = ("kept", "plain") if v else ("plain", "kept")
    model = keras.Sequential([keras.Input((6,)), *(layers.Dense(6, name=name) for name in names), layers.Dense(3)])
    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.9)
    optimizer.exclude_from_weight_decay(var_names=["kept"])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [trained(model), [float(ops.sum(w)) for w in model.weights]]


@different
def variables_that_weight_decay_leaves_out(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(6), layers.Dense(6), layers.Dense(3)])
    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.9)
    optimizer.exclude_from_weight_decay(var_list=[model.layers[v].kernel])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [trained(model), [float(ops.sum(w)) for w in model.weights]]


@different
def the_scale_of_a_loss_scale_optimizer(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(4, dtype="mixed_float16"), layers.Dense(3)])
    inner = keras.optimizers.SGD(0.5)
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**20 if v else 4.0, dynamic_growth_steps=1)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [trained(model), float(optimizer.dynamic_scale)]


@different
def an_average_of_weights(v: int) -> Any:
    optimizer = keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=1)
    optimizer.ema_momentum = 0.5 + 0.4 * v
    return models.trained(models.small(optimizer=lambda: optimizer), batch=4)


@different
def accumulated_gradients(v: int) -> Any:
    return models.trained(
        models.small(optimizer=lambda: keras.optimizers.SGD(0.5, gradient_accumulation_steps=2 + v)), batch=4
    )


@different
def an_option_of_the_optimizer_after_compiling(v: int) -> Any:
    model = models.small(optimizer=lambda: keras.optimizers.Adam(0.1))
    model.optimizer.beta_1 = 0.9 - 0.8 * v
    return models.trained(model, batch=4)


@different
def the_learning_rate_after_compiling(v: int) -> Any:
    model = models.small(optimizer=lambda: keras.optimizers.Adam(0.1))
    model.optimizer.learning_rate = 0.1 + v
    return trained(model)


@different
def the_momentum_of_a_batch_norm(v: int) -> Any:
    def change(model: Any) -> None:
        model.layers[1].momentum = 0.9 - 0.5 * v

    return [models.trained(models.small(change=change), also=True)]


@different
def augmentation(v: int) -> Any:
    keras.utils.set_random_seed(3)
    flip = layers.RandomRotation(0.1, fill_mode="constant", seed=1)
    flip.fill_value = 1.0 + v
    model = keras.Sequential([keras.Input((6, 6, 1)), flip, layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(1).random((8, 6, 6, 1), "float32")
    return model.fit(x, x[:, 0, 0], verbose=0, shuffle=False).history["loss"]


@different
def a_stateful_rnn(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((5, 2), batch_size=4), layers.LSTM(3, stateful=True), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(1).random((8, 5, 2), "float32")
    losses = []
    for _ in range(2):
        losses += model.fit(x, x[:, 0, :1], batch_size=4, shuffle=False, verbose=0).history["loss"]
        if v:
            model.layers[0].reset_state()
    return losses


@different
def compiled_again(v: int) -> Any:
    model = models.small()
    first = trained(model)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=v or None))
    return [first, trained(model)]


@different
def frozen_after_training(v: int) -> Any:
    model = models.small()
    first = trained(model)
    model.layers[0].trainable = not v
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [first, trained(model), trained(model)]


@different
def an_initializer_that_is_called_in_the_step(v: int) -> Any:
    fill = keras.initializers.Constant(2.0 + v)
    return with_layer(lambda: layer_of(lambda self, x: x * self.fill([5]), fill=fill))


@dataclasses.dataclass
class Settings:
    factor: float = 2.0


class Mode(enum.Enum):
    PLAIN = 1
    LOUD = 2


@different
def a_dataclass(v: int) -> Any:
    return with_layer(lambda: layer_of(lambda self, x: x * self.settings.factor, settings=Settings(2.0 + v)))


@different
def an_enum(v: int) -> Any:
    mode = Mode.LOUD if v else Mode.PLAIN
    return with_layer(lambda: layer_of(lambda self, x: x * self.mode.value, mode=mode))


@different
def a_namespace(v: int) -> Any:
    settings = types.SimpleNamespace(factor=2.0 + v)
    return with_layer(lambda: layer_of(lambda self, x: x * settings.factor))


@different
def an_object_that_answers_for_any_name(v: int) -> Any:
    class Any_:
        def __init__(self) -> None:
            self._values = {"factor": 2.0 + v}

        def __getattr__(self, name: str) -> Any:
            return self.__dict__["_values"][name]

    return with_layer(lambda: layer_of(lambda self, x: x * self.settings.factor, settings=Any_()))


@different
def a_value_of_this_thread(v: int) -> Any:
    LOCAL.factor = 2.0 + v
    return with_layer(lambda: layer_of(lambda self, x: x * LOCAL.factor))


@different
def a_nested_function_of_tensorflow(v: int) -> Any:
    factor = 2.0 + v

    @tf.function
    def scaled(x: Any) -> Any:
        return x * factor

    return with_layer(lambda: layer_of(lambda self, x: scaled(x)))


@different
def a_decorated_call(v: int) -> Any:
    def loud(method: Any) -> Any:
        @functools.wraps(method)
        def call(self: Any, x: Any) -> Any:
            return method(self, x) * (1.0 + v)

        return call

    return with_layer(lambda: layer_of(loud(lambda self, x: x * 2.0)))


@different
def a_custom_gradient(v: int) -> Any:
    @tf.custom_gradient
    def straight(x: Any) -> Any:
        return tf.round(x * 4.0), lambda upstream: upstream * (1.0 + v)

    made = models.small(
        custom=lambda: layer_of(lambda self, x: straight(x)), optimizer=lambda: keras.optimizers.SGD(0.5)
    )
    return models.trained(made, batch=4)


@different
def an_integer_and_a_float(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return x * (2.0 if isinstance(self.factor, float) else 3.0)

    return with_layer(lambda: layer_of(call, factor=1.0 if v else 1))


@different
def layers_that_are_shared_or_not(v: int) -> Any:
    keras.utils.set_random_seed(3)
    inputs = keras.Input((6,))
    first, second = layers.Dense(6, use_bias=False), layers.Dense(6, use_bias=False)
    x = (first if v else second)(first(inputs))
    model = keras.Model(inputs, layers.Dense(3)(x))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return trained(model)


@different
def ragged_and_sparse(v: int) -> Any:
    keras.utils.set_random_seed(3)
    dense = np.random.default_rng(1).random((8, 6), "float32") * (np.arange(6) % 2)
    model = keras.Sequential([keras.Input((6,), sparse=bool(v)), layers.Dense(1, name="d")])
    model.compile("sgd", "mse")
    x = tf.sparse.from_dense(dense * 2.0) if v else dense
    data = tf.data.Dataset.from_tensor_slices((x, dense[:, 1:2])).batch(4)
    return model.fit(data, verbose=0).history["loss"]


@different
def weights_of_samples(v: int) -> Any:
    x, y = models.data()
    options = {"batch_size": 10, "verbose": 0, "shuffle": False}
    weights = {"sample_weight": np.linspace(0.0, 2.0, len(x), dtype="float32")} if v else {}
    return models.small().fit(x, y, **weights, **options).history


@different
def weights_of_losses(v: int) -> Any:
    return trained(models.small(loss_weights=[1.0 + v]))


@different
def deterministic_operations_of_a_metric(v: int) -> Any:
    class Counted(keras.metrics.Metric):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name="counted")
            self.total = self.add_variable((), "zeros")
            self.step = 1.0 + v

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.total.assign_add(self.step)

        def result(self) -> Any:
            return self.total

    return trained(models.small(metrics=(Counted(),)))


@unstable
def random_numbers_imported_inside() -> Any:
    def call(self: Any, x: Any) -> Any:
        import numpy

        return x * numpy.random.rand()

    return with_layer(lambda: layer_of(call))


@unstable
def random_numbers_imported_by_name() -> Any:
    def call(self: Any, x: Any) -> Any:
        from numpy.random import rand

        return x * rand()

    return with_layer(lambda: layer_of(call))


@unstable
def a_file_read_by_numpy() -> Any:
    place = FOLDER[0] / "factor.npy"
    np.save(place, np.float32(2.0))
    return with_layer(lambda: layer_of(lambda self, x: x * np.load(self.place), place=str(place)))


@unstable
def the_value_of_a_variable() -> Any:
    def call(self: Any, x: Any) -> Any:
        with tf.init_scope():
            factor = float(HIDDEN[0])
        return x * factor

    HIDDEN[:] = [tf.Variable(2.0)]
    return with_layer(lambda: layer_of(call))


class Clocked:
    def __init__(self) -> None:
        self.factor = time.time() % 2.0


@unstable
def an_object_made_in_the_step() -> Any:
    return with_layer(lambda: layer_of(lambda self, x: x * Clocked().factor))


def build(x: Any) -> Any:
    return x * (time.time() % 2.0)


@unstable
def a_function_with_the_name_of_a_harmless_one() -> Any:
    return with_layer(lambda: layer_of(lambda self, x: build(x)))


@unstable
def a_list_that_tracing_makes_longer() -> Any:
    def call(self: Any, x: Any) -> Any:
        self.seen.append(1.0)
        return x * float(len(self.seen))

    return with_layer(lambda: layer_of(call, seen=[]))


@unstable
def an_attribute_that_tracing_counts() -> Any:
    def call(self: Any, x: Any) -> Any:
        self.seen += 1
        return x * float(self.seen)

    return with_layer(lambda: layer_of(call, seen=0))


@unstable
def a_global_that_tracing_changes() -> Any:
    def call(self: Any, x: Any) -> Any:
        TABLE["count"] = TABLE.get("count", 0.0) + 1.0
        return x * TABLE["count"]

    return with_layer(lambda: layer_of(call))


@unstable
def a_counter() -> Any:
    import itertools

    numbers = itertools.count(1)
    return with_layer(lambda: layer_of(lambda self, x: x * float(next(numbers))))
