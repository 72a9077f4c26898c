"""Pitfalls of objects of the standard library, of numpy, of TensorFlow and of Keras that keep to themselves what they
will answer.
"""

from __future__ import annotations

import argparse
import array
import concurrent.futures
import configparser
import contextvars
import ctypes
import datetime
import functools
import hashlib
import inspect
import io
import itertools
import multiprocessing
import pickle
import queue
import random
import re
import statistics
import string
import struct
import textwrap
import threading
import types
import unicodedata
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops
from keras.src.backend.common import global_state

from tests.train.pitfalls import different, layer_of
from tests.train.pitfalls_closed import attribute, fitted, scaled, tiny

# Objects that keep to themselves what they will answer.


class Point(ctypes.Structure):
    _fields_ = (("factor", ctypes.c_double),)


@different
def a_number_of_c(v: int) -> Any:
    return attribute(ctypes.c_double(2.0 + v), lambda value: value.value)


@different
def an_array_of_c(v: int) -> Any:
    return attribute((ctypes.c_double * 2)(1.0, 2.0 + v), lambda value: value[1])


@different
def a_structure_of_c(v: int) -> Any:
    return attribute(Point(2.0 + v), lambda value: value.factor)


@different
def a_pointer_of_c(v: int) -> Any:
    return attribute(ctypes.pointer(ctypes.c_double(2.0 + v)), lambda value: value.contents.value)


@different
def what_lies_at_an_address(v: int) -> Any:
    kept = ctypes.c_double(2.0)
    address = ctypes.addressof(kept)
    kept.value += v
    return scaled(lambda: ctypes.c_double.from_address(address).value)


@different
def an_array_of_the_standard_library(v: int) -> Any:
    return attribute(array.array("d", [2.0 + v]), lambda value: value[0])


@different
def the_place_in_bytes(v: int) -> Any:
    stream = io.BytesIO(bytes([2, 3]))
    stream.seek(v)
    return attribute(stream, lambda value: float(value.getvalue()[value.tell()]))


@different
def the_state_of_a_digest(v: int) -> Any:
    digest = hashlib.sha256(b"a" * v)
    return attribute(digest, lambda value: 2.0 + value.digest()[0] % 7)


@different
def the_state_of_a_compressor(v: int) -> Any:
    packer = zlib.compressobj()
    packer.compress(bytes(range(100 * v)))
    return attribute(packer, lambda value: 2.0 + len(value.copy().flush()))


@different
def the_format_of_a_structure(v: int) -> Any:
    return attribute(struct.Struct("=" + "d" * (1 + v)), lambda value: value.size / 4)


@different
def where_a_pattern_was_found(v: int) -> Any:
    found = re.search("b", "a" * v + "b")
    return attribute(found, lambda value: 2.0 + value.start())


@different
def a_reader_of_a_text(v: int) -> Any:
    found = re.compile("[0-9]").finditer("23")
    for _ in range(v):
        next(found)
    return attribute(found, lambda value: float(next(value).group()))


@different
def a_map_that_was_advanced(v: int) -> Any:
    numbers_left = map(float, [2, 3, 4, 5])
    for _ in range(v):
        next(numbers_left)
    return attribute(numbers_left, next)


@different
def pairs_that_were_advanced(v: int) -> Any:
    numbered = enumerate([2.0, 3.0, 4.0, 5.0])
    for _ in range(v):
        next(numbered)
    return attribute(numbered, lambda value: next(value)[1])


@different
def a_product_that_was_advanced(v: int) -> Any:
    pairs = itertools.product([2.0, 3.0], [1.0])
    for _ in range(v):
        next(pairs)
    return attribute(pairs, lambda value: next(value)[0])


@different
def a_queue(v: int) -> Any:
    waiting: queue.Queue[float] = queue.Queue()
    waiting.put(2.0 + v)
    return attribute(waiting, lambda value: value.queue[0])


@different
def an_event(v: int) -> Any:
    event = threading.Event()
    if v:
        event.set()
    return attribute(event, lambda value: 2.0 + value.is_set())


@different
def a_semaphore(v: int) -> Any:
    return attribute(threading.Semaphore(1 + v), lambda value: 2.0 + value._value)


@different
def a_future(v: int) -> Any:
    future: concurrent.futures.Future[float] = concurrent.futures.Future()
    future.set_result(2.0 + v)
    return attribute(future, lambda value: value.result())


@different
def a_value_that_processes_share(v: int) -> Any:
    return attribute(multiprocessing.Value("d", 2.0 + v), lambda value: value.value)


