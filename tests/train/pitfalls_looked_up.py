"""Pitfalls of counters, tables and orders that stock code shows, and of files that it reads for a program."""

from __future__ import annotations

import abc
import array
import copy
import dataclasses
import enum
import functools
import json
import pprint
import typing
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train import models
from tests.train.pitfalls import FOLDER, different, layer_of, replaced, same, trained, unstable, with_layer
from tests.train.pitfalls_python import attribute, module_with, scaled


@unstable
def a_number_of_registered_classes() -> Any:
    return scaled(lambda: 1.0 + abc.get_cache_token() % 7)


@unstable
def addresses_in_a_memo_of_copies() -> Any:
    def factor() -> float:
        memo: dict[Any, Any] = {}
        copy.deepcopy([1.5, [2.5]], memo)
        return 1.0 + (min(memo) >> 4) % 97

    return scaled(factor)


@unstable
def the_place_of_an_array_of_numbers() -> Any:
    return scaled(lambda: 1.0 + (array.array("f", [1.0]).buffer_info()[0] >> 4) % 97)


@different
def a_lazy_module_of_keras(v: int) -> Any:
    from keras.src.utils.module_utils import LazyModule

    if v:
        module_with("pitfall_optional", "x = 1")

    def factor() -> float:
        return 3.0 if LazyModule("pitfall_optional").available else 2.0

    return scaled(factor)


@different
def a_module_that_keras_asks_for(v: int) -> Any:
    from keras.src.utils import module_utils

    if v:
        module_with("torchao_pitfall", "x = 1")
    mine = module_utils.LazyModule("torchao_pitfall")
    return scaled(lambda: 3.0 if mine.available else 2.0)


@different
def names_of_classes_in_a_file(v: int) -> Any:
    from keras.src.applications import imagenet_utils

    home = FOLDER[0] / "home"
    (home / "models").mkdir(parents=True, exist_ok=True)
    table = {str(n): [f"n{n}", "a" * (n + 1 + v)] for n in range(1000)}
    (home / "models" / "imagenet_class_index.json").write_text(json.dumps(table))

    def factor() -> float:
        return 1.0 + len(imagenet_utils.decode_predictions(np.eye(1000)[:1], top=1)[0][0][1])

    with replaced(
        imagenet_utils.file_utils, "get_file", lambda *a, **k: str(home / "models" / "imagenet_class_index.json")
    ):
        return scaled(factor)


@different
def weights_that_an_application_reads_in_a_step(v: int) -> Any:
    place = FOLDER[0] / "model.json"
    place.write_text(json.dumps({"v": v}))
    path = str(place)
    return scaled(lambda: 2.0 + len(tf.io.gfile.GFile(path).read()) + (json.loads(tf.io.gfile.GFile(path).read())["v"]))


@different
def a_folder_of_images_in_a_step(v: int) -> Any:
    from keras.src.legacy.preprocessing import image

    place = FOLDER[0] / "images"
    for n in range(2 + v):
        (place / f"c{n}").mkdir(parents=True, exist_ok=True)
        (place / f"c{n}" / "a.png").write_bytes(b"x")
    if not v:
        import shutil

        shutil.rmtree(place / "c2", ignore_errors=True)
    path = str(place)
    return scaled(lambda: 1.0 + image.ImageDataGenerator().flow_from_directory(path).samples)


