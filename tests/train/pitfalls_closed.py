"""Pitfalls of names, numbers and settings that lists of what is forbidden forgot: attributes that stock objects keep to
themselves, numbers made of addresses, data put on stock classes, orders and identities of plain values.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import fractions
import functools
import logging
import operator
import statistics
import string
import types
import typing
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train.pitfalls import different, layer_of, same, unstable

STOCK = keras.layers.Layer


def tiny(
    *more: Any, loss: Any = "mse", optimizer: Any = "sgd", epochs: int = 1, after: Any = None, **options: Any
) -> Any:
    """Train one step of a model with these layers, which `after` may change once it is compiled."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(2), *more, layers.Dense(1)])
    model.compile(optimizer, loss, **options)
    if after is not None:
        after(model)
    return fitted(model, epochs)


def fitted(model: Any, epochs: int = 1) -> Any:
    x = np.random.default_rng(1).random((8, 4), "float32")
    history = model.fit(x, x[:, :1], verbose=0, shuffle=False, epochs=epochs).history
    return {name: [float(each) for each in values] for name, values in history.items()}


def scaled(factor: Any) -> Any:
    """Train with a layer that multiplies by what a function of no arguments returns while it is traced."""
    return tiny(layer_of(lambda self, x: x * factor()))


def attribute(value: Any, read: Any) -> Any:
    """Train with a layer that multiplies by what `read` finds in the value on it."""
    holder = types.SimpleNamespace(value=value)
    return tiny(layer_of(lambda self, x: x * read(self.holder.value), holder=holder))


# Names that begin with an underscore.


@different
def the_number_of_a_tensor(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)
    return attribute(tf.constant(2.0), lambda value: 2.0 + value._id % 7)


@different
def the_number_of_a_tensor_by_a_constant(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)
    return attribute(tf.constant(2.0), lambda value: 2.0 + getattr(value, "_id") % 7)  # noqa: B009


@different
def the_number_of_a_tensor_by_a_name_put_together(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)
    name = "id"
    return attribute(tf.constant(2.0), lambda value: 2.0 + getattr(value, f"_{name}") % 7)


@different
def the_number_of_a_tensor_by_a_getter(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)
    get = operator.attrgetter("_id")
    return attribute(tf.constant(2.0), lambda value: 2.0 + get(value) % 7)


@different
def the_number_of_a_tensor_by_a_pattern(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)

    def read(value: Any) -> float:
        match value:
            case object(_id=number):
                return 2.0 + number % 7
        return 1.0

    return attribute(tf.constant(2.0), read)


@different
def the_number_of_a_tensor_by_a_format(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)
    return attribute(tf.constant(2.0), lambda value: 2.0 + int("{0._id}".format(value)) % 7)  # noqa: UP030, UP032


@different
def the_number_of_a_tensor_by_a_reader_under_another_name(v: int) -> Any:
    for _ in range(v):
        tf.constant(1.0)
    read = functools.partial(getattr)
    return attribute(tf.constant(2.0), lambda value: 2.0 + read(value, "_id") % 7)


@different
def a_layout_of_a_variable(v: int) -> Any:
    def after(model: Any) -> None:
        model.layers[0].kernel._layout = 2.0 + v

    class Mine(layers.Dense):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return super().call(x) * self.kernel._layout

    keras.utils.set_random_seed(3)
    model = keras.Sequential([Mine(1)])
    model.build((None, 4))
    after(model)
    model.compile("sgd", "mse")
    return fitted(model)


@different
def an_initializer_of_a_variable(v: int) -> Any:
    class Mine(layers.Dense):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return super().call(x) * float(self.kernel._initializer or 1.0)

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), Mine(1)])
    model.layers[0].kernel._initializer = 2.0 + v
    model.compile("sgd", "mse")
    return fitted(model)


@different
def what_a_variable_keeps_for_saving(v: int) -> Any:
    variable = tf.Variable(1.0, trainable=False)
    variable._save_slice_info = 2.0 + v
    return attribute(variable, lambda value: value._save_slice_info)


@different
def what_a_wrapped_list_keeps(v: int) -> Any:
    module = tf.Module()
    module.factors = [1.0]
    module.factors._factor = 2.0 + v
    return attribute(module, lambda value: value.factors._factor)


@different
def what_a_wrapped_dict_keeps(v: int) -> Any:
    module = tf.Module()
    module.table = {"a": 1.0}
    module.table._self_factor = 2.0 + v
    return attribute(module, lambda value: value.table._self_factor)


@different
def what_a_nested_function_keeps(v: int) -> Any:
    function = tf.function(lambda x: x)
    function._key_for_call_stats = 2.0 + v
    return attribute(function, lambda value: value._key_for_call_stats)


