"""Models of every kind that users bring, with random weights, each small enough to pack in seconds.

`BUILDERS` maps a name to a function that writes a SavedModel into a directory. Nothing here knows Glowplug.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

BUILDERS: dict[str, Callable[[Path], None]] = {}


def builder(function: Callable[[Path], None]) -> Callable[[Path], None]:
    BUILDERS[function.__name__] = function
    return function


def keras_model(function: Callable[[], keras.Model]) -> Callable[[], keras.Model]:
    def build(directory: Path) -> None:
        keras.utils.set_random_seed(7)
        model = function()
        unsettle(model)
        model.export(str(directory), verbose=False)

    BUILDERS[function.__name__] = build
    return function


def unsettle(model: keras.Model) -> None:
    """Give batch normalisations values like a trained model's; fresh ones fold away entirely."""
    rng = np.random.default_rng(3)
    for layer in model._flatten_layers():
        if isinstance(layer, L.BatchNormalization):
            layer.set_weights(
                [
                    rng.uniform(0.8, 1.2, w.shape)
                    if "gamma" in w.path or "variance" in w.path
                    else rng.normal(0, 0.1, w.shape)
                    for w in layer.weights
                ]
            )


APPLICATIONS: dict[str, Callable[..., keras.Model]] = {
    "ConvNeXtTiny": keras.applications.ConvNeXtTiny,
    "DenseNet121": keras.applications.DenseNet121,
    "EfficientNetB0": keras.applications.EfficientNetB0,
    "EfficientNetV2B0": keras.applications.EfficientNetV2B0,
    "InceptionResNetV2": keras.applications.InceptionResNetV2,
    "InceptionV3": keras.applications.InceptionV3,
    "MobileNet": keras.applications.MobileNet,
    "MobileNetV2": keras.applications.MobileNetV2,
    "MobileNetV3Small": keras.applications.MobileNetV3Small,
    "NASNetMobile": keras.applications.NASNetMobile,
    "ResNet50": keras.applications.ResNet50,
    "ResNet50V2": keras.applications.ResNet50V2,
    "VGG16": keras.applications.VGG16,
    "Xception": keras.applications.Xception,
}


def build_application(name: str, directory: Path) -> None:
    """One model of a `keras.applications` family, at a size that keeps its every operation."""
    keras.utils.set_random_seed(5)
    size = 224 if name == "NASNetMobile" else 128
    small = {"include_top": False, "pooling": "avg"} if name == "VGG16" else {"classes": 10}
    if name == "NASNetMobile":
        small = {}
    model = APPLICATIONS[name](weights=None, input_shape=(size, size, 3), **small)
    unsettle(model)
    model.export(str(directory), verbose=False)


@keras_model
def dense() -> keras.Model:
    return keras.Sequential([keras.Input((16,)), L.Dense(64, activation="relu"), L.Dense(3)])


@keras_model
def conv_bn() -> keras.Model:
    x = i = keras.Input((32, 32, 3))
    x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(8, 3, use_bias=False)(x)))
    x = L.BatchNormalization()(L.DepthwiseConv2D(3, depth_multiplier=2)(x))
    x = L.LeakyReLU()(L.BatchNormalization(scale=False)(L.SeparableConv2D(12, 3)(x)))
    x = L.BatchNormalization()(L.Dense(9)(L.GlobalAveragePooling2D()(x)))
    return keras.Model(i, x)


@keras_model
def conv_shared_twice() -> keras.Model:
    i = keras.Input((16, 16, 3))
    conv, norm = L.Conv2D(4, 3, padding="same"), L.BatchNormalization()
    first = conv(i)
    return keras.Model(i, [norm(first), L.Flatten()(first + 1.0)])


@keras_model
def lstm() -> keras.Model:
    return keras.Sequential([keras.Input((None, 6)), L.LSTM(10, return_sequences=True), L.LSTM(5), L.Dense(2)])


@keras_model
def gru_bidirectional() -> keras.Model:
    return keras.Sequential([keras.Input((9, 4)), L.Bidirectional(L.GRU(7)), L.Dense(2)])


