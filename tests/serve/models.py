"""Models with the signatures of TensorFlow Serving's own test models, for machines where those do not lie beside.

`python -m tests.serve.models DIRECTORY` writes them, under the same names. Nothing here knows Glowplug.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FOLDERS = {
    "saved_model_half_plus_two_cpu": ["00000123"],
    "saved_model_half_plus_two_2_versions": ["00000123", "00000124"],
    "saved_model_half_plus_three": ["00000123"],
}


def build_all(directory: Path) -> None:
    for name, versions in FOLDERS.items():
        for version in versions:
            build_half_plus(3.0 if name.endswith("three") else 2.0, directory / name / version)
    build_with_functions(directory / "saved_model_half_plus_two_tf2_cpu" / "00000123")


def build_half_plus(offset: float, directory: Path) -> None:
    """Write `y = x / 2 + offset`, `y2 = x / 2 + 3` and `y3 = x2 / 2 + 3`, of tensors and of serialized examples."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        half, first, second = (v1.Variable(value, use_resource=False) for value in (0.5, offset, 3.0))
        examples = v1.placeholder(tf.string, name="tf_example")
        feature = tf.io.FixedLenFeature([1], tf.float32)
        optional = tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0])
        parsed = v1.parse_example(examples, {"x": feature, "x2": optional})
        for tensor in parsed.values():
            tensor.set_shape([None, 1])
        x, x2 = tf.identity(parsed["x"], name="x"), tf.identity(parsed["x2"], name="x2")
        y = tf.add(half * x, first, name="y")
        y2, y3 = tf.add(half * x, second, name="y2"), tf.add(half * x2, second, name="y3")
        signatures = {
            "serving_default": _signature("predict", {"x": x}, {"y": y}),
            "classify_x_to_y": _signature("classify", {"inputs": examples}, {"scores": y}),
            "regress_x_to_y": _signature("regress", {"inputs": examples}, {"outputs": y}),
            "regress_x_to_y2": _signature("regress", {"inputs": examples}, {"outputs": y2}),
            "regress_x2_to_y3": _signature("regress", {"inputs": x2}, {"outputs": y3}),
        }
        if directory.parent.name.endswith("three"):
            signatures["tensorflow/serving/regress"] = signatures["regress_x_to_y"]
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(directory))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save()


def build_with_functions(directory: Path) -> None:
    """Write `y = x / 2 + 2` as TensorFlow 2 does, whose signatures are all for `predict`."""
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self) -> None:
            self.half, self.offset = tf.Variable(0.5), tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, "x")])
        def predict(self, x: Any) -> Any:
            return {"y": self.half * x + self.offset}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
        def regress(self, inputs: Any) -> Any:
            parsed = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([1], tf.float32)})
            return {"outputs": self.half * parsed["x"] + self.offset}

    model = Model()
    of_tensors = dict.fromkeys(("serving_default", "classify_x2_to_y3", "regress_x2_to_y3"), model.predict)
    of_examples = dict.fromkeys(("classify_x_to_y", "regress_x_to_y", "regress_x_to_y2"), model.regress)
    tf.saved_model.save(model, str(directory), signatures={**of_tensors, **of_examples})


def _signature(method: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    from tensorflow.compat.v1.saved_model import build_signature_def, build_tensor_info

    ends = [{name: build_tensor_info(tensor) for name, tensor in side.items()} for side in (inputs, outputs)]
    return build_signature_def(*ends, f"tensorflow/serving/{method}")


if __name__ == "__main__":
    build_all(Path(sys.argv[1]))
