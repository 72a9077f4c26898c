"""Glowplug: `glowplug.load`, and a call of the signature."""

from __future__ import annotations

from typing import Any

SHARED = True


def open_model(job: dict[str, Any]) -> Any:
    """Return the call."""
    import glowplug

    model = glowplug.load(
        job["model"], trust=True, op_libraries=job.get("op_libraries", ()), intra_op_threads=job["threads"]
    )
    signature = model.signature(job["signature"])
    outputs = list(signature.signature.outputs)

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        answer = signature(inputs)
        return answer if isinstance(answer, dict) else {outputs[0]: answer}

    return call