@keras_model
def embedding_masked() -> keras.Model:
    return keras.Sequential([keras.Input((None,), dtype="int64"), L.Embedding(50, 8, mask_zero=True), L.LSTM(6)])


@keras_model
def text_vectorization() -> keras.Model:
    vectorize = L.TextVectorization(output_mode="int", output_sequence_length=6)
    vectorize.adapt(["the quick brown fox", "a glow plug", "zzz 12"])
    return keras.Sequential([keras.Input((), dtype="string"), vectorize, L.Embedding(30, 5), L.Flatten(), L.Dense(2)])


@keras_model
def string_lookup() -> keras.Model:
    lookup = L.StringLookup(vocabulary=["the", "glow plug", "zzz"], output_mode="multi_hot")
    return keras.Sequential([keras.Input((1,), dtype="string"), lookup, L.Dense(2)])


@keras_model
def integer_lookup() -> keras.Model:
    lookup = L.IntegerLookup(vocabulary=[3, 5, 70])
    return keras.Sequential([keras.Input((1,), dtype="int64"), lookup, L.Embedding(5, 3)])


@keras_model
def normalization() -> keras.Model:
    norm = L.Normalization()
    norm.adapt(np.random.default_rng(0).normal(3, 2, (64, 5)))
    return keras.Sequential([keras.Input((5,)), norm, L.Dense(2)])


@keras_model
def two_in_two_out() -> keras.Model:
    a, b = keras.Input((4,), name="a"), keras.Input((6,), name="b")
    joined = L.Concatenate()([L.Dense(3)(a), L.Dense(3)(b)])
    return keras.Model({"a": a, "b": b}, {"left": L.Dense(2)(joined), "right": L.Dense(1)(joined)})


@keras_model
def attention() -> keras.Model:
    ids = keras.Input((None,), dtype="int32")
    x = L.Embedding(60, 16)(ids)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 8)(x, x))
    return keras.Model(ids, L.Dense(2)(L.GlobalAveragePooling1D()(x)))


def _typed(dtype: str) -> Callable[[], keras.Model]:
    def model() -> keras.Model:
        with_dtype: dict[str, Any] = {"dtype": dtype}
        return keras.Sequential(
            [keras.Input((6,), dtype=dtype), L.Dense(20, activation="relu", **with_dtype), L.Dense(3, **with_dtype)]
        )

    model.__name__ = f"dense_{dtype}"
    return model


for _dtype in ("float16", "bfloat16", "float64"):
    keras_model(_typed(_dtype))


@keras_model
def mixed_float16() -> keras.Model:
    return keras.Sequential([keras.Input((6,)), L.Dense(300, dtype="mixed_float16"), L.Dense(3, dtype="float32")])


@keras_model
def uint8_image() -> keras.Model:
    return keras.Sequential([keras.Input((8, 8, 3), dtype="uint8"), L.Rescaling(1 / 255), L.Conv2D(4, 3), L.Flatten()])


@keras_model
def constant_output() -> keras.Model:
    class Constant(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(4, 100))

        def call(self, x: Any) -> Any:
            return x * 1.0, keras.ops.convert_to_tensor(self.table)

    i = keras.Input((2,))
    return keras.Model(i, Constant()(i))


def module(signatures: bool = False) -> Callable[[type], type]:
    def register(cls: type) -> type:
        def build(directory: Path) -> None:
            tf.random.set_seed(11)
            made = cls()
            chosen = made.signatures() if signatures else {"serving_default": made.call}
            tf.saved_model.save(made, str(directory), signatures=chosen)

        BUILDERS[cls.__name__] = build
        return cls

    return register


def spec(shape: Any, dtype: Any = tf.float32, name: str = "x") -> tf.TensorSpec:
    return tf.TensorSpec(shape, dtype, name)


@module()
class scalar(tf.Module):
    @tf.function(input_signature=[spec([])])
    def call(self, x: Any) -> Any:
        return {"y": x * 3.0 + 1.0}


