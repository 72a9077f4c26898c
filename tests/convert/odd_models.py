"""Models as users bring them that no project has listed: each is built here, with an input of its own for every call.

`MODELS` maps a name to a function that writes a SavedModel and returns calls: a signature and its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Calls = list[tuple[str, dict[str, Any]]]
MODELS: dict[str, Callable[[Path], Calls]] = {}
DEFAULT = "serving_default"


def odd(function: Callable[[Path], Calls]) -> Callable[[Path], Calls]:
    MODELS[function.__name__] = function
    return function


def spec(shape: Any, dtype: Any = tf.float32, name: str = "x") -> tf.TensorSpec:
    return tf.TensorSpec(shape, dtype, name)


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def save(directory: Path, module: Any, **signatures: Any) -> None:
    tf.saved_model.save(module, str(directory), signatures=signatures)


def of_function(directory: Path, body: Callable[..., Any], *specs: Any, held: Any = None) -> None:
    module = tf.Module()
    module.held = held
    module.call = tf.function(body, input_signature=specs)
    save(directory, module, serving_default=module.call)


@odd
def nested_modules(directory: Path) -> Calls:
    """Modules within modules, whose functions call each other; two signatures share what is innermost."""

    class Inner(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = tf.Variable(numbers(6, 6))

        @tf.function(input_signature=[spec([None, 6])])
        def __call__(self, x: Any) -> Any:
            return tf.tanh(x @ self.w)

    class Outer(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()
            self.parts = {"a": [Inner(), self.inner], "b": (Inner(),)}

        @tf.function(input_signature=[spec([None, 6])])
        def forward(self, x: Any) -> Any:
            for part in [*self.parts["a"], *self.parts["b"]]:
                x = part(x)
            return {"y": x}

        @tf.function(input_signature=[spec([None, 6], name="z")])
        def once(self, z: Any) -> Any:
            return {"first": self.inner(z), "both": self.forward(z)["y"]}

    outer = Outer()
    save(directory, outer, serving_default=outer.forward, once=outer.once)
    return [(DEFAULT, {"x": numbers(3, 6)}), ("once", {"z": numbers(2, 6)})]


@odd
def table_with_asset(directory: Path) -> Calls:
    words = directory.parent / f"{directory.name}-words.txt"
    words.write_text("red\ngreen\nblue\n")
    fill = tf.lookup.TextFileInitializer(
        str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(fill, -1)
    module.back = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            str(words), tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE
        ),
        "?",
    )

    @tf.function(input_signature=[spec([None], tf.string, "word")])
    def call(word: Any) -> Any:
        number = module.table.lookup(word)
        return {"number": number, "size": module.table.size(), "next": module.back.lookup(number + 1)}

    module.call = call
    save(directory, module, serving_default=call)
    words.unlink()  # the copy among the assets is what counts
    return [(DEFAULT, {"word": np.array(["green", "pink", "red"], object)})]


@odd
def stateful_rnn(directory: Path) -> Calls:
    """Keeps its state from call to call: answers depend on the calls before."""
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((5, 3), batch_size=2), keras.layers.LSTM(4, stateful=True), keras.layers.Dense(2)]
    )
    model.export(str(directory), verbose=False)
    (name,) = tf.saved_model.load(str(directory)).signatures[DEFAULT].structured_input_signature[1]
    return [(DEFAULT, {name: numbers(2, 5, 3, seed=seed)}) for seed in range(3)]


def _mixed(policy: str) -> Callable[[Path], Calls]:
    def build(directory: Path) -> Calls:
        import keras

        keras.utils.set_random_seed(1)
        layers = keras.layers
        dtype = keras.DTypePolicy(policy)
        model = keras.Sequential(
            [
                keras.Input((12, 12, 3)),
                layers.Conv2D(6, 3, activation="relu", dtype=dtype),
                layers.BatchNormalization(dtype=dtype),
                layers.GlobalAveragePooling2D(dtype=dtype),
                layers.Dense(4, dtype=dtype),
                layers.Softmax(dtype="float32"),
            ]
        )
        model.export(str(directory), verbose=False)
        (name,) = tf.saved_model.load(str(directory)).signatures[DEFAULT].structured_input_signature[1]
        return [(DEFAULT, {name: numbers(2, 12, 12, 3)})]

    return build


MODELS["mixed_float16"] = _mixed("mixed_float16")
MODELS["mixed_bfloat16"] = _mixed("mixed_bfloat16")


@odd
def loops(directory: Path) -> Calls:
    """`while` with a tensor array, a nested `cond`, and `map_fn`, `scan` and `foldl`."""
    w = tf.Variable(numbers(4, 4) * 0.3)

    def call(x: Any, steps: Any) -> Any:
        kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[None, 4])
        for step in tf.range(steps):
            x = tf.tanh(x @ w) if step % 2 == 0 else x + 1.0
            kept = kept.write(step, x)
            if tf.reduce_sum(x) > 1e6:
                break
        return {
            "stack": kept.stack(),
            "mapped": tf.map_fn(lambda row: row * tf.reduce_max(row), x),
            "scanned": tf.scan(lambda a, row: a + row, x),
            "folded": tf.foldl(lambda a, row: a * 0.5 + row, x),
        }

    of_function(directory, call, spec([None, 4]), spec([], tf.int32, "steps"), held=w)
    return [(DEFAULT, {"x": numbers(3, 4), "steps": np.int32(steps)}) for steps in (1, 7)]


@odd
def ragged_output(directory: Path) -> Calls:
    def call(x: Any) -> Any:
        rows = tf.RaggedTensor.from_tensor(x, lengths=tf.cast(tf.abs(x[:, 0]) * 3, tf.int64) % 5)
        return {"values": rows.values, "splits": rows.row_splits, "sum": tf.reduce_sum(rows, 1)}

    of_function(directory, call, spec([None, 5]))
    return [(DEFAULT, {"x": numbers(4, 5)})]


@odd
def complex_numbers(directory: Path) -> Calls:
    def call(x: Any, z: Any) -> Any:
        spectrum = tf.signal.rfft(x)
        return {
            "spectrum": spectrum,
            "back": tf.signal.irfft(spectrum * tf.constant(0.5 + 0.1j, tf.complex64)),
            "z": tf.math.conj(z),
        }

    of_function(directory, call, spec([None, 16]), spec([None], tf.complex128, "z"))
    return [(DEFAULT, {"x": numbers(2, 16), "z": (numbers(3) + 1j * numbers(3, seed=2)).astype("complex128")})]


@odd
def short_time_fourier(directory: Path) -> Calls:
    def call(x: Any) -> Any:
        frames = tf.signal.stft(x, 64, 32)
        mel = tf.signal.linear_to_mel_weight_matrix(8, 33, 16000)
        return {"mfcc": tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.abs(frames) @ mel + 1e-3))}

    of_function(directory, call, spec([None, 400]))
    return [(DEFAULT, {"x": numbers(2, 400)})]


@odd
def fake_quantised(directory: Path) -> Calls:
    w = tf.Variable(numbers(8, 4))

    def call(x: Any) -> Any:
        x = tf.quantization.fake_quant_with_min_max_args(x, -3, 3)
        return {"y": x @ tf.quantization.fake_quant_with_min_max_vars_per_channel(w, [-2.0] * 4, [2.0] * 4)}

    of_function(directory, call, spec([None, 8]), held=w)
    return [(DEFAULT, {"x": numbers(3, 8)})]


@odd
def quantised_types(directory: Path) -> Calls:
    def call(x: Any) -> Any:
        small, low, high = tf.quantization.quantize(x, -3.0, 3.0, tf.qint8)
        return {"y": tf.quantization.dequantize(small, low, high), "bits": tf.bitcast(small, tf.int8)}

    of_function(directory, call, spec([None, 4]))
    return [(DEFAULT, {"x": numbers(3, 4)})]


@odd
def quantised_output(directory: Path) -> Calls:
    """Answers with a type that numpy does not have."""

    def call(x: Any) -> Any:
        return {"q": tf.quantization.quantize(x, -3.0, 3.0, tf.quint8)[0]}

    of_function(directory, call, spec([None, 4]))
    return [(DEFAULT, {"x": numbers(3, 4)})]


@odd
def int8_input(directory: Path) -> Calls:
    w = tf.Variable(numbers(6, 3))

    def call(x: Any, mask: Any) -> Any:
        y = (tf.cast(x, tf.float32) - 3.0) * 0.1 @ w
        return {"y": tf.cast(tf.round(y * 10), tf.int8), "any": tf.reduce_any(mask), "wide": tf.cast(x, tf.uint16)}

    of_function(directory, call, spec([None, 6], tf.int8), spec([None], tf.bool, "mask"), held=w)
    return [(DEFAULT, {"x": np.arange(-6, 6, dtype=np.int8).reshape(2, 6), "mask": np.array([True, False])})]


@odd
def string_outputs(directory: Path) -> Calls:
    def call(s: Any) -> Any:
        parts = tf.strings.split(s, "-").to_tensor(b"\x00\xff")
        return {
            "upper": tf.strings.upper(s),
            "parts": parts,
            "hash": tf.strings.as_string(tf.strings.to_hash_bucket_fast(s, 1000)),
            "joined": tf.strings.reduce_join(s, separator="/"),
        }

    of_function(directory, call, spec([None], tf.string, "s"))
    return [(DEFAULT, {"s": np.array(["a-b", "", "ä-€-c", b"\xfe\x00x"], object)})]


@odd
def odd_names(directory: Path) -> Calls:
    module = tf.Module()

    @tf.function(input_signature=[spec([None], name="x")])
    def call(x: Any) -> Any:
        return {"a/b:0": x + 1, "ümläut name": x * 2, "0": -x, "x": x - 1, "^y": x * 3, "__len__": x * 4}

    module.call = call
    save(directory, module, **{DEFAULT: call, "the/other one:1": call, "ø": call})
    return [(name, {"x": numbers(3)}) for name in (DEFAULT, "the/other one:1", "ø")]


@odd
def output_without_name(directory: Path) -> Calls:
    of_function(directory, lambda x: {"": x + 1, "y": x}, spec([None]))
    return [(DEFAULT, {"x": numbers(3)})]


@odd
def no_inputs(directory: Path) -> Calls:
    w = tf.Variable(numbers(40, 40))
    module = tf.Module()
    module.w = w
    module.call = tf.function(lambda: {"w": w * 2, "size": tf.size(w)}, input_signature=[])
    module.other = tf.function(lambda x: {"y": x @ w}, input_signature=[spec([None, 40])])
    save(directory, module, serving_default=module.call, other=module.other)
    return [(DEFAULT, {}), ("other", {"x": numbers(2, 40)})]


@odd
def only_no_inputs(directory: Path) -> Calls:
    module = tf.Module()
    module.call = tf.function(lambda: {"version": tf.constant("v7"), "pi": tf.constant(3.14)}, input_signature=[])
    save(directory, module, serving_default=module.call)
    return [(DEFAULT, {})]


@odd
def large_constants(directory: Path) -> Calls:
    """Constants that are too large for a graph, inside functions as well, some of them used twice."""
    table = numbers(1000, 300)

    @tf.function(input_signature=[spec([None], tf.int32, "i")])
    def rows(i: Any) -> Any:
        return tf.gather(tf.constant(table), i)

    def call(i: Any) -> Any:
        again = tf.constant(table[:, :50] * 2)
        looked = tf.cond(tf.reduce_sum(i) > 3, lambda: rows(i), lambda: rows(i) @ tf.constant(numbers(300, 300)))
        return {"y": looked, "z": tf.gather(again, i), "s": tf.reduce_sum(tf.constant(table))}

    of_function(directory, call, spec([None], tf.int32, "i"))
    return [(DEFAULT, {"i": np.array([1, 0, 1], np.int32)}), (DEFAULT, {"i": np.array([7, 999], np.int32)})]


@odd
def unused_inputs(directory: Path) -> Calls:
    import keras

    keras.utils.set_random_seed(1)
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b", dtype="int32")
    keras.Model({"a": a, "b": b}, {"y": keras.layers.Dense(2)(a)}).export(str(directory), verbose=False)
    return [(DEFAULT, {"a": numbers(2, 3), "b": np.zeros((2, 2), np.int32)})]


@odd
def shared_weights(directory: Path) -> Calls:
    import keras

    keras.utils.set_random_seed(1)
    ids = keras.Input((4,), dtype="int32", name="ids")
    embedding = keras.layers.Embedding(50, 8)
    dense = keras.layers.Dense(8, activation="tanh")
    x = dense(dense(embedding(ids)))
    logits = keras.ops.matmul(x, keras.ops.transpose(embedding.embeddings))
    keras.Model(ids, {"logits": logits, "x": x}).export(str(directory), verbose=False)
    return [(DEFAULT, {"ids": np.array([[1, 2, 3, 49]], np.int32)})]


@odd
def estimator_export(directory: Path) -> Calls:
    """What an Estimator wrote: variables of TensorFlow 1, parse_example, classify and regress signatures."""
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], "input_example_tensor")
        features = v1.io.parse_example(
            serialized, {"x": tf.io.FixedLenFeature([3], tf.float32), "c": tf.io.VarLenFeature(tf.string)}
        )
        words = v1.lookup.StaticVocabularyTable(
            v1.lookup.KeyValueTensorInitializer(["a", "b"], np.array([0, 1], np.int64)), 2
        )
        ids = tf.sparse.to_dense(words.lookup(features["c"]), default_value=-1)
        kernel = v1.get_variable("kernel", initializer=numbers(3, 2), use_resource=False)
        bias = v1.get_variable("bias", initializer=numbers(2), use_resource=True)
        logits = tf.nn.bias_add(tf.matmul(features["x"], kernel), bias)
        logits += tf.cast(tf.reduce_sum(ids, 1, keepdims=True), tf.float32)
        scores = tf.nn.softmax(logits)
        classes = tf.tile(tf.constant([["no", "yes"]]), [tf.shape(logits)[0], 1])
        builder = v1.saved_model.Builder(str(directory))
        info = v1.saved_model.build_tensor_info
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        signatures = {
            DEFAULT: v1.saved_model.build_signature_def(
                {"inputs": info(serialized)},
                {"classes": info(classes), "scores": info(scores)},
                "tensorflow/serving/classify",
            ),
            "regression": v1.saved_model.build_signature_def(
                {"inputs": info(serialized)}, {"outputs": info(logits)}, "tensorflow/serving/regress"
            ),
            "predict": v1.saved_model.build_signature_def(
                {"x": info(features["x"])},
                {"logits": info(tf.matmul(features["x"], kernel))},
                "tensorflow/serving/predict",
            ),
        }
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, main_op=v1.tables_initializer(), strip_default_attrs=True
        )
        builder.save()
    one = tf.train.Example()
    one.features.feature["x"].float_list.value[:] = [1.0, -2.0, 0.5]
    one.features.feature["c"].bytes_list.value[:] = [b"b", b"zzz"]
    given = np.array([one.SerializeToString()] * 2, object)
    return [(DEFAULT, {"inputs": given}), ("regression", {"inputs": given}), ("predict", {"x": numbers(2, 3)})]


@odd
def signatures_that_share_state(directory: Path) -> Calls:
    """One signature writes the variable that another reads."""

    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total = tf.Variable(numbers(3))

        @tf.function(input_signature=[spec([3])])
        def add(self, x: Any) -> Any:
            return {"total": self.total.assign_add(x) * 1.0}

        @tf.function(input_signature=[])
        def read(self) -> Any:
            return {"total": self.total + 0.0}

    made = Counter()
    save(directory, made, serving_default=made.read, add=made.add)
    return [(DEFAULT, {}), ("add", {"x": numbers(3)}), (DEFAULT, {}), ("add", {"x": numbers(3)}), (DEFAULT, {})]


@odd
def images(directory: Path) -> Calls:
    def call(x: Any) -> Any:
        boxes = tf.stack([x[0, :4, 0, 0], x[0, 4:8, 0, 0], x[0, :4, 1, 0] + 1, x[0, 4:8, 1, 0] + 1], 1)
        kept = tf.image.non_max_suppression(boxes, x[0, :4, 0, 1], 3)
        return {
            "resized": tf.image.resize(x, [5, 7], "bicubic"),
            "cropped": tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.9]], [0], [4, 4]),
            "kept": kept,
            "hsv": tf.image.rgb_to_hsv(tf.abs(x)),
            "topk": tf.math.top_k(tf.reshape(x, [-1]), 3).indices,
        }

    of_function(directory, call, spec([None, 16, 16, 3]))
    return [(DEFAULT, {"x": numbers(1, 16, 16, 3)})]


@odd
def linear_algebra(directory: Path) -> Calls:
    def call(x: Any) -> Any:
        square = tf.matmul(x, x, transpose_a=True) + tf.eye(4)
        return {
            "inverse": tf.linalg.inv(square),
            "cholesky": tf.linalg.cholesky(square),
            "values": tf.linalg.eigvalsh(square),
            "singular": tf.linalg.svd(x, compute_uv=False),
            "solved": tf.linalg.lstsq(square, tf.ones([4, 1])),
        }

    of_function(directory, call, spec([None, 4]))
    return [(DEFAULT, {"x": numbers(5, 4)})]


@odd
def gradient(directory: Path) -> Calls:
    """A signature that answers with a gradient."""
    w = tf.Variable(numbers(3, 3))

    def call(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.softplus(x @ w) ** 2)
        return {"y": y, "dx": tape.gradient(y, x)}

    of_function(directory, call, spec([None, 3]), held=w)
    return [(DEFAULT, {"x": numbers(2, 3)})]


@odd
def custom_gradient(directory: Path) -> Calls:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.clip_by_value(x, -1, 1), lambda upstream: upstream * 0.5

    of_function(directory, lambda x: {"y": clipped(x)}, spec([None]))
    return [(DEFAULT, {"x": numbers(5)})]


@odd
def checks(directory: Path) -> Calls:
    """Assertions and checks of numbers: what goes wrong must go wrong in the same way, and only positive numbers go."""

    def call(x: Any) -> Any:
        tf.debugging.assert_non_negative(x, "must not be negative")
        return {"y": tf.debugging.check_numerics(tf.sqrt(x), "not a number")}

    of_function(directory, call, spec([None]))
    return [(DEFAULT, {"x": np.abs(numbers(4))})]


@odd
def prints(directory: Path) -> Calls:
    """Prints, which may be into any file."""

    def call(x: Any) -> Any:
        tf.print("seen", tf.size(x), output_stream="file:///dev/null")
        return {"y": x + 1}

    of_function(directory, call, spec([None]))
    return [(DEFAULT, {"x": numbers(4)})]


@odd
def dynamic_ranks(directory: Path) -> Calls:
    def call(x: Any, axis: Any) -> Any:
        return {"sum": tf.reduce_sum(x, axis), "rank": tf.rank(x), "flat": tf.reshape(x, [-1]), "shape": tf.shape(x)}

    of_function(directory, call, spec(None), spec([], tf.int32, "axis"))
    return [(DEFAULT, {"x": numbers(2, 3, 4), "axis": np.int32(1)}), (DEFAULT, {"x": numbers(5), "axis": np.int32(0)})]


@odd
def embeddings_of_bags(directory: Path) -> Calls:
    table = tf.Variable(numbers(30, 5))

    def call(ids: Any) -> Any:
        bag = tf.sparse.from_dense(ids)
        shifted = tf.SparseTensor(bag.indices, bag.values % 30, bag.dense_shape)
        return {"bag": tf.nn.safe_embedding_lookup_sparse(table, shifted, combiner="mean")}

    of_function(directory, call, spec([None, 4], tf.int64, "ids"), held=table)
    return [(DEFAULT, {"ids": np.array([[1, 0, 3, 0], [0, 0, 0, 0], [29, 2, 2, 2]])})]


@odd
def random_with_seed(directory: Path) -> Calls:
    def call(seed: Any) -> Any:
        return {
            "normal": tf.random.stateless_normal([4], seed),
            "binomial": tf.random.stateless_binomial([4], seed, 5.0, 0.4),
            "poisson": tf.random.stateless_poisson([4, 1], seed, [3.0]),
            "shuffled": tf.random.experimental.stateless_shuffle(tf.range(6), seed),
        }

    of_function(directory, call, spec([2], tf.int32, "seed"))
    return [(DEFAULT, {"seed": np.array([3, 4], np.int32)})]


@odd
def dates_in_text(directory: Path) -> Calls:
    """Regular expressions, numbers in text, and bytes."""

    def call(s: Any) -> Any:
        year = tf.strings.to_number(tf.strings.regex_replace(s, r".*(\d{4}).*", r"\1"), tf.int32)
        return {
            "year": year,
            "bytes": tf.io.decode_raw(tf.strings.substr(s, 0, 2), tf.uint8),
            "n": tf.strings.length(s),
        }

    of_function(directory, call, spec([None], tf.string, "s"))
    return [(DEFAULT, {"s": np.array(["in 1999 or so", "2024!"], object)})]


@odd
def variables_never_used(directory: Path) -> Calls:
    """An optimiser's slots, a step counter and metrics lie beside the model."""
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(numbers(8, 4), numbers(8, 3), verbose=0)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", lambda x: model(x, training=False), [spec([None, 4])])
    archive.add_endpoint("twice", lambda x: {"twice": 2 * model(x, training=False)}, [spec([None, 4])])
    archive.write_out(str(directory), verbose=False)
    name = next(iter(tf.saved_model.load(str(directory)).signatures["serve"].structured_input_signature[1]))
    return [("serve", {name: numbers(2, 4)}), ("twice", {name: numbers(2, 4)})]


