"""Pitfalls of what a description of a value leaves out, of reads that no name in the code shows, and of what stock code
looks up for a program: identities, views, aliases, patterns, formats, collections of graphs, seeds drawn on the way.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import decimal
import enum
import functools
import inspect
import logging
import random
import re
import sys
import threading
import types
import typing
import uuid
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tests.train import models
from tests.train.pitfalls import FOLDER, different, layer_of, replaced, same, unstable, with_layer
from tests.train.pitfalls_python import attribute, module_with, scaled
from tests.train.pitfalls_stock import fitted

WRITTEN = 0.0
T = typing.TypeVar("T")


def helper() -> float:
    return 1.0


def documented(text: str) -> Any:
    """Return one of many functions with the same code, with another documentation."""

    def function() -> float:
        return 1.0

    function.__doc__ = text
    return function


# What stands in code.


@different
def an_object_among_the_constants_of_code(v: int) -> Any:
    class Factor:
        def __init__(self, value: float) -> None:
            self.value = value

        def __repr__(self) -> str:
            return "Factor"

    def factor() -> float:
        return "constant".value  # type: ignore[attr-defined,no-any-return]

    constants = tuple(Factor(2.0 + v) if each == "constant" else each for each in factor.__code__.co_consts)
    factor.__code__ = factor.__code__.replace(co_consts=constants)
    return scaled(factor)


@different
def a_long_array_among_the_constants_of_code(v: int) -> Any:
    def factor() -> float:
        return "constant"[1500]  # type: ignore[return-value]

    array = np.zeros(3000)
    array[1500] = 2.0 + v
    constants = tuple(array if type(each) is str and each == "constant" else each for each in factor.__code__.co_consts)
    factor.__code__ = factor.__code__.replace(co_consts=constants)
    return scaled(factor)


@different
def one_name_for_two_modules(v: int) -> Any:
    module_with("pitfall_first", "factor = 1.0")
    module_with("pitfall_second", f"factor = {2.0 + v}")

    def factor() -> float:
        if not T:
            import pitfall_first as chosen
        else:
            import pitfall_second as chosen
        return chosen.factor  # type: ignore[no-any-return]

    return scaled(factor)


@different
def a_module_deep_in_a_package(v: int) -> Any:
    package = module_with("pitfall_package", "")
    package.inner = module_with("pitfall_package.inner", "")
    package.inner.deep = module_with("pitfall_package.inner.deep", f"factor = {2.0 + v}")

    def factor() -> float:
        import pitfall_package.inner.deep as deep  # noqa: PLR0402 - this is the pitfall

        return deep.factor  # type: ignore[no-any-return]

    return scaled(factor)


@different
def the_arguments_of_a_base(v: int) -> Any:
    class First:
        factor = 2.0

    class Second:
        factor = 3.0

    class Base(typing.Generic[T]):
        def factor(self) -> float:
            return typing.get_args(type(self).__orig_bases__[0])[0].factor  # type: ignore[attr-defined,no-any-return]

    kinds = [First, Second]
    made = types.new_class("Mine", (Base[kinds[v]],))  # type: ignore[index]
    return with_layer(lambda: layer_of(lambda self, x: x * self.made.factor(), made=made(), kinds=kinds))


@different
def a_class_that_the_standard_library_made(v: int) -> Any:
    made = dataclasses.make_dataclass("Made", [("factor", float, 2.0 + v)])
    return attribute(made, lambda value: value.factor)


@different
def a_class_that_says_it_is_of_keras(v: int) -> Any:
    made = type("Made", (), {"factor": 2.0 + v, "__module__": "keras.src.layers.layer"})
    return attribute(made(), lambda value: value.factor)


@different
def a_member_that_says_it_is_of_tensorflow(v: int) -> Any:
    made = enum.Enum("Made", {"FACTOR": 2.0 + v}, module="tensorflow.python.framework.ops")
    return attribute(made.FACTOR, lambda value: value.value)


@different
def the_arguments_of_an_alias(v: int) -> Any:
    class Holder:
        factor = 2.0 + v

    return attribute(list[Holder], lambda value: value.__args__[0].factor)


@different
def the_arguments_of_an_alias_of_typing(v: int) -> Any:
    class Holder:
        factor = 2.0 + v

    return attribute(typing.List[Holder], lambda value: typing.get_args(value)[0].factor)  # noqa: UP006


@different
def the_metadata_of_an_alias(v: int) -> Any:
    class Factor(float):
        def __repr__(self) -> str:
            return "Factor"

    return attribute(typing.Annotated[float, Factor(2.0 + v)], lambda value: value.__metadata__[0] * 1.0)


@different
def the_bound_of_a_type_variable(v: int) -> Any:
    class Holder:
        factor = 2.0 + v

    return attribute(typing.TypeVar("Mine", bound=Holder), lambda value: value.__bound__.factor)


@different
def an_annotation_of_a_protocol(v: int) -> Any:
    @typing.runtime_checkable
    class Shape(typing.Protocol):
        __annotations__ = {"other" if v else "factor": float}

    return attribute(types.SimpleNamespace(factor=2.0), lambda value: 3.0 if isinstance(value, Shape) else 2.0)


# Reads of which the code has no name.


@different
def a_name_in_a_pattern(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            match self:
                case layers.Layer(name=found):
                    return x * float(len(found))
            return x

    return with_layer(lambda: Mine(name="longer" if v else "short"))


@different
def a_documentation_in_a_pattern(v: int) -> Any:
    def read(value: Any) -> float:
        match value:
            case object(__doc__=text):
                return float(len(text))
        return 1.0

    return attribute(documented("a" * (2 + v)), read)


class Placed(layers.Layer):  # type: ignore[misc]
    __match_args__ = ("name",)

    def call(self, x: Any) -> Any:
        match self:
            case Placed(found):
                return x * float(len(found))
        return x


@different
def a_name_by_its_place_in_a_pattern(v: int) -> Any:
    return with_layer(lambda: Placed(name="longer" if v else "short"))


@different
def a_documentation_in_a_tuple_of_names(v: int) -> Any:
    def read(value: Any) -> float:
        found = [getattr(value, name) for name in ("__doc__", "__name__")]
        return float(len(found[0]))

    return attribute(documented("a" * (2 + v)), read)


@different
def a_documentation_in_a_format(v: int) -> Any:
    return attribute(documented("a" * (2 + v)), lambda value: float(len("{0.__doc__}".format(value))))  # noqa: UP030, UP032


@different
def a_documentation_in_a_format_of_a_map(v: int) -> Any:
    return attribute(documented("a" * (2 + v)), lambda value: float(len("{each.__doc__}".format_map({"each": value}))))


@different
def a_name_in_the_state_of_an_object(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * float(len(self.__getstate__()["name"]))

    return with_layer(lambda: Mine(name="longer" if v else "short"))


def at_a_line(source: str, lines: int) -> dict[str, Any]:
    """Return what code defines that stands so many lines further down in its file."""
    space: dict[str, Any] = {"__name__": "lines"}
    exec(compile("\n" * lines + source, "/elsewhere/lines.py", "exec"), space)
    return space


@different
def a_line_told_to_a_context_manager(v: int) -> Any:
    source = """