@module()
class types(tf.Module):
    @tf.function(
        input_signature=[
            spec([None], tf.int64, "i"),
            spec([None], tf.bool, "b"),
            spec([None], tf.uint8, "u"),
            spec([None], tf.complex64, "c"),
            spec([None], tf.string, "s"),
        ]
    )
    def call(self, i: Any, b: Any, u: Any, c: Any, s: Any) -> Any:
        return {
            "i": i + 1,
            "b": tf.logical_not(b),
            "u": tf.cast(u, tf.uint8) // 2,
            "c": c * (1 + 2j),
            "s": tf.strings.join([s, "!"]),
            "l": tf.strings.length(s),
        }


@module()
class counter(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(5, dtype=tf.int64)
        self.total = tf.Variable(tf.zeros([300]))

    @tf.function(input_signature=[spec([300])])
    def call(self, x: Any) -> Any:
        self.total.assign_add(x)
        return {"count": self.count.assign_add(1), "total": self.total}


@module()
class silent_counter(tf.Module):
    """The state changes without any output that depends on the change."""

    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[spec([None])])
    def call(self, x: Any) -> Any:
        before = self.count.read_value()
        self.count.assign_add(tf.cast(tf.size(x), tf.int64))
        return {"before": before, "y": x * 2.0}


@module()
class control_flow(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal([20, 20]) * 0.1)

    @tf.function(input_signature=[spec([None, 20])])
    def call(self, x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(y @ self.kernel), lambda: y * 0.5 + 1.0)

        _, y = tf.while_loop(lambda i, y: i < 5, body, (0, x))
        if tf.reduce_sum(x) > 0:
            y = y + 1.0
        return {"y": y}


@module(signatures=True)
class several_signatures(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal([30, 40]))

    @tf.function(input_signature=[spec([None, 30])])
    def forward(self, x: Any) -> Any:
        return {"y": x @ self.kernel}

    @tf.function(input_signature=[spec([None, 40], name="z")])
    def backward(self, z: Any) -> Any:
        return {"x": z @ tf.transpose(self.kernel)}

    @tf.function(input_signature=[spec([None], tf.string, "s")])
    def upper(self, s: Any) -> Any:
        return {"s": tf.strings.upper(s)}

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": self.forward, "backward": self.backward, "upper": self.upper}


@module()
class static_table(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        keys, values = tf.constant(["the", "zzz", "12"]), tf.constant([4, 5, 6], tf.int64)
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)

    @tf.function(input_signature=[spec([None], tf.string, "s")])
    def call(self, s: Any) -> Any:
        return {"id": self.table.lookup(s), "size": self.table.size()}


@builder
def vocabulary_file(directory: Path) -> None:
    """A table that reads a file: the file becomes an asset."""

    class Vocabulary(tf.Module):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.table = tf.lookup.StaticVocabularyTable(
                tf.lookup.TextFileInitializer(
                    path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
                ),
                2,
            )

        @tf.function(input_signature=[spec([None], tf.string, "s")])
        def call(self, s: Any) -> Any:
            return {"id": self.table.lookup(s)}

    path = directory.parent / f"{directory.name}-vocabulary.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("the\nzzz\nglow plug\n")
    made = Vocabulary(str(path))
    tf.saved_model.save(made, str(directory), signatures={"serving_default": made.call})
    path.unlink()


@module()
class mutable_table(tf.Module):
    """A table whose contents come from the checkpoint and change with each call."""

    def __init__(self) -> None:
        super().__init__()
        self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.table.insert(tf.constant(["the", "zzz"]), tf.constant([1, 2], tf.int64))

    @tf.function(input_signature=[spec([None], tf.string, "s")])
    def call(self, s: Any) -> Any:
        before = self.table.lookup(s)
        with tf.control_dependencies([before]):
            self.table.insert(s, before + 10)
        return {"before": before}


