"""Stock TensorFlow: `tf.saved_model.load`, and a call of the signature."""

from __future__ import annotations

from typing import Any

SHARED = True


def open_model(job: dict[str, Any]) -> Any:
    """Return the call."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
    root = tf.saved_model.load(job["model"])
    signature = root.signatures[job["signature"]]

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        answer = signature(**{name: tf.constant(value) for name, value in inputs.items()})
        return {name: value.numpy() for name, value in answer.items()}

    call.root = root  # type: ignore[attr-defined] # signatures die with what they came from
    return call