@different
def how_a_symbolic_tensor_came_about(v: int) -> Any:
    symbol = keras.KerasTensor((2,), name="same")
    symbol._keras_history = 2.0 + v
    return attribute(symbol, lambda value: value._keras_history)


@different
def what_a_logger_was_asked(v: int) -> Any:
    logger = logging.getLogger("pitfalls.asked")
    if v:
        logger.isEnabledFor(10)
    return attribute(logger, lambda value: 2.0 + len(value._cache))


@different
def what_a_masked_array_was_made_of(v: int) -> Any:
    array: Any = np.ma.array([1.0, 2.0], mask=[0, 1])
    array._basedict = {"factor": 2.0 + v}
    return attribute(array, lambda value: value._basedict["factor"])


@unstable
def a_hash_through_a_private_function() -> Any:
    return scaled(lambda: 2.0 + functools._make_key(("text", 1), {}, False).hashvalue % 7)


@different
def a_private_attribute_through_dict(v: int) -> Any:
    symbol = keras.KerasTensor((2,), name="same")
    symbol._keras_history = 2.0 + v

    def read(value: Any) -> Any:
        return next(each for name, each in value.__dict__.items() if name == "_keras_history")

    return attribute(symbol, read)


# Addresses.


@unstable
def the_address_of_an_array() -> Any:
    return attribute(np.ones(3), lambda value: 2.0 + value.__array_interface__["data"][0] % 97)


@unstable
def the_address_of_an_array_for_compiled_code() -> Any:
    return attribute(np.ones(3), lambda value: 2.0 + value.ctypes.data % 97)


@unstable
def the_bounds_of_an_array() -> Any:
    return attribute(np.ones(3), lambda value: 2.0 + np.lib.array_utils.byte_bounds(value)[0] % 97)


@unstable
def the_bytes_of_an_array_of_objects() -> Any:
    return attribute(np.array([None, 1.5], object), lambda value: 2.0 + value.tobytes()[3] % 97)


@unstable
def an_address_in_the_text_of_a_function() -> Any:
    return scaled(lambda: 2.0 + int(str(tiny)[-5:-1], 16) % 7)


@unstable
def an_address_in_a_formatted_text() -> Any:
    class Holder:
        pass

    return attribute(Holder(), lambda value: 2.0 + int(f"{value}"[-5:-1], 16) % 7)


@unstable
def an_address_in_bytes() -> Any:
    return attribute(types.SimpleNamespace(f=tiny), lambda value: 2.0 + sum(f"{value.f}".encode()) % 7)


@unstable
def an_address_by_letters() -> Any:
    return attribute(types.SimpleNamespace(f=tiny), lambda value: 2.0 + sum(map(ord, "%s" % value.f)) % 7)  # noqa: UP031


@unstable
def an_address_converted_elsewhere() -> Any:
    def digits(text: str) -> int:
        return int(text[-5:-1], 16)

    return attribute(types.SimpleNamespace(f=tiny), lambda value: 2.0 + digits(f"{value.f}") % 7)


@unstable
def an_address_in_a_template() -> Any:
    return attribute(
        types.SimpleNamespace(f=tiny),
        lambda value: 2.0 + int(string.Template("$a").substitute(a=value.f)[-5:-1], 16) % 7,
    )


@unstable
def an_address_in_a_joined_text() -> Any:
    def read(value: Any) -> float:
        text = str(value.f)
        return 2.0 + float(int(text[-4], 16))

    return attribute(types.SimpleNamespace(f=tiny), read)


# Data on stock classes.


@contextlib.contextmanager
def put_on(owner: Any, value: Any) -> Any:
    owner.pitfall = value
    try:
        yield
    finally:
        del owner.pitfall


@different
def an_array_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, np.array([2.0 + v])):
        return tiny(layer_of(lambda self, x: x * self.pitfall[0]))


@different
def a_tensor_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, tf.constant(2.0 + v)):
        return tiny(layer_of(lambda self, x: x * self.pitfall))


@different
def a_deque_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, collections.deque([2.0 + v])):
        return tiny(layer_of(lambda self, x: x * self.pitfall[0]))


@different
def a_fraction_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, fractions.Fraction(2 + v)):
        return tiny(layer_of(lambda self, x: x * float(self.pitfall)))


@different
def a_range_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, range(2 + v)):
        return tiny(layer_of(lambda self, x: x * float(len(self.pitfall))))


@different
def a_table_of_lists_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, {"a": [2.0 + v]}):
        return tiny(layer_of(lambda self, x: x * self.pitfall["a"][0]))