@module()
class gather(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = tf.Variable(tf.random.normal([100, 7]))

    @tf.function(input_signature=[spec([None, None], tf.int32)])
    def call(self, x: Any) -> Any:
        return {"rows": tf.gather(self.table, x), "nd": tf.gather_nd(self.table, x[:, :1]), "n": tf.shape(self.table)}


@module()
class random_noise(tf.Module):
    @tf.function(input_signature=[spec([None, 4])])
    def call(self, x: Any) -> Any:
        return {"noisy": x + tf.random.normal(tf.shape(x)), "y": x * 2.0}


@module()
class ragged_strings(tf.Module):
    @tf.function(input_signature=[spec([None], tf.string, "s")])
    def call(self, s: Any) -> Any:
        words = tf.strings.split(s)
        return {"counts": words.row_lengths(), "first": words.to_tensor(default_value="-", shape=[None, 3])}


@module()
class big_constant(tf.Module):
    @tf.function(input_signature=[spec([None, 50])])
    def call(self, x: Any) -> Any:
        table = np.random.default_rng(2).normal(size=(50, 60)).astype("float32")
        return {"y": x @ tf.constant(table), "half": tf.cast(x @ tf.constant(table * 0.5), tf.float16)}


@module()
class nested_calls(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(tf.random.normal([10, 10]))
        self.seen = tf.Variable(0.0)

    @tf.function
    def inner(self, x: Any) -> Any:
        self.seen.assign_add(tf.reduce_sum(x))
        return tf.nn.relu(x @ self.w)

    @tf.function(input_signature=[spec([None, 10])])
    def call(self, x: Any) -> Any:
        y = self.inner(self.inner(x))
        with tf.control_dependencies([y]):
            return {"y": y, "seen": self.seen.read_value()}


@module()
class uses_file_op(tf.Module):
    """`ReadFile` is outside the allow-list: only the savedmodel engine takes it."""

    @tf.function(input_signature=[spec([None])])
    def call(self, x: Any) -> Any:
        exists = tf.io.matching_files("/nonexistent-glowplug/*")
        return {"y": x + tf.cast(tf.size(exists), tf.float32)}


@builder
def tf1_variables(directory: Path) -> None:
    """A SavedModel in the style of TensorFlow 1: ref variables, a fused batch norm, a table, three signatures."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("net", use_resource=False):
            x = v1.placeholder(tf.float32, [None, 8, 8, 3], "x")
            kernel = v1.get_variable("kernel", [3, 3, 3, 5], initializer=v1.glorot_uniform_initializer(seed=1))
            scale = v1.get_variable("scale", [5], initializer=v1.random_uniform_initializer(0.5, 1.5, seed=2))
            offset = v1.get_variable("offset", [5], initializer=v1.random_normal_initializer(seed=3))
            steps = v1.get_variable("steps", [], tf.int64, initializer=v1.zeros_initializer())
        y = v1.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME")
        y, _, _ = v1.nn.fused_batch_norm(y, scale, offset, mean=offset * 0.1, variance=scale, is_training=False)
        y = tf.nn.relu(y)
        count = v1.assign_add(steps, 1)
        keys = tf.constant(["the", "zzz"])
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2], tf.int64)), -1)
        s = v1.placeholder(tf.string, [None], "s")
        found = table.lookup(s)
        session.run(v1.global_variables_initializer())
        define = v1.saved_model.signature_def_utils.predict_signature_def
        save = v1.saved_model.Builder(str(directory))
        save.add_meta_graph_and_variables(
            session,
            ["serve"],
            main_op=v1.tables_initializer(),
            signature_def_map={
                "serving_default": define({"x": x}, {"y": y}),
                "count": define({"x": x}, {"n": count}),
                "lookup": define({"s": s}, {"id": found}),
            },
        )
        save.save()


@builder
def tf1_vocabulary(directory: Path) -> None:
    """A vocabulary file in the style of TensorFlow 1, in the assets collection, and loops of v1 control flow."""
    v1 = tf.compat.v1
    v2_control_flow = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    path = directory.parent / f"{directory.name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("zzz\nthe\n")
    with tf.Graph().as_default(), v1.Session() as session:
        name = tf.constant(str(path), name="vocabulary_path")
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                name, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            ),
            -1,
        )
        s = v1.placeholder(tf.string, [None], "s")
        weights = v1.get_variable("w", [300], initializer=v1.random_normal_initializer(seed=1), use_resource=False)
        _, total = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + tf.reduce_sum(weights)), (0, 0.0))
        found = table.lookup(s)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        define = v1.saved_model.signature_def_utils.predict_signature_def
        save = v1.saved_model.Builder(str(directory))
        save.add_meta_graph_and_variables(
            session,
            ["serve"],
            main_op=v1.tables_initializer(),
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            signature_def_map={"serving_default": define({"s": s}, {"id": found, "total": total})},
        )
        save.save()
    path.unlink()
    if v2_control_flow:
        v1.enable_control_flow_v2()


@module()
class unused_and_passed_through(tf.Module):
    @tf.function(input_signature=[spec([None], name="used"), spec([None], tf.int32, "unused")])
    def call(self, used: Any, unused: Any) -> Any:
        return {"same": used, "again": used, "twice": used * 2.0}


@module()
class jit_compiled(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(tf.random.normal([30, 30]))

    @tf.function(jit_compile=True)
    def inner(self, x: Any) -> Any:
        return tf.nn.softmax(x @ self.w)

    @tf.function(input_signature=[spec([None, 30])])
    def call(self, x: Any) -> Any:
        return {"y": self.inner(x)}


@keras_model
def features() -> keras.Model:
    number, word = keras.Input((1,), name="number"), keras.Input((1,), dtype="string", name="word")
    bins = L.Discretization(bin_boundaries=[-1.0, 0.0, 0.5])(number)
    hashed = L.Hashing(num_bins=8)(word)
    joined = L.Concatenate()([L.CategoryEncoding(4, "one_hot")(bins), L.CategoryEncoding(8, "one_hot")(hashed)])
    return keras.Model([number, word], L.Dense(3)(L.Dropout(0.5)(joined)))


@keras_model
def convolutions() -> keras.Model:
    i = keras.Input((12, 12, 12, 2))
    x = L.BatchNormalization()(L.Conv3D(4, 3, activation="relu")(i))
    x = L.Reshape((100, 40))(x)
    x = L.BatchNormalization()(L.Conv1D(6, 3)(x))
    x = L.Reshape((14, 42, 1))(x)
    x = L.PReLU()(L.BatchNormalization(axis=-1, center=False)(L.Conv2DTranspose(3, 3, strides=2)(x)))
    return keras.Model(i, L.Softmax()(L.Flatten()(L.UpSampling2D(interpolation="bilinear")(x))))


@keras_model
def scaled_dense() -> keras.Model:
    """Batch norms that follow dense layers, and scales that must not be absorbed because somebody else reads."""
    i = keras.Input((8,))
    first = L.Dense(20)(i)
    x = L.BatchNormalization()(first)
    y = L.Dense(20)(L.Activation("gelu")(x)) * 3.0
    return keras.Model(i, [L.Dense(1)(y + first), y])


@builder
def legacy_keras(directory: Path) -> None:
    """Keras 2, which has fused batch norms and its own LSTM; the package `tf_keras` carries it."""
    import tf_keras

    tf_keras.utils.set_random_seed(2)
    layers = tf_keras.layers
    i = tf_keras.Input((16, 16, 3))
    x = layers.ReLU()(layers.BatchNormalization(gamma_initializer="uniform")(layers.Conv2D(6, 3)(i)))
    x = layers.LSTM(5)(layers.Reshape((14, 84))(x))
    made = tf_keras.Model(i, layers.Dense(2)(x))
    tf.saved_model.save(made, str(directory))


@builder
def keras_saved_by_tensorflow(directory: Path) -> None:
    """A Keras 3 model that `tf.saved_model.save` wrote: the restore operation fills other variables than it reads."""
    keras.utils.set_random_seed(9)
    x = i = keras.Input((8, 8, 3))
    x = L.BatchNormalization()(L.Conv2D(4, 3)(x))
    made = keras.Model(i, L.Dense(3)(L.Flatten()(x)))
    unsettle(made)
    tf.saved_model.save(made, str(directory))


@builder
def keras_in_a_module(directory: Path) -> None:
    """Keras 3 models held by a `tf.Module` beside a variable of its own; two signatures, one shared layer."""
    keras.utils.set_random_seed(10)

    class Holder(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            shared = L.Dense(6)
            self.first = keras.Sequential([keras.Input((5,)), shared, L.Dense(2)])
            self.second = keras.Sequential([keras.Input((5,)), shared, L.Dense(3)])
            self.scale = tf.Variable(3.0)

        @tf.function(input_signature=[spec([None, 5])])
        def call(self, x: Any) -> Any:
            return {"y": self.first(x) * self.scale}

        @tf.function(input_signature=[spec([None, 5])])
        def other(self, x: Any) -> Any:
            return {"z": self.second(x), "y": self.call(x)["y"]}

    holder = Holder()
    signatures = {"serving_default": holder.call, "other": holder.other}
    tf.saved_model.save(holder, str(directory), signatures=signatures)


@module()
class generation(tf.Module):
    """A greedy decoding loop with past keys and values, which `keras.ops.slice_update` writes as KerasHub does."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = tf.Variable(tf.random.normal([50, 16], seed=1))
        self.project = tf.Variable(tf.random.normal([16, 32], seed=2))

    @tf.function(input_signature=[spec([None, 4], tf.int32, "prompt")])
    def call(self, prompt: Any) -> Any:
        length = 8
        batch = tf.shape(prompt)[0]
        tokens = tf.concat([prompt, tf.zeros([batch, length - 4], tf.int32)], 1)
        cache = tf.zeros([batch, length, 32])

        def step(index: Any, tokens: Any, cache: Any) -> Any:
            now = tf.gather(self.embedding, tf.gather(tokens, index - 1, axis=1))
            update = tf.expand_dims(now @ self.project, 1)
            cache = keras.ops.slice_update(cache, (0, index - 1, 0), update)
            keys, values = tf.split(cache, 2, axis=-1)
            weights = tf.nn.softmax(tf.einsum("bd,btd->bt", now, keys))
            logits = tf.einsum("bt,btd->bd", weights, values) @ tf.transpose(self.embedding)
            chosen = tf.argmax(logits, -1, output_type=tf.int32)
            tokens = keras.ops.slice_update(tokens, (0, index), tf.expand_dims(chosen, 1))
            return index + 1, tokens, cache

        _, tokens, cache = tf.while_loop(
            lambda index, tokens, cache: index < length,
            step,
            (4, tokens, cache),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, length]), tf.TensorShape([None, length, 32])),
        )
        return {"tokens": tokens, "past": cache}


