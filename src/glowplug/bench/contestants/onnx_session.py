"""ONNX Runtime on the CPU, with a model that tf2onnx made."""

from __future__ import annotations

from typing import Any

SHARED = True


def open_model(job: dict[str, Any]) -> Any:
    """Return the call."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    outputs = [one.name for one in session.get_outputs()]

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        values = list(inputs.values())
        fed = {name: inputs.get(name.partition(":")[0], values[place]) for place, name in enumerate(names)}
        return dict(zip(outputs, session.run(None, fed), strict=True))

    return call