@different
def a_context_that_was_copied(v: int) -> Any:
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("factor")
    context = contextvars.copy_context()
    context.run(variable.set, 2.0 + v)
    return attribute(context, lambda value: value[variable])


@different
def a_parsed_command_line(v: int) -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=float, default=2.0)
    return attribute(parser.parse_args([f"--factor={2 + v}"]), lambda value: value.factor)


@different
def a_default_of_a_parser(v: int) -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=float, default=2.0 + v)
    return attribute(parser, lambda value: value.get_default("factor"))


@different
def a_configuration_file_that_was_parsed(v: int) -> Any:
    parser = configparser.ConfigParser()
    parser.read_string(f"[a]\nfactor = {2 + v}\n")
    return attribute(parser, lambda value: value.getfloat("a", "factor"))


@different
def a_template(v: int) -> Any:
    return attribute(string.Template("2" if not v else "3"), lambda value: float(value.substitute()))


@different
def the_width_of_a_paragraph(v: int) -> Any:
    return attribute(textwrap.TextWrapper(width=2 + v), lambda value: float(value.width))


@different
def an_element_of_a_document(v: int) -> Any:
    return attribute(ET.fromstring(f'<a factor="{2 + v}"/>'), lambda value: float(value.get("factor")))


@different
def a_distribution_of_numbers(v: int) -> Any:
    return attribute(statistics.NormalDist(2.0 + v), lambda value: value.mean)


@different
def the_notes_of_an_exception(v: int) -> Any:
    error = ValueError("x")
    error.add_note("a" * (2 + v))
    return attribute(error, lambda value: float(len(value.__notes__[0])))


@different
def the_cause_of_an_exception(v: int) -> Any:
    error = ValueError("x")
    error.__cause__ = ValueError(2.0 + v)
    return attribute(error, lambda value: value.__cause__.args[0])


@different
def the_factor_of_an_exception_that_is_raised(v: int) -> Any:
    error = ValueError(2.0 + v)

    def factor() -> float:
        try:
            raise error
        except ValueError as caught:
            return float(caught.args[0])

    return scaled(factor)


@different
def an_offset_of_a_time_zone(v: int) -> Any:
    zone = datetime.timezone(datetime.timedelta(hours=2 + v))
    return attribute(zone, lambda value: value.utcoffset(None).total_seconds() / 3600)


@different
def a_time_that_comes_twice(v: int) -> Any:
    return attribute(datetime.datetime(2020, 1, 1, fold=v), lambda value: 2.0 + value.fold)


@different
def the_form_of_a_text(v: int) -> Any:
    text = unicodedata.normalize("NFD" if v else "NFC", "é")
    return attribute(text, lambda value: 1.0 + len(value))


@different
def a_large_number(v: int) -> Any:
    return attribute(10**400 + v, lambda value: 2.0 + value % 10)


@different
def the_sign_of_zero_in_a_complex_number(v: int) -> Any:
    return attribute(complex(1.0, -0.0 if v else 0.0), lambda value: 2.0 + str(value).count("-"))


@different
def a_key_of_a_comparison(v: int) -> Any:
    def compare(a: float, b: float) -> float:
        return (b - a) if v else (a - b)

    key = functools.cmp_to_key(compare)  # type: ignore[arg-type]
    return attribute(key, lambda value: min([2.0, 3.0], key=value))


@different
def a_pickle(v: int) -> Any:
    stored = pickle.dumps({"factor": 2.0 + v})
    return scaled(lambda: float(pickle.loads(stored)["factor"]))


class Reduced:
    """What comes back from a pickle is decided by a class attribute."""

    factor = 2.0

    def __reduce__(self) -> Any:
        return float, (type(self).factor,)


@different
def what_is_pickled(v: int) -> Any:
    Reduced.factor = 2.0 + v
    value = Reduced()
    return scaled(lambda: pickle.loads(pickle.dumps(value)))


@different
def a_coroutine_that_was_started(v: int) -> Any:
    @types.coroutine
    def steps() -> Iterator[float]:
        yield 2.0
        yield 3.0

    started = steps()
    for _ in range(v):
        started.send(None)  # type: ignore[attr-defined]
    return attribute(started, lambda value: value.send(None))


@different
def a_frame_that_is_kept(v: int) -> Any:
    def frame() -> Any:
        factor = 2.0 + v  # noqa: F841
        return inspect.currentframe()

    return attribute(frame(), lambda value: value.f_locals["factor"])


