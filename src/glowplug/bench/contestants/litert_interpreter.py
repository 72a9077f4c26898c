"""Plain LiteRT: `Interpreter` and the runner of a signature."""

from __future__ import annotations

from typing import Any

SHARED = False  # an interpreter is for one thread at a time


def open_model(job: dict[str, Any]) -> Any:
    """Return the call."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(job["model"], num_threads=job["threads"])
    runner = interpreter.get_signature_runner(job["signature"])

    def call(inputs: dict[str, Any]) -> Any:
        return runner(**inputs)

    call.interpreter = interpreter  # type: ignore[attr-defined] # the runner needs it
    return call
