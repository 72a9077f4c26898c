"""A model that answers what it was given, with a signature for each type, and values at the ends of each."""

from __future__ import annotations

import math
from pathlib import Path

TYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool", "string"]
SEVERAL = {"int_tensor": "int32", "str_tensor": "string", "float_tensor": "float32", "dbl_tensor": "float64"}

VALUES = {
    "int8": [-128, 127],
    "uint8": [0, 255],
    "int16": [-32768, 32767],
    "int32": [-(1 << 31), (1 << 31) - 1],
    "uint32": [0, (1 << 32) - 1],
    "int64": [-(1 << 63), (1 << 63) - 1],
    "uint64": [0, (1 << 64) - 1],
    "float32": [math.nan, -math.inf],
    "float64": [1e-320, math.inf],
    "bool": [True, False],
    "string": [b"\xff\x00", b""],
}


def save_echo(directory: Path) -> None:
    """Save a model with a signature for each type that answers its input, and some with several tensors."""
    import tensorflow as tf

    def echo(dtype):
        return tf.function(lambda x: {"y": tf.identity(x)}, input_signature=[tf.TensorSpec(None, dtype, "x")])

    signatures = {dtype: echo(dtype) for dtype in TYPES}
    signatures["serving_default"] = echo("int32")
    several = [tf.TensorSpec(None, dtype, name) for name, dtype in SEVERAL.items()]
    signatures["several"] = tf.function(
        lambda **given: {f"{name}_out": tf.identity(value) for name, value in given.items()}
    ).get_concrete_function(**{spec.name: spec for spec in several})
    signatures["bytes"] = tf.function(
        lambda x: {"image_bytes": tf.identity(x), "caption": tf.identity(x)},
        input_signature=[tf.TensorSpec(None, "string", "x")],
    )
    signatures["only_bytes"] = tf.function(
        lambda x: {"image_bytes": tf.identity(x)}, input_signature=[tf.TensorSpec(None, "string", "x")]
    )
    signatures["complex"] = tf.function(
        lambda x: {"y": tf.complex(x, x)}, input_signature=[tf.TensorSpec([None], "float32", "x")]
    )
    signatures["uneven"] = tf.function(
        lambda x: {"y": tf.identity(x), "sum": tf.reduce_sum(x), "twice": tf.concat([x, x], 0)},
        input_signature=[tf.TensorSpec([None], "float32", "x")],
    )
    signatures["scalar"] = tf.function(
        lambda x: {"y": tf.reduce_sum(x)}, input_signature=[tf.TensorSpec([None], "float32", "x")]
    )
    signatures["none_of_it"] = tf.function(
        lambda x: {"a": x[:0], "b": tf.strings.as_string(x[:0])},
        input_signature=[tf.TensorSpec([None, None], "float32", "x")],
    )
    tf.saved_model.save(tf.Module(), str(directory), signatures=signatures)
