"""Reads and writes large JSON bodies in a process of its own, so that nobody waits for them but their sender.

It is a worker like those with models: the same socket, the same queue in front of it, replaced when it dies. Its
signatures are `predict` and `examples`, which read a body, and `answer`, which writes one. What varies from call to
call travels inside: a JSON head, and packets with arrays.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.serve.wire.calls import find_signature
from glowplug.serve.wire.examples import read_json
from glowplug.serve.wire.json_predict import read_body, read_inputs, write_answer
from glowplug.serve.wire.limits import Limits

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
            "answer": _answer,
        }
        self.signatures: Mapping[str, Signature] = dict.fromkeys(self._operations, _SIGNATURE)
        self.notes: list[str] = []
        self._trim: Any = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Read or write one body."""
        head, body = inputs
        try:
            found, data = self._operations[signature](orjson.loads(head.data), body.data)
            return [as_bytes(orjson.dumps(found)), as_bytes(data)]
        finally:
            if body.nbytes > _LARGE_BYTES and self._trim is not None:
                self._trim(0)

    def close(self) -> None:
        """There is nothing to free."""


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array that reads them in place."""
    return np.frombuffer(data, np.uint8)


def unpacked(data: bytes | memoryview, limit: int) -> bytes:
    """Return what a gzip body holds, if that is no more than `limit` bytes."""
    unpacker = zlib.decompressobj(31)
    try:
        body = unpacker.decompress(data, limit + 1)
    except zlib.error:
        raise RequestError("the body is not gzip") from None
    if len(body) > limit or unpacker.unconsumed_tail:
        raise RequestError(f"the unpacked body is larger than {limit} bytes (--max-request-bytes)")
    if not unpacker.eof:
        raise RequestError("the gzip body is cut off")
    return body


def _text(head: Any, body: memoryview) -> bytes:
    return unpacked(body, Limits(*head["limits"]).request_bytes) if head["gzip"] else bytes(body)


def _predict(head: Any, body: memoryview) -> tuple[Any, bytes]:
    parsed = read_body(_text(head, body))
    _, signature = find_signature(signatures_from_json(head["signatures"]), parsed.signature)
    inputs = read_inputs(parsed, signature, Limits(*head["limits"]))
    document = {"signature": parsed.signature, "form": parsed.form}
    return document, b"".join(packets.pack(packets.ANSWER, 0, None, inputs))


def _examples(head: Any, body: memoryview) -> tuple[Any, bytes]:
    name, made = read_json(_text(head, body))
    return {"signature": name}, made.SerializeToString()


def _answer(head: Any, body: memoryview) -> tuple[Any, bytes]:
    outputs = packets.read(body)
    return {}, write_answer(head["form"], outputs)