@odd
def wide_types(directory: Path) -> Calls:
    def call(a: Any, b: Any, c: Any) -> Any:
        return {
            "a": tf.bitwise.left_shift(a, tf.cast(3, tf.uint64)),
            "b": tf.math.floormod(b, 7),
            "c": tf.cumsum(c, reverse=True, exclusive=True),
            "half": tf.cast(c, tf.float16),
        }

    specs = spec([None], tf.uint64, "a"), spec([None], tf.int16, "b"), spec([None], tf.float64, "c")
    of_function(directory, call, *specs)
    given = {"a": np.array([1, 2**60], np.uint64), "b": np.array([-5, 9], np.int16), "c": numbers(2, dtype="float64")}
    return [(DEFAULT, given)]


@odd
def quotients_of_integers(directory: Path) -> Calls:
    """Fails wherever a divisor is zero, as most made-up integers are somewhere."""
    specs = spec([None, 8], tf.int32, "a"), spec([None, 8], tf.int32, "b")
    of_function(directory, lambda a, b: {"quotient": a // b, "remainder": tf.math.floormod(a, b)}, *specs)
    a, b = np.arange(-8, 8, dtype=np.int32).reshape(2, 8), np.array([[3], [-3]], np.int32) * np.ones((2, 8), np.int32)
    return [(DEFAULT, {"a": a, "b": b})]


@odd
def dataset_inside(directory: Path) -> Calls:
    """Reduces a `tf.data` pipeline inside of the signature."""

    def call(x: Any) -> Any:
        data = tf.data.Dataset.from_tensor_slices(x).map(lambda row: row * 2).batch(2)
        return {"y": data.reduce(0.0, lambda total, rows: total + tf.reduce_sum(rows))}

    of_function(directory, call, spec([None]))
    return [(DEFAULT, {"x": numbers(5)})]


@odd
def mutable_table(directory: Path) -> Calls:
    class Memory(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.table.insert(["a", "b"], [1, 2])

        @tf.function(input_signature=[spec([None], tf.string, "s")])
        def call(self, s: Any) -> Any:
            return {"n": self.table.lookup(s)}

    made = Memory()
    save(directory, made, serving_default=made.call)
    return [(DEFAULT, {"s": np.array(["a", "z"], object)})]


@odd
def grouped_convolution(directory: Path) -> Calls:
    """In groups, compiled by XLA as Keras does it: TensorFlow's optimiser must not fuse it with bias and activation."""
    kernel, bias = tf.Variable(numbers(3, 3, 2, 8)), tf.Variable(numbers(8))

    @tf.function(jit_compile=True)
    def convolve(x: Any) -> Any:
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    def call(x: Any) -> Any:
        return {"y": tf.nn.relu(tf.nn.bias_add(convolve(x), bias)), "z": convolve(tf.nn.relu(x)) + bias}

    of_function(directory, call, spec([None, 9, 9, 8]), held=[kernel, bias])
    return [(DEFAULT, {"x": numbers(2, 9, 9, 8)})]


@odd
def branches_that_fold(directory: Path) -> Calls:
    """Branches of which one remains once the optimiser has looked: it inlines that, and functions within it."""
    w = tf.Variable(numbers(4, 4))

    @tf.function
    def inner(x: Any, filled: Any) -> Any:
        return tf.nn.relu(x @ w) * filled + tf.gather(w, tf.zeros([tf.shape(x)[0]], tf.int32))

    def call(x: Any) -> Any:
        filled = tf.fill([tf.shape(x)[0], 4], 0.5)
        for _ in range(2):
            x = tf.cond(tf.rank(x) > 1, lambda x=x: inner(x, filled), lambda x=x: inner(x + 1, tf.zeros_like(filled)))
        return {"y": tf.cond(tf.shape(x)[1] < 9, lambda: inner(x, filled), lambda: inner(x, filled) * 2)}

    of_function(directory, call, spec([None, 4]), held=w)
    return [(DEFAULT, {"x": numbers(3, 4)})]