class Noting:
    def __enter__(self):
        return self
    def __exit__(self, kind, error, place):
        self.line = float(place.tb_lineno)
        return True
def factor():
    noting = Noting()
    with noting:
        raise ValueError
    return noting.line
"""
    return scaled(at_a_line(source, v)["factor"])


@different
def the_lines_of_a_generator(v: int) -> Any:
    source = """
def numbers():
    yield 1.0
def factor():
    return 1.0 + [each[2] for each in numbers().gi_code.co_lines()][-1]
"""
    return scaled(at_a_line(source, v)["factor"])


@different
def a_signature_as_a_text(v: int) -> Any:
    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": "a" * (2 + v)}
    return attribute(function, lambda value: float(len(str(inspect.signature(value)))))


@different
def a_depth_that_is_tried_out(v: int) -> Any:
    def depth(count: int) -> int:
        try:
            return depth(count + 1)
        except Exception:
            return count

    sys.setrecursionlimit(1500 + 500 * v)
    return scaled(lambda: 1.0 + depth(0) // 400)


@unstable
def the_clock_of_numpy() -> Any:
    return scaled(lambda: 2.0 + float(np.datetime64("now").astype(int) % 7))


@unstable
def the_clock_in_an_array_of_numpy() -> Any:
    return scaled(lambda: 2.0 + float(np.array("now", dtype="M8[s]").astype(int) % 7))


@unstable
def a_global_that_is_only_written() -> Any:
    def call(self: Any, x: Any) -> Any:
        global WRITTEN  # noqa: PLW0603
        WRITTEN = float(x.shape[-1])
        return x * 2.0

    with_layer(lambda: layer_of(call))
    return WRITTEN


# What a text of a value leaves out.


@different
def what_a_number_of_this_machine_knows_of_itself(v: int) -> Any:
    safe = (uuid.SafeUUID.safe, uuid.SafeUUID.unsafe)[v]
    return attribute(uuid.UUID(int=1, is_safe=safe), lambda value: 3.0 + value.is_safe.value)


@different
def a_text_of_ones_own_in_a_pattern(v: int) -> Any:
    class Text(str):
        __slots__ = ("factor",)

        def __repr__(self) -> str:
            return "'a'"

    text = Text("a")
    text.factor = 2.0 + v
    return attribute(re.compile(text), lambda value: value.pattern.factor)


@different
def the_metadata_of_a_field(v: int) -> Any:
    dtype = np.dtype([("a", np.dtype("f4", metadata={"factor": 2.0 + v}))])
    return attribute(dtype, lambda value: value.fields["a"][0].metadata["factor"])


@different
def the_metadata_of_a_field_of_an_array(v: int) -> Any:
    dtype = np.dtype([("a", np.dtype("f4", metadata={"factor": 2.0 + v}))])
    return attribute(np.zeros(2, dtype), lambda value: value.dtype.fields["a"][0].metadata["factor"])


@different
def the_fields_of_a_record(v: int) -> Any:
    names = ("b", "a") if v else ("a", "b")
    record = np.array([(2.0, 3.0)], dtype=[(name, "f4") for name in names])[0]
    return attribute(record, lambda value: float(value["a"]))


@different
def whether_an_array_can_be_written(v: int) -> Any:
    array = np.ones(3)
    array.flags.writeable = bool(v)
    return attribute(array, lambda value: 3.0 if value.flags.writeable else 2.0)


@different
def what_lies_behind_a_view(v: int) -> Any:
    whole = np.array([1.0, 1.0, 2.0 + v])
    return attribute(whole[:2], lambda value: float(value.base[2]))


@different
def arrays_that_share_their_memory(v: int) -> Any:
    whole = np.ones(8)
    pair = (whole[:4], whole[2:6] if v else whole[4:])
    return attribute(pair, lambda value: 3.0 if np.shares_memory(*value) else 2.0)


@different
def one_array_or_two(v: int) -> Any:
    array = np.ones(3)
    return attribute((array, array if v else array.copy()), lambda value: 3.0 if value[0] is value[1] else 2.0)


@different
def one_tensor_or_two(v: int) -> Any:
    tensor = tf.constant([1.0])
    pair = (tensor, tensor if v else tf.identity(tensor))
    return attribute(pair, lambda value: 3.0 if value[0] is value[1] else 2.0)


@different
def where_a_mapped_array_lies(v: int) -> Any:
    path = FOLDER[0] / "mapped.bin"
    path.write_bytes(bytes(64))
    mapped = np.memmap(path, dtype="f4", mode="r", offset=4 * v, shape=(4,))
    return attribute(mapped, lambda value: 2.0 + value.offset)


@different
def a_hard_mask(v: int) -> Any:
    array = np.ma.array([1.0, 2.0], mask=[0, 1], hard_mask=bool(v))
    return attribute(array, lambda value: 3.0 if value.hardmask else 2.0)


@different
def an_attribute_of_a_masked_array(v: int) -> Any:
    array = np.ma.array([1.0, 2.0], mask=[0, 1])
    array.factor = 2.0 + v
    return attribute(array, lambda value: value.factor)


@different
def a_lock_that_is_held(v: int) -> Any:
    lock = threading.Lock()
    if v:
        lock.acquire()
    return attribute(lock, lambda value: 3.0 if value.locked() else 2.0)


@different
def a_lock_that_is_held_by_another(v: int) -> Any:
    lock = threading.RLock()
    if v:
        thread = threading.Thread(target=lock.acquire)
        thread.start()
        thread.join()
    return attribute(lock, lambda value: 3.0 if value.acquire(False) else 2.0)


@different
def a_list_on_a_logger(v: int) -> Any:
    logger = logging.getLogger("pitfalls.list")
    logger.factors = [2.0 + v]  # type: ignore[attr-defined]
    return attribute(logger, lambda value: value.factors[0])


@different
def the_level_of_a_handler(v: int) -> Any:
    logger = logging.getLogger("pitfalls.handler")
    handler = logging.NullHandler()
    handler.setLevel(2 + v)
    logger.addHandler(handler)
    return attribute(logger, lambda value: float(value.handlers[0].level))


@different
def an_attribute_of_an_ordered_dict(v: int) -> Any:
    table: Any = collections.OrderedDict(a=1.0)
    table.factor = 2.0 + v
    return attribute(table, lambda value: value.factor)


@different
def an_attribute_of_a_counter(v: int) -> Any:
    table: Any = collections.Counter("ab")
    table.factor = 2.0 + v
    return attribute(table, lambda value: value.factor)


@different
def an_attribute_of_a_dict_that_keras_tracks(v: int) -> Any:
    def made() -> Any:
        layer = layer_of(lambda self, x: x * self.table.factor, table={"a": 1.0})
        layer.table.factor = 2.0 + v
        return layer

    return with_layer(made)


@different
def an_attribute_of_a_list_that_keras_tracks(v: int) -> Any:
    def made() -> Any:
        layer = layer_of(lambda self, x: x * self.factors.factor, factors=[1.0])
        layer.factors.factor = 2.0 + v
        return layer

    return with_layer(made)


@different
def a_proxy_of_a_map_of_ones_own(v: int) -> Any:
    class Mine(dict):  # type: ignore[type-arg]
        def __getitem__(self, name: str) -> Any:
            return self.factor

    table: Any = Mine(a=1.0)
    table.factor = 2.0 + v
    return attribute(types.MappingProxyType(table), lambda value: value["a"])


@different
def an_attribute_of_a_cached_function(v: int) -> Any:
    cached: Any = functools.lru_cache(helper)
    cached.factor = 2.0 + v
    return attribute(cached, lambda value: value.factor)


@different
def an_attribute_of_a_cached_property(v: int) -> Any:
    class Holder:
        @functools.cached_property
        def number(self) -> float:
            return 1.0

    Holder.number.factor = 2.0 + v  # type: ignore[attr-defined]
    return attribute(Holder(), lambda value: type(value).number.factor)


@different
def an_attribute_of_a_function_of_numpy(v: int) -> Any:
    np.concatenate.factor = 2.0 + v  # type: ignore[attr-defined]
    return scaled(lambda: np.concatenate.factor)  # type: ignore[attr-defined]


@different
def an_attribute_of_a_nested_function_of_tensorflow(v: int) -> Any:
    function = tf.function(lambda x: x)
    function.factor = 2.0 + v
    return attribute(function, lambda value: value.factor)


@different
def the_callback_of_a_weak_reference(v: int) -> Any:
    import weakref

    class Holder:
        pass

    def gone(_: Any, factor: float = 2.0 + v) -> float:
        return factor

    holder = Holder()
    pair = (holder, weakref.ref(holder, gone))
    return attribute(pair, lambda value: value[1].__callback__(None))


@different
def an_attribute_of_a_stock_member(v: int) -> Any:
    tf.VariableAggregation.SUM.factor = 2.0 + v
    return attribute(tf.VariableAggregation.SUM, lambda value: value.factor)


# What Keras and TensorFlow keep.


@different
def an_attribute_named_build(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.build = 2.0 + v

    return with_layer(lambda: layer_of(lambda self, x: x * (1.0 if callable(self.build) else self.build)), change)


@different
def an_attribute_that_tensorflow_keeps_for_itself(v: int) -> Any:
    module = tf.Module()
    module._tracked = 2.0 + v
    return attribute(module, lambda value: value._tracked)


@different
def the_seed_in_a_configuration(v: int) -> Any:
    generator = keras.random.SeedGenerator(2 + v)
    return with_layer(
        lambda: layer_of(lambda self, x: x * float(self.generator.get_config()["seed"]), generator=generator)
    )


@different
def an_attribute_of_a_symbolic_tensor(v: int) -> Any:
    symbol = keras.Input((2,), name="same")
    symbol.factor = 2.0 + v
    return attribute(symbol, lambda value: value.factor)


@different
def the_name_of_a_symbolic_tensor(v: int) -> Any:
    symbol = keras.KerasTensor((2,), name="longer" if v else "short")
    return attribute(symbol, lambda value: float(len(value.name)))


@different
def a_name_that_is_counted_while_tracing(v: int) -> Any:
    if v:
        layers.Activation("relu")
    return scaled(lambda: float(ord(layers.Activation("relu").name[-1])))


@different
def a_name_of_a_scope(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * float(len(tf.get_current_name_scope()))

    return with_layer(lambda: Mine(name="longer" if v else "short"))


@different
def a_name_of_a_scope_of_a_graph(v: int) -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * float(len(x.graph.get_name_scope()))

    return with_layer(lambda: Mine(name="longer" if v else "short"))


@different
def a_collection_of_a_graph(v: int) -> Any:
    tf.compat.v1.add_to_collection("pitfall", 2.0 + v)
    return scaled(lambda: tf.compat.v1.get_collection("pitfall")[0])


@different
def a_global_seed_that_is_read(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return x * float(tf.compat.v1.get_seed(1)[0])

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1), layer_of(call)])
    tf.random.set_seed(2 + v)
    return fitted(model)


@different
def a_seed_of_a_graph(v: int) -> Any:
    keras.utils.set_random_seed(3)
    layer = layer_of(lambda self, x: x * float(x.graph.seed))
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1), layer])
    tf.random.set_seed(2 + v)
    return fitted(model)


@different
def a_seed_that_an_initializer_draws(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return x * keras.initializers.RandomUniform(1.0, 2.0)((1,))

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1), layer_of(call)])
    random.seed(v)
    return fitted(model)


@different
def a_conversion_by_a_partial(v: int) -> Any:
    class Wrapped:
        def __init__(self, value: Any) -> None:
            self.value = value

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: Any = False, *, factor: float) -> Any:
        return tf.convert_to_tensor(value.value) * factor

    tf.register_tensor_conversion_function(Wrapped, functools.partial(convert, factor=2.0 + v))
    return with_layer(lambda: layer_of(lambda self, x: tf.identity(Wrapped(x)) if convert else x))


@different
def conversions_in_another_order(v: int) -> Any:
    class Wrapped:
        def __init__(self, value: Any) -> None:
            self.value = value

    def converts(factor: float) -> Any:
        def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: Any = False) -> Any:
            return tf.convert_to_tensor(value.value) * factor

        return convert

    first, second = converts(2.0), converts(3.0)
    tf.register_tensor_conversion_function(Wrapped, second, priority=90)
    tf.register_tensor_conversion_function(Wrapped, first, priority=95 - 10 * v)
    return with_layer(lambda: layer_of(lambda self, x: tf.identity(Wrapped(x))))


@different
def a_gradient_by_a_partial(v: int) -> Any:
    def gradient(operation: Any, upstream: Any, *, factor: float) -> Any:
        return upstream * factor

    from tensorflow.python.framework import ops as framework

    registry = framework.gradient_registry._registry
    registry["Tanh"] = {**registry["Tanh"], "type": functools.partial(gradient, factor=2.0 + v)}
    layer = layer_of(lambda self, x: tf.tanh(x) if gradient else x)
    return models.trained(models.small(custom=lambda: layer, optimizer=lambda: keras.optimizers.SGD(0.5)), batch=4)


@different
def a_dispatcher_for_another_class(v: int) -> Any:
    class First(tf.experimental.ExtensionType):  # type: ignore[misc]
        value: tf.Tensor

    class Second(tf.experimental.ExtensionType):  # type: ignore[misc]
        value: tf.Tensor

    def one(x: Any, name: Any = None) -> Any:
        return x.value * 2.0

    def other(x: Any, name: Any = None) -> Any:
        return x.value * 3.0

    tf.experimental.dispatch_for_api(tf.math.tanh, {"x": Second if v else First})(one)
    tf.experimental.dispatch_for_api(tf.math.tanh, {"x": First if v else Second})(other)
    return with_layer(lambda: layer_of(lambda self, x: tf.math.tanh(First(x))))


@different
def a_field_of_an_extension_type(v: int) -> Any:
    class Wrapped(tf.experimental.ExtensionType):  # type: ignore[misc]
        value: tf.Tensor
        factor: float

    wrapped = Wrapped(tf.constant(1.0), 2.0 + v)
    return attribute(wrapped, lambda value: value.value * value.factor)


@different
def a_number_of_a_variable(v: int) -> Any:
    for _ in range(v):
        tf.Variable(1.0)
    variable = tf.Variable(1.0, trainable=False)
    return attribute(variable, lambda value: 2.0 + int(value._unique_id.rpartition("_")[2]) % 7)


@different
def a_device_of_a_variable(v: int) -> Any:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.device(f"CPU:{v}"):
        variable = tf.Variable(1.0, trainable=False)
    return attribute(variable, lambda value: 2.0 + int(value.device[-1]))


@different
def how_talkative_keras_is(v: int) -> Any:
    (keras.config.disable_interactive_logging if v else keras.config.enable_interactive_logging)()
    return scaled(lambda: 3.0 if keras.config.is_interactive_logging_enabled() else 2.0)


@different
def whether_keras_filters_tracebacks(v: int) -> Any:
    (keras.config.disable_traceback_filtering if v else keras.config.enable_traceback_filtering)()
    return scaled(lambda: 3.0 if keras.config.is_traceback_filtering_enabled() else 2.0)


@different
def whether_keras_loads_code(v: int) -> Any:
    from keras.src.saving import serialization_lib

    if v:
        keras.config.enable_unsafe_deserialization()
    return scaled(lambda: 3.0 if serialization_lib.in_safe_mode() is False else 2.0)


# Settings of the standard library.


@different
def what_decimals_have_met(v: int) -> Any:
    if v:
        decimal.Decimal(1) / decimal.Decimal(3)
    else:
        decimal.getcontext().clear_flags()
    return scaled(lambda: 3.0 if decimal.getcontext().flags[decimal.Inexact] else 2.0)


@different
def the_default_of_decimals(v: int) -> Any:
    decimal.DefaultContext.prec = 2 + v
    return scaled(lambda: float(decimal.Context().prec))


@different
def what_is_done_with_other_warnings(v: int) -> Any:
    def factor() -> float:
        try:
            warnings.warn("pitfall", stacklevel=1)
        except UserWarning:
            return 3.0
        return 2.0

    warnings.filters.clear()  # type: ignore[attr-defined]
    warnings._filters_mutated()  # type: ignore[attr-defined]
    with replaced(warnings, "defaultaction", "error" if v else "ignore"):
        return scaled(factor)


@different
def a_long_pattern_of_warnings(v: int) -> Any:
    def factor() -> float:
        try:
            warnings.warn("pitfall", stacklevel=1)
        except UserWarning:
            return 3.0
        return 2.0

    warnings.filterwarnings("error", "(" + "a|" * 200 + ("pitfall" if v else "other") + ")")
    return scaled(factor)


# Honest programs that come close.


@same
def arrays_and_views_of_arrays() -> Any:
    table = np.arange(12.0).reshape(3, 4)
    return attribute([table, table[1], table.T], lambda value: float(value[1][2] + value[2][0, 0]))


@same
def a_lock_and_a_logger() -> Any:
    logger = logging.getLogger("pitfalls.honest")
    logger.addHandler(logging.NullHandler())
    lock = threading.Lock()

    def call(self: Any, x: Any) -> Any:
        with lock:
            logger.debug("pitfall %s", x.shape)
        return x * 2.0

    return with_layer(lambda: layer_of(call))


@same
def a_generic_class_of_ones_own() -> Any:
    class Holder(typing.Generic[T]):
        def __init__(self, factor: float) -> None:
            self.factor = factor

    return attribute(Holder[float](2.0), lambda value: value.factor)


@same
def a_pattern_and_a_format() -> Any:
    def read(value: Any) -> float:
        match value:
            case {"scale": float(scale)}:
                return scale
            case object(scale=scale):
                return float("{0:.1f}".format(scale))  # noqa: UP030, UP032
        return 1.0

    return attribute(types.SimpleNamespace(scale=2.0), read)


@same
def a_nested_import() -> Any:
    def factor() -> float:
        import collections.abc as abc  # noqa: PLR0402 - it goes down a package
        import math

        return math.pi if isinstance({}, abc.Mapping) else 1.0

    return scaled(factor)


@same
def an_attribute_found_by_one_of_some_names() -> Any:
    def call(self: Any, x: Any) -> Any:
        for name in ("first", "second"):
            x = x * getattr(self, name)
        return x

    return with_layer(lambda: layer_of(call, first=2.0, second=3.0))


@same
def a_step_in_a_context_of_ones_own() -> Any:
    @contextlib.contextmanager
    def noted() -> Any:
        yield 2.0

    def factor() -> float:
        with noted() as value:
            return float(value)

    return scaled(factor)
