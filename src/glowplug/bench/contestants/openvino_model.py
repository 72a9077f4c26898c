"""OpenVINO on the CPU, float32 arithmetic, compiled models kept in its cache."""

from __future__ import annotations

from typing import Any

SHARED = False  # an inference request is for one thread at a time


def open_model(job: dict[str, Any]) -> Any:
    """Return the call."""
    import openvino

    core = openvino.Core()
    settings = {
        "CACHE_DIR": job["model"] + ".cache",
        "INFERENCE_NUM_THREADS": job["threads"],
        "INFERENCE_PRECISION_HINT": "f32",
    }
    core.set_property("CPU", {"PERFORMANCE_HINT": "LATENCY"})
    request = core.compile_model(job["model"], "CPU", settings).create_infer_request()
    names = [one.any_name for one in request.model_inputs]

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        values = list(inputs.values())
        fed = {name: inputs.get(name, values[place]) for place, name in enumerate(names)}
        return {key.any_name: value.copy() for key, value in request.infer(fed).items()}

    return call