@module()
class decodes_jpeg(tf.Module):
    @tf.function(input_signature=[spec([None], tf.string, "image_bytes")])
    def call(self, image_bytes: Any) -> Any:
        def decode(data: Any) -> Any:
            pixels = tf.image.resize(tf.io.decode_jpeg(data, channels=3), [8, 8])
            return tf.ensure_shape(pixels, [8, 8, 3])

        return {"mean": tf.reduce_mean(tf.map_fn(decode, image_bytes, fn_output_signature=tf.float32), [1, 2])}


@module()
class decodes_png_in_base64(tf.Module):
    @tf.function(input_signature=[spec([], tf.string, "b64")])
    def call(self, b64: Any) -> Any:
        return {"pixels": tf.io.decode_png(tf.io.decode_base64(b64))}


@module(signatures=True)
class decodes_more(tf.Module):
    """A signature for each other decoder."""

    @tf.function(input_signature=[spec([], tf.string, "wav")])
    def sound(self, wav: Any) -> Any:
        samples, rate = tf.audio.decode_wav(wav, desired_channels=1)
        return {"loudness": tf.reduce_max(samples), "rate": rate}

    @tf.function(input_signature=[spec([None], tf.string, "lines")])
    def table(self, lines: Any) -> Any:
        name, size, count = tf.io.decode_csv(lines, [["x"], [0.0], [0]], field_delim=";")
        return {"name": name, "product": size * tf.cast(count, tf.float32)}

    @tf.function(input_signature=[spec([], tf.string, "tensor")])
    def tensor(self, tensor: Any) -> Any:
        return {"y": tf.reduce_sum(tf.ensure_shape(tf.io.parse_tensor(tensor, tf.float32), [None, 16]), -1)}

    @tf.function(input_signature=[spec([None], tf.string, "examples")])
    def single(self, examples: Any) -> Any:
        features = {"a": tf.io.FixedLenFeature([3], tf.float32), "n": tf.io.FixedLenFeature([], tf.int64)}
        parse = lambda data: tf.io.parse_single_example(data, features)["a"]  # noqa: E731
        return {"a": tf.map_fn(parse, examples, fn_output_signature=tf.float32)}

    @tf.function(input_signature=[spec([None], tf.string, "raw"), spec([None], tf.string, "label")])
    def raw(self, raw: Any, label: Any) -> Any:
        return {"sums": tf.reduce_sum(tf.io.decode_raw(raw, tf.int16), -1), "number": tf.strings.to_number(label)}

    def signatures(self) -> dict[str, Any]:
        return {"sound": self.sound, "table": self.table, "tensor": self.tensor, "single": self.single, "raw": self.raw}