@different
def a_long_list_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, [2.0 + v] * 300):
        return tiny(layer_of(lambda self, x: x * self.pitfall[7]))


@different
def an_ordered_dict_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, collections.OrderedDict(a=2.0 + v)):
        return tiny(layer_of(lambda self, x: x * self.pitfall["a"]))


@different
def an_initializer_on_a_stock_class(v: int) -> Any:
    with put_on(STOCK, keras.initializers.Constant([2.0 + v])):
        return tiny(layer_of(lambda self, x: x * self.pitfall.value[0]))


@different
def an_array_on_the_class_of_tensors(v: int) -> Any:
    with put_on(tf.Tensor, np.array([2.0 + v])):
        return tiny(layer_of(lambda self, x: x * x.pitfall[0]))


@different
def an_array_on_a_stock_class_under_its_other_name(v: int) -> Any:
    with put_on(tf.keras.losses.Loss, np.array([2.0 + v])):
        return tiny(layer_of(lambda self, x: x * keras.losses.Loss.pitfall[0]))


@different
def an_array_in_a_stock_module(v: int) -> Any:
    with put_on(keras.ops, np.array([2.0 + v])):
        return tiny(layer_of(lambda self, x: x * keras.ops.pitfall[0]))


@unstable
def a_list_on_a_stock_class_that_a_loss_writes() -> Any:
    def loss(y_true: Any, y_pred: Any) -> Any:
        keras.losses.Loss.pitfall.append([3.0])
        return ops.mean(ops.square(y_pred - y_true), axis=-1)

    with put_on(keras.losses.Loss, collections.deque([1.0])):
        return tiny(loss=loss)


@unstable
def a_stock_class_that_a_loss_writes_by_setattr() -> Any:
    def loss(y_true: Any, y_pred: Any) -> Any:
        count = getattr(keras.losses.MeanSquaredError, "pitfall", 0)
        setattr(keras.losses.MeanSquaredError, "pitfall", count + 1)  # noqa: B010
        return ops.mean(ops.square(y_pred - y_true), axis=-1)

    return tiny(loss=loss)


# Orders and identities of plain values.


@different
def the_order_of_an_ordered_dict_of_ones_own(v: int) -> Any:
    class Mine(collections.OrderedDict):  # type: ignore[type-arg]
        pass

    table = Mine(a=2.0, b=3.0)
    if v:
        table.move_to_end("a")
    return attribute(table, lambda value: next(iter(value.values())))


@different
def the_order_of_a_set_of_numbers(v: int) -> Any:
    return attribute(set([8, 0] if v else [0, 8]), lambda value: 2.0 + next(iter(value)))


@different
def the_order_of_a_set_on_a_stock_layer(v: int) -> Any:
    keras.utils.set_random_seed(3)  # it draws a seed when it is made
    dense = layers.Dense(2)
    dense.kinds = set([8, 0] if v else [0, 8])
    return tiny(layer_of(lambda self, x: self.dense(x) * (2.0 + next(iter(self.dense.kinds))), dense=dense))


@different
def one_text_or_two(v: int) -> Any:
    text = "".join(["pit", "fall"])
    return attribute(
        (text, text if v else "".join(["pit", "fall"])), lambda value: 3.0 if value[0] is value[1] else 2.0
    )


@different
def one_number_or_two(v: int) -> Any:
    number = int("1234567")
    return attribute((number, number if v else int("1234567")), lambda value: 3.0 if value[0] is value[1] else 2.0)


@different
def one_tuple_or_two(v: int) -> Any:
    pair = tuple(map(float, (1, 2)))
    return attribute(
        [pair, pair if v else tuple(map(float, (1, 2)))], lambda value: 3.0 if value[0] is value[1] else 2.0
    )


@different
def one_nan_or_two(v: int) -> Any:
    nan = float("nan")
    return attribute([nan, nan if v else float("nan")], lambda value: 3.0 if value[0] in value[1:] else 2.0)


@different
def one_nan_of_numpy_or_two(v: int) -> Any:
    nan = np.float64("nan")
    return attribute([nan, nan if v else np.float64("nan")], lambda value: 3.0 if value[0] in value[1:] else 2.0)


@different
def one_identity_by_an_operator(v: int) -> Any:
    number = int("1234567")
    pair = (number, number if v else int("1234567"))
    return attribute(pair, lambda value: 3.0 if operator.is_(value[0], value[1]) else 2.0)


# Descriptions that are cut.


@different
def the_bounds_of_a_spec(v: int) -> Any:
    from tensorflow.python.framework.tensor import BoundedTensorSpec

    low = np.zeros(2000)
    low[1000] = v
    return attribute(BoundedTensorSpec((2000,), tf.float64, low, low + 2.0), lambda value: 2.0 + value.minimum[1000])