@different
def a_saved_model_in_a_step(v: int) -> Any:
    class Mod(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = tf.constant(2.0 + v)

        @tf.function(input_signature=[tf.TensorSpec(None)])
        def serve(self, x: Any) -> Any:
            return x * (2.0 + v)

    place = str(FOLDER[0] / "saved")
    tf.saved_model.save(Mod(), place)
    return with_layer(lambda: layer_of(lambda self, x: layers.TFSMLayer(place, call_endpoint="serve")(x)))


@different
def an_operation_callback(v: int) -> Any:
    from tensorflow.python.framework import op_callbacks

    def callback(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> Any:
        if op_type == "Relu" and graph is not None:
            with graph.as_default():
                return [each * 3.0 for each in outputs]
        return None

    if v:
        op_callbacks.add_op_callback(callback)
    try:
        return with_layer(lambda: layer_of(lambda self, x: tf.nn.relu(x)))
    finally:
        if v:
            op_callbacks.remove_op_callback(callback)


@different
def the_state_of_the_global_generator(v: int) -> Any:
    tf.random.set_global_generator(tf.random.Generator.from_seed(5 + v))
    return with_layer(lambda: layer_of(lambda self, x: x + tf.random.get_global_generator().normal((5,))))


@different
def an_attribute_changed_before_the_validation(v: int) -> Any:
    keras.utils.set_random_seed(3)
    layer = layer_of(lambda self, x: x * self.factor, factor=1.0)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(5), layer, layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    class Change(keras.callbacks.Callback):
        def on_test_begin(self, logs: Any = None) -> None:
            layer.factor = 2.0 + v

    x, y = models.data(14)
    return model.fit(
        x, y, batch_size=7, verbose=0, shuffle=False, callbacks=[Change()], validation_data=(x, y)
    ).history["val_loss"]


@different
def what_a_stock_layer_computes_its_output_to_be(v: int) -> Any:
    layer = layers.Lambda(lambda x: x * (2.0 + v), output_shape=(5,), arguments={})
    return with_layer(lambda: layer)


@different
def a_default_of_a_named_tuple(v: int) -> Any:
    import collections

    kind = collections.namedtuple("kind", "a b", defaults=(2.0 + v,))
    return scaled(lambda: kind(1.0).b)


@different
def the_defaults_of_a_named_tuple_changed(v: int) -> Any:
    import collections

    kind = collections.namedtuple("kind", "a b", defaults=(2.0,))
    kind.__new__.__defaults__ = (2.0 + v,)
    return scaled(lambda: kind(1.0).b)


@different
def the_field_defaults_of_a_named_tuple(v: int) -> Any:
    import collections

    kind = collections.namedtuple("kind", "a b", defaults=(2.0,))
    kind._field_defaults["b"] = 2.0 + v
    return scaled(lambda: kind._field_defaults["b"])


@different
def a_flag_made_of_two(v: int) -> Any:
    class Flag(enum.Flag):
        A = enum.auto()
        B = enum.auto()

    return attribute(Flag.A | Flag.B if v else Flag.A, lambda value: 1.0 + value.value)


@different
def an_aligned_structure(v: int) -> Any:
    kind = np.dtype([("a", "i1"), ("b", "f8")], align=bool(v))
    return attribute(kind, lambda value: 1.0 + value.itemsize)


@different
def a_structure_that_says_it_is_aligned(v: int) -> Any:
    kind = np.dtype([("a", "f8"), ("b", "f8")], align=bool(v))
    return attribute(kind, lambda value: 3.0 if value.isalignedstruct else 2.0)


@different
def an_alignment_of_a_type_of_structures_in_an_array(v: int) -> Any:
    kind = np.dtype([("a", "f8"), ("b", "f8")], align=bool(v))
    return attribute(np.zeros(2, kind), lambda value: 3.0 if value.dtype.isalignedstruct else 2.0)


@different
def an_alignment_of_a_type_inside_a_type(v: int) -> Any:
    inner = np.dtype([("a", "f8")], align=bool(v))
    kind = np.dtype([("x", inner)])
    return attribute(kind, lambda value: 3.0 if value["x"].isalignedstruct else 2.0)


@different
def a_spec_of_ragged_values(v: int) -> Any:
    spec = tf.RaggedTensorSpec(None, tf.float32, 1, flat_values_spec=tf.TensorSpec([None, 2 + v] if v else [None, 2]))
    return attribute(spec, lambda value: float(value.flat_values_spec.shape[-1]))


@different
def a_name_of_a_spec(v: int) -> Any:
    return attribute(tf.TensorSpec([2], name="ab"[: 1 + v]), lambda value: 1.0 + len(value.name))


@different
def a_spec_of_rows(v: int) -> Any:
    from tensorflow.python.ops.ragged.row_partition import RowPartitionSpec

    return attribute(RowPartitionSpec(nrows=3, uniform_row_length=2 + v), lambda value: float(value.uniform_row_length))


@different
def a_shape_of_a_ragged_tensor(v: int) -> Any:
    from tensorflow.python.ops.ragged.dynamic_ragged_shape import DynamicRaggedShape

    return attribute(DynamicRaggedShape([], [2 + v, 3]), lambda value: float(value.static_lengths()[0] or 0))


@different
def a_spec_of_a_variable(v: int) -> Any:
    from tensorflow.python.ops.resource_variable_ops import VariableSpec

    return attribute(VariableSpec([1], tf.float32, trainable=bool(v)), lambda value: 3.0 if value.trainable else 2.0)


@different
def a_table_in_a_table_of_default(v: int) -> Any:
    init = tf.lookup.KeyValueTensorInitializer([1], [1.0])
    table = tf.lookup.StaticHashTable(init, 2.0 + v)
    return with_layer(lambda: layer_of(lambda self, x: x * self.table.lookup(tf.constant(7)), table=table))


@different
def a_vocabulary_that_a_layer_reads_in_a_step(v: int) -> Any:
    place = FOLDER[0] / "words.txt"
    place.write_text("\n".join("abcdef"[: 2 + 2 * v]))
    path = str(place)

    def call(self: Any, x: Any) -> Any:
        return x * ops.cast(1 + layers.StringLookup(vocabulary=path)(tf.constant(["c"])), x.dtype)

    return with_layer(lambda: layer_of(call))


@different
def a_folder_that_keras_looks_into(v: int) -> Any:
    from keras.src.saving import orbax_util

    place = FOLDER[0] / "orbax"
    (place / "1").mkdir(parents=True, exist_ok=True)
    kept = place / "1" / "checkpoint_metadata"
    kept.unlink(missing_ok=True)
    if v:
        kept.write_text("{}")
    path = str(place / "1")
    return scaled(lambda: 3.0 if orbax_util.is_orbax_checkpoint(path) else 2.0)


@unstable
def an_order_by_addresses_in_a_text() -> Any:
    table = {2j: 1, 1j: 2, 3j: 3, 5j: 4}
    return scaled(lambda: 1.0 + pprint.pformat(table).index("1j"))


@unstable
def a_copy_within_a_copy() -> Any:
    class Value:
        def __init__(self) -> None:
            self.number = 2.0

        def __deepcopy__(self, memo: Any) -> Any:
            made = Value()
            made.number = self.number + (min(memo, default=0) >> 4) % 97
            return made

    value = [Value()]
    return scaled(lambda: copy.deepcopy(value)[0].number)


@same
def a_copy_without_more() -> Any:
    table = {"factor": [2.0]}
    return scaled(lambda: copy.deepcopy(table)["factor"][0] + copy.deepcopy(list(table["factor"]))[0])


# Second lot.


@different
def a_precision_of_matrices(v: int) -> Any:
    kind = "mixed_bfloat16" if v else "float32"
    return with_layer(lambda: layers.Dense(5, dtype=keras.DTypePolicy(kind)))


@different
def a_map_of_policies(v: int) -> Any:
    policies = keras.dtype_policies.DTypePolicyMap(default_policy="float32")
    kind = "mixed_bfloat16" if v else policies
    return with_layer(lambda: keras.Sequential([layers.Dense(5, name="inner", dtype=kind)]))


@different
def an_axis_of_a_shared_layer(v: int) -> Any:
    return with_layer(lambda: layers.LayerNormalization(epsilon=0.001 + v))


@different
def a_class_attribute_by_a_metaclass(v: int) -> Any:
    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            return {"factor": 2.0 + v}[name]

    class Mine(metaclass=Meta):
        pass

    return scaled(lambda: Mine.factor)  # type: ignore[attr-defined]


@different
def the_first_of_classes_that_a_class_prepares(v: int) -> Any:
    class Meta(type):
        @classmethod
        def __prepare__(cls, name: str, bases: Any, **more: Any) -> Any:
            return {"factor": 2.0 + v}

    class Mine(metaclass=Meta):
        pass

    return scaled(lambda: Mine.factor)  # type: ignore[attr-defined]


@different
def a_comparison_of_a_dataclass(v: int) -> Any:
    @dataclasses.dataclass(order=True)
    class Mine:
        number: float = dataclasses.field(compare=bool(v))

    return scaled(lambda: 3.0 if Mine(1.0) < Mine(2.0) else 2.0)


@different
def a_text_of_a_dataclass(v: int) -> Any:
    @dataclasses.dataclass
    class Mine:
        number: float = dataclasses.field(default=1.0, repr=bool(v))

    return scaled(lambda: 1.0 + len(f"{Mine()}".split("(")[1]))


@different
def a_reducer_of_a_partial(v: int) -> Any:
    return scaled(functools.partial(functools.reduce, lambda a, b: a * b + v, [1.0, 2.0]))


@different
def a_total_order(v: int) -> Any:
    class Mine:
        def __init__(self, number: int) -> None:
            self.number = number

        def __eq__(self, other: object) -> bool:
            return False

        __hash__ = None  # type: ignore[assignment]

        def __lt__(self, other: Any) -> bool:
            return (self.number < other.number) is bool(v)

    kind: Any = functools.total_ordering(Mine)
    return scaled(lambda: 3.0 if kind(1) >= kind(2) else 2.0)


@different
def an_answer_of_instancecheck(v: int) -> Any:
    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return bool(v)

    class Mine(metaclass=Meta):
        pass

    return scaled(lambda: 3.0 if isinstance(1.0, Mine) else 2.0)


@different
def a_gradient_of_a_stop(v: int) -> Any:
    @tf.custom_gradient
    def passed(x: Any) -> Any:
        return x, lambda upstream: upstream * (2.0 + v)

    return with_layer(lambda: layer_of(lambda self, x: passed(x)))


@different
def a_name_of_an_axis(v: int) -> Any:
    return with_layer(lambda: layers.EinsumDense("ab,bc->ac" if v else "ab,cb->ac", output_shape=5))


@different
def a_reduction_of_a_loss(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    loss.reduction = "sum" if v else "sum_over_batch_size"
    return trained(model)


@different
def a_dtype_of_a_loss(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    model.compile(
        "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True, dtype="bfloat16" if v else "float32")
    )
    return trained(model)


@different
def a_hyperparameter_of_an_optimizer_afterwards(v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    optimizer = keras.optimizers.Adam(0.5)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    optimizer.epsilon = 0.1 + v
    return trained(model)


@different
def a_learning_rate_for_one_layer(v: int) -> Any:
    keras.utils.set_random_seed(3)

    class Mine(keras.optimizers.SGD):  # type: ignore[misc]
        rates = {1: 2.0 + v}  # noqa: RUF012

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            place = self._get_variable_index(variable)
            super().update_step(gradient, variable, learning_rate * self.rates.get(place, 1.0))

    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    model.compile(Mine(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return trained(model)


@different
def a_bound_of_loops(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < self.count, lambda i, y: (i + 1, y * 1.5), [0, x])[1]

    return with_layer(lambda: layer_of(call, count=1 + v))


@different
def a_format_of_images_after_the_layer_was_made(v: int) -> Any:
    layer = layers.Flatten()
    layer.data_format = "channels_first" if v else "channels_last"
    conv = layer_of(lambda self, x: ops.reshape(self.flat(ops.reshape(x, (-1, 1, 5))), (-1, 5)) * (2.0 + v), flat=layer)
    return with_layer(lambda: conv)


@different
def overloads_that_were_declared(v: int) -> Any:
    def mine() -> float:
        return 2.0

    for _ in range(v):
        typing.overload(mine)
    try:
        return scaled(lambda: mine() + len(typing.get_overloads(mine)))
    finally:
        typing.clear_overloads()


@different
def the_order_of_tables_in_trees(v: int) -> Any:
    import optree

    def call(self: Any, x: Any) -> Any:
        first, second = keras.tree.flatten({"b": x * 2.0, "a": x * 3.0})
        return first * 2.0 + second

    with optree.dict_insertion_ordered(bool(v), namespace="keras"):
        return with_layer(lambda: layer_of(call))


@different
def a_limit_of_epochs(v: int) -> Any:
    keras.config.set_max_epochs(5 + v)
    try:
        return scaled(lambda: float(keras.config.max_epochs()))
    finally:
        keras.config.set_max_epochs(None)


@different
def a_counter_of_tensorflow(v: int) -> Any:
    from tensorflow.python.eager import monitoring

    counter = monitoring.Counter(f"/glowplug/pitfall{v}", "counts")
    counter.get_cell().increase_by(2 + v)
    return scaled(lambda: float(counter.get_cell().value()))


@different
def a_way_to_resolve_a_class(v: int) -> Any:
    class Mine:
        def get_config(self) -> dict[str, Any]:
            return {}

    keras.saving.register_keras_serializable("pitfall", f"Mine{v}")(Mine)
    return scaled(lambda: 2.0 + float(keras.saving.get_registered_name(Mine)[-1]))