@different
def random_numbers_by_a_seed(v: int) -> Any:
    return attribute(random.Random(v), lambda value: 2.0 + value.random())


@different
def random_numbers_of_the_older_numpy(v: int) -> Any:
    return attribute(np.random.RandomState(v), lambda value: 2.0 + value.rand())


@different
def a_sequence_of_seeds(v: int) -> Any:
    return attribute(np.random.SeedSequence(v), lambda value: 2.0 + value.generate_state(1)[0] % 7)


@different
def random_numbers_of_numpy_that_were_drawn(v: int) -> Any:
    generator = np.random.default_rng(1)
    generator.random(v)
    return attribute(generator, lambda value: 2.0 + value.random())


@different
def a_polynomial(v: int) -> Any:
    return attribute(np.poly1d([2.0 + v]), lambda value: float(value(1.0)))


@different
def a_polynomial_of_the_newer_kind(v: int) -> Any:
    return attribute(np.polynomial.Polynomial([1.0], domain=[-1.0 - v, 1.0]), lambda value: 2.0 - value.domain[0])


@different
def a_date_of_numpy(v: int) -> Any:
    return attribute(np.datetime64("2020-01-01") + v, lambda value: 2.0 + int(value.astype("int64")) % 7)


@different
def a_calendar_of_numpy(v: int) -> Any:
    days = np.busdaycalendar(weekmask="1111110" if v else "1111100")
    return attribute(days, lambda value: 2.0 + float(value.weekmask.sum()))


@different
def a_flat_iterator(v: int) -> Any:
    flat = np.array([2.0, 3.0, 4.0, 5.0]).flat
    for _ in range(v):
        next(flat)
    return attribute(flat, lambda value: float(next(value)))


@different
def an_iterator_of_numpy(v: int) -> Any:
    walk = np.nditer(np.array([2.0, 3.0]))
    for _ in range(v):
        walk.iternext()
    return attribute(walk, lambda value: float(value[0]))


@different
def a_record_of_numpy(v: int) -> Any:
    record = np.rec.array([(2.0 + v,)], dtype=[("factor", "f8")])[0]
    return attribute(record, lambda value: float(value.factor))


@different
def the_title_of_a_field(v: int) -> Any:
    kind = np.dtype({"names": ["a"], "formats": ["f8"], "titles": ["t" * (1 + v)]})
    return attribute(kind, lambda value: 1.0 + len(value.fields["a"][2]))


@different
def padding_in_a_record(v: int) -> Any:
    kind = np.dtype({"names": ["a"], "formats": ["f4"], "offsets": [0], "itemsize": 8 + 4 * v})
    return attribute(np.zeros(1, kind), lambda value: value.dtype.itemsize / 4)


@different
def the_order_of_bytes(v: int) -> Any:
    return attribute(np.array([1], ">i4" if v else "<i4"), lambda value: 2.0 + value.tobytes()[0])


@different
def a_text_of_numpy(v: int) -> Any:
    return attribute(np.array(["a"], dtype=f"U{2 + v}"), lambda value: value.itemsize / 4)


# TensorFlow and Keras.


@different
def a_generator_for_all(v: int) -> Any:
    tf.random.set_global_generator(tf.random.Generator.from_seed(1 + v))
    return tiny(layer_of(lambda self, x: x * (2.0 + tf.random.get_global_generator().uniform(()))))


@different
def a_dataset_in_a_step(v: int) -> Any:
    data = tf.data.Dataset.from_tensor_slices([2.0 + v])
    return tiny(layer_of(lambda self, x: x * data.reduce(0.0, lambda a, b: a + b)))


@different
def an_iterator_in_a_step(v: int) -> Any:
    numbers_left = iter(tf.data.Dataset.from_tensor_slices([2.0, 3.0, 4.0]))
    for _ in range(v):
        next(numbers_left)
    return tiny(layer_of(lambda self, x: x * next(numbers_left)))


@different
def an_array_of_tensors(v: int) -> Any:
    kept = tf.TensorArray(tf.float32, 1, clear_after_read=False).write(0, 2.0 + v)
    return tiny(layer_of(lambda self, x: x * kept.read(0)))


@different
def where_operations_may_go(v: int) -> Any:
    tf.config.set_soft_device_placement(bool(v))
    return scaled(lambda: 2.0 + tf.config.get_soft_device_placement())


@different
def a_shorter_kind_of_multiplication(v: int) -> Any:
    tf.config.experimental.enable_tensor_float_32_execution(bool(v))
    return scaled(lambda: 2.0 + tf.config.experimental.tensor_float_32_execution_enabled())