@module(signatures=True)
class ragged_and_sparse(tf.Module):
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def ragged(self, x: Any) -> Any:
        return {"sums": tf.reduce_sum(x, axis=1), "doubled": x * 2.0}

    @tf.function(input_signature=[tf.SparseTensorSpec([None, None], tf.float32)])
    def sparse(self, x: Any) -> Any:
        return {"dense": tf.sparse.to_dense(x), "doubled": x * 2.0}

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": self.ragged, "sparse": self.sparse}


@module(signatures=True)
class shapes_that_depend(tf.Module):
    @tf.function(input_signature=[spec([7, None, 3], name="x")])
    def time_major(self, x: Any) -> Any:
        return {"last": x[-1]}

    @tf.function(input_signature=[spec([None, None], name="a"), spec([None, None], name="b")])
    def product(self, a: Any, b: Any) -> Any:
        return {"ab": a @ b}

    @tf.function(
        input_signature=[
            spec([None, None], tf.int32, "ids"),
            spec([None, None], tf.int32, "mask"),
            spec([None, 2, None, 4], name="past"),
        ]
    )
    def step(self, ids: Any, mask: Any, past: Any) -> Any:
        now = tf.tile(tf.cast(ids, tf.float32)[:, None, :, None], [1, 2, 1, 4])
        cache = tf.concat([past, now], axis=2)
        return {"past": cache, "y": tf.reduce_sum(cache * tf.cast(mask, tf.float32)[:, None, :, None], [1, 2, 3])}

    def signatures(self) -> dict[str, Any]:
        return {"time_major": self.time_major, "product": self.product, "step": self.step}


@module()
class implementations(tf.Module):
    """Two functions for one purpose, as in TensorFlow Probability and Keras 2: TensorFlow runs the one for the CPU."""

    @tf.function(input_signature=[spec([None])])
    def call(self, x: Any) -> Any:
        purpose = {"api_implements": "glowplug_zoo"}

        def made(device: str, factor: float) -> Any:
            attributes = {**purpose, "api_preferred_device": device}
            body = tf.function(
                lambda x: tf.sin(tf.exp(x * factor) + 1.0), experimental_attributes=attributes, autograph=False
            )
            return body.get_concrete_function(spec([None]))

        processor = made("CPU", 2.0)
        processor.add_to_graph(tf.compat.v1.get_default_graph())
        return {"y": tf.cos(made("GPU", 3.0)(tf.exp(-x)) * 5.0)}