@different
def the_last_digits_of_a_bound(v: int) -> Any:
    from tensorflow.python.framework.tensor import BoundedTensorSpec

    spec = BoundedTensorSpec((), tf.float64, 1.0 + v * 1e-12, 2.0)
    return attribute(spec, lambda value: 3.0 if value.minimum > 1.0 else 2.0)


@different
def what_a_nested_function_implements(v: int) -> Any:
    function = tf.function(lambda x: x, experimental_attributes={"_noinline": bool(v)})
    return attribute(function, lambda value: 3.0 if value._attributes.get("_noinline") else 2.0)


@different
def an_attribute_of_a_static_method(v: int) -> Any:
    method: Any = staticmethod(len)
    method.factor = 2.0 + v
    return attribute(method, lambda value: value.factor)


# Random numbers that the standard library draws.


@unstable
def a_sample_of_a_distribution() -> Any:
    return scaled(lambda: statistics.NormalDist(2.0, 1.0).samples(1)[0])


# The language.


@different
def a_descriptor_that_knows_its_name(v: int) -> Any:
    class Named:
        def __set_name__(self, owner: Any, name: str) -> None:
            self.kept = {name: 2.0 + v}

        def __get__(self, instance: Any, owner: Any) -> float:
            return sum(self.kept.values())

    class Holder:
        factor = Named()

    return attribute(Holder(), lambda value: value.factor)


@different
def a_metaclass_that_is_called(v: int) -> Any:
    class Meta(type):
        def __call__(cls, *args: Any) -> Any:
            made = super().__call__(*args)
            made.factor = cls.factors[-1]
            return made

    class Holder(metaclass=Meta):
        factors: typing.ClassVar[Any] = [1.0]

    Holder.factors.append(2.0 + v)
    return scaled(lambda: Holder().factor)


@different
def two_closures_that_share_a_number(v: int) -> Any:
    def made() -> Any:
        number = 2.0

        def add() -> None:
            nonlocal number
            number += 1.0

        return add, lambda: number

    add, read = made()
    for _ in range(v):
        add()
    return scaled(read)


@different
def a_method_with_another_class_in_its_cell(v: int) -> Any:
    class First:
        factor = 2.0

    class Second(First):
        factor = 3.0

    class Holder(Second):
        factor = 5.0

        def read(self) -> float:
            return super().factor

    kinds = (Holder, Second)
    Holder.read.__closure__[0].cell_contents = kinds[v]  # type: ignore[index]
    return attribute(Holder(), lambda value: value.read())


# Honest programs that come close.


@same
def private_names_of_ones_own() -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def __init__(self, factor: float) -> None:
            super().__init__()
            self._factor = factor
            self.__deep = 2.0
            self._cache = None

        def call(self, x: Any) -> Any:
            if getattr(self, "_cache", None) is None:
                return self._scaled(x) * self.__deep
            return x

        def _scaled(self, x: Any) -> Any:
            return x * self._factor

    return tiny(Mine(2.0))


@same
def a_model_with_private_parts_of_keras() -> Any:
    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._inner = layers.Dense(1)
            self._kept = [layers.Dense(2)]

        def call(self, x: Any, training: Any = None) -> Any:
            mask = getattr(x, "_keras_mask", None)
            x = self._kept[0](x)
            return self._inner(x) if mask is None else x

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
            self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
            self._loss_tracker.update_state(loss)
            return {f"{self.__class__.__name__}_{metric.name}": metric.result() for metric in self.metrics}

    keras.utils.set_random_seed(3)
    model = Mine()
    model.compile("sgd", "mse")
    return fitted(model)


@same
def tensorflow_imported_inside() -> Any:
    def factor(x: Any) -> Any:
        import tensorflow as tf

        y = tf.square(x)
        z = y + 1.0
        return tf.sqrt(z)

    return tiny(layer_of(lambda self, x: factor(x)))


@same
def names_put_together_from_two() -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for kind in ("first", "second"):
                setattr(self, f"{kind}_dense", layers.Dense(2))

        def call(self, x: Any) -> Any:
            for kind in ("first", "second"):
                x = getattr(self, f"{kind}_dense")(x)
            return x * int(self.scale * 2)

        scale = 1.5

    keras.utils.set_random_seed(3)  # it draws seeds when it is made
    return tiny(Mine())


@same
def an_identity_that_is_asked() -> Any:
    class Mode(enum.Enum):
        A = 2.0
        B = 3.0

    return attribute(Mode.A, lambda value: 2.0 if value is Mode.A and value is not None else 3.0)