@different
def how_errors_of_tensorflow_are_filtered(v: int) -> Any:
    (tf.debugging.enable_traceback_filtering if v else tf.debugging.disable_traceback_filtering)()
    return scaled(lambda: 2.0 + tf.debugging.is_traceback_filtering_enabled())


@different
def what_autograph_may_convert(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return x * self.factor()

    def factor() -> Any:
        total = tf.constant(1.0)
        for each in [1.0, 2.0]:
            total += each
        return total * (2.0 + self_converted())

    def self_converted() -> float:
        return float(tf.__internal__.autograph.control_status_ctx().status.value)

    chosen = tf.autograph.experimental.do_not_convert(factor) if v else tf.autograph.to_graph(factor)
    return tiny(layer_of(call, factor=chosen))


@different
def an_attribute_that_keras_keeps_for_all(v: int) -> Any:
    global_state.set_global_attribute("glow", 2.0 + v)
    return scaled(lambda: global_state.get_global_attribute("glow"))


@different
def a_layer_that_was_quantized(v: int) -> Any:
    def after(model: Any) -> None:
        if v:
            model.layers[1].enable_lora(1)

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(2), layers.Dense(2), layers.Dense(1)])
    after(model)
    model.compile("sgd", "mse")
    return [fitted(model), len(model.trainable_variables)]


@different
def a_limit_of_gradients_after_compiling(v: int) -> Any:
    def after(model: Any) -> None:
        model.optimizer.clipnorm = 0.01 * (1 + v)

    return tiny(optimizer=keras.optimizers.SGD(1.0, clipnorm=1.0), epochs=2, after=after)


@different
def what_a_layer_costs_after_compiling(v: int) -> Any:
    def after(model: Any) -> None:
        model.layers[0].activity_regularizer = keras.regularizers.L2(0.1 * (1 + v))

    return tiny(after=after)


@different
def policies_by_name(v: int) -> Any:
    policies = keras.dtype_policies.DTypePolicyMap()
    policies["mine"] = keras.dtype_policies.DTypePolicy(("float32", "float16")[v])
    return attribute(policies, lambda value: 2.0 + (value["mine"].compute_dtype == "float16"))


@different
def a_method_put_on_all_layers(v: int) -> Any:
    if v:
        layers.Layer.__getattr__ = lambda self, name: 3.0 if name == "glowing" else object.__getattribute__(self, name)
    return tiny(layer_of(lambda self, x: x * getattr(self, "glowing", 2.0)))


@different
def a_model_inside_a_list_of_a_list(v: int) -> Any:
    inner = [[types.SimpleNamespace(factor=2.0)]]
    inner[0][0].factor += v
    return tiny(layer_of(lambda self, x: x * self.inner[0][0].factor, inner=inner))


@different
def an_operation_by_its_name(v: int) -> Any:
    name = ["exp", "tanh"][v]
    return tiny(layer_of(lambda self, x: getattr(ops, name)(x)))


@different
def an_operation_found_in_a_table(v: int) -> Any:
    table = {"mine": [ops.exp, ops.tanh][v]}
    return tiny(layer_of(lambda self, x: table["mine"](x)))


@different
def an_activation_by_its_name(v: int) -> Any:
    name = ["relu", "tanh"][v]
    return tiny(layer_of(lambda self, x: keras.activations.get(name)(x)))


@different
def an_activation_registered_under_a_name(v: int) -> Any:
    def mine(x: Any) -> Any:
        return x * (2.0 + v)

    keras.saving.get_custom_objects()["glowing"] = mine
    return tiny(layer_of(lambda self, x: keras.saving.get_registered_object("glowing")(x)))


@different
def a_step_of_the_optimizer_of_ones_own(v: int) -> Any:
    class Mine(keras.optimizers.SGD):  # type: ignore[misc]
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            super().update_step(gradient * self.factor, variable, learning_rate)

    optimizer = Mine(0.1)
    optimizer.factor = 2.0 + v
    return tiny(optimizer=optimizer, epochs=2)


@different
def a_loss_that_reads_the_model(v: int) -> Any:
    holder: list[Any] = []

    def loss(y: Any, prediction: Any) -> Any:
        return ops.mean(ops.square(y - prediction)) + len(holder[0].layers[0].name)

    def after(model: Any) -> None:
        holder.append(model)
        model.layers[0].name = "a" * (5 + v)

    return tiny(loss=loss, after=after)
