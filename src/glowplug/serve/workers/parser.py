"""Reads and writes large bodies and messages in a process of its own, so that nobody waits for them but their sender.

It is a worker like those with models: the same socket, the same queue in front of it, replaced when it dies. Its
signatures are `predict`, `examples`, `infer`, and those with `message` in their names, which read a body, and
those with `answer`, which write one. What varies from call to call travels inside: a JSON head, and packets with
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import orjson
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.serve.heap import trimmer
from glowplug.serve.wire import predict_message
from glowplug.serve.wire.calls import find_signature
from glowplug.serve.wire.examples import read_json, serialized
from glowplug.serve.wire.gzip_members import unpacked
from glowplug.serve.wire.json_predict import read_body, read_inputs, write_answer
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import message, serving
from glowplug.serve.wire.v2_json import read_arrays, read_document
from glowplug.serve.wire.v2_json import write_answer as write_infer_answer
from glowplug.serve.wire.v2_message import fill_outputs
from glowplug.serve.wire.v2_message import read_inputs as read_message_inputs

from . import packets
from .spec import signatures_from_json

_BYTES = TensorSpec("uint8", (None,))
_SIGNATURE = Signature(
    {"head": Port(_BYTES, ""), "body": Port(_BYTES, "")}, {"head": Port(_BYTES, ""), "body": Port(_BYTES, "")}
)
_LARGE_BYTES = 1 << 20  # lists of so much JSON leave a heap that is worth giving back


class Parser:
    """An engine whose calls are about bodies."""

    def __init__(self) -> None:
        self._operations: dict[str, Callable[[Any, memoryview], tuple[Any, bytes]]] = {
            "predict": _predict,
            "examples": _examples,
            "examples_message": _examples_message,
            "answer": _answer,
            "infer": _infer,
            "infer_message": _infer_message,
            "infer_answer": _infer_answer,
            "infer_message_answer": _infer_message_answer,
            "predict_message": _predict_message,
            "predict_message_answer": _predict_message_answer,
        }
        self.signatures: Mapping[str, Signature] = dict.fromkeys(self._operations, _SIGNATURE)
        self.notes: list[str] = []
        self._trim = trimmer()

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Read or write one body."""
        head, body = inputs
        try:
            found, data = self._operations[signature](orjson.loads(head.data), body.data)
            return [as_bytes(orjson.dumps(found)), as_bytes(data)]
        finally:
            if body.nbytes > _LARGE_BYTES and self._trim is not None:
                self._trim()

    def close(self) -> None:
        """There is nothing to free."""


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array that reads them in place."""
    return np.frombuffer(data, np.uint8)


def _text(head: Any, body: memoryview) -> bytes:
    if not head["gzip"]:
        return bytes(body)
    limit = Limits(*head["limits"]).request_bytes
    text = unpacked(body, limit)
    if text is None:
        raise RequestError(f"the unpacked body is larger than {limit} bytes (--max-request-bytes)")
    return text


def _predict(head: Any, body: memoryview) -> tuple[Any, bytes]:
    parsed = read_body(_text(head, body))
    _, signature = find_signature(signatures_from_json(head["signatures"]), parsed.signature)
    inputs = read_inputs(parsed, signature, Limits(*head["limits"]))
    document = {"signature": parsed.signature, "form": parsed.form}
    return document, b"".join(packets.pack(packets.ANSWER, 0, None, inputs))


def _examples(head: Any, body: memoryview) -> tuple[Any, bytes]:
    name, made = read_json(_text(head, body))
    return {"signature": name}, _packed_examples(made)


def _packed_examples(made: Any) -> bytes:
    return b"".join(packets.pack(packets.ANSWER, 0, None, {"inputs": serialized(made)}))


def _examples_message(head: Any, body: memoryview) -> tuple[Any, bytes]:
    """The request comes back without its examples, in the head."""
    request = _parsed(serving(head["kind"]), body)
    data = _packed_examples(request.input)
    request.ClearField("input")
    return {"request": request.SerializeToString().hex()}, data


def _answer(head: Any, body: memoryview) -> tuple[Any, bytes]:
    outputs = packets.read(body)
    return {}, write_answer(head["form"], outputs)


def _infer(head: Any, body: memoryview) -> tuple[Any, bytes]:
    text, limits = _text(head, body), Limits(*head["limits"])
    size = len(text) if head["json_bytes"] is None else head["json_bytes"]
    parsed = read_document(text[:size], limits)
    inputs = read_arrays(parsed, memoryview(text)[size:], limits)
    return asdict(parsed.head), b"".join(packets.pack(packets.ANSWER, 0, None, inputs))


def _infer_message(head: Any, body: memoryview) -> tuple[Any, bytes]:
    """The request comes back without its tensors, in the head."""
    request = _parsed(message("inference.ModelInferRequest"), body)
    inputs, raw = read_message_inputs(request, Limits(*head["limits"])), bool(request.raw_input_contents)
    request.ClearField("inputs")
    request.ClearField("raw_input_contents")
    data = b"".join(packets.pack(packets.ANSWER, 0, None, inputs))
    return {"request": request.SerializeToString().hex(), "raw": raw}, data


def _parsed(kind: Any, body: memoryview) -> Any:
    try:
        return kind.FromString(bytes(body))
    except DecodeError:
        raise RequestError("Error deserializing request", seen=f"{len(body)} bytes") from None


def _infer_answer(head: Any, body: memoryview) -> tuple[Any, bytes]:
    size, pieces = write_infer_answer(head["model"], head["version"], head["id"], packets.read(body), head["binary"])
    return {"json_bytes": size}, b"".join(pieces)


def _infer_message_answer(head: Any, body: memoryview) -> tuple[Any, bytes]:
    response = message("inference.ModelInferResponse")()
    fill_outputs(response, packets.read(body), raw=head["raw"])
    return {}, response.SerializeToString()


def _predict_message(head: Any, body: memoryview) -> tuple[Any, bytes]:
    """The request comes back without its tensors, in the head."""
    request = _parsed(serving("PredictRequest"), body)
    found = predict_message.read(request, Limits(*head["limits"]))
    request.ClearField("inputs")
    data = b"".join(packets.pack(packets.ANSWER, 0, None, found.inputs))
    return {"request": request.SerializeToString().hex()}, data


def _predict_message_answer(head: Any, body: memoryview) -> tuple[Any, bytes]:
    return {}, predict_message.write(packets.read(body)).SerializeToString()
