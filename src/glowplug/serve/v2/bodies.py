"""Reads and writes the bodies of `infer` over HTTP: here where that is quick, in a parser's process where not.

Numbers that travel as bytes are never looked at one by one, so their amount does not matter; JSON and strings are.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.serve.rest.bodies import QUICK_BYTES, Bodies, is_quick, quick_text
from glowplug.serve.rest.exchange import Request, Response
from glowplug.serve.wire.calls import Arrays
from glowplug.serve.wire.v2_json import InferHead, read_arrays, read_document, wants_bytes, write_answer
from glowplug.serve.workers import packets

_LENGTH = "Inference-Header-Content-Length"
_MAX_DIGITS = 18


async def read_infer(bodies: Bodies, request: Request) -> tuple[InferHead, dict[str, NDArray[Any]]]:
    """Return what a request asks for, and its inputs."""
    size = _document_length(request)
    text = quick_text(request)
    if text is None and not request.coding and size is not None and size <= QUICK_BYTES:
        text = request.body
    if text is not None:
        cut = len(text) if size is None else size
        if cut > len(text):
            raise RequestError("the body is shorter than its document", seen=f"{len(text)} bytes of {cut}")
        parsed = read_document(text[:cut], bodies.limits)
        if parsed.string_bytes() <= QUICK_BYTES:
            return parsed.head, read_arrays(parsed, memoryview(text)[cut:], bodies.limits)
    head, body = await bodies.read("infer", request, {"json_bytes": size})
    outputs, binary = tuple(head.pop("outputs")), tuple(head.pop("binary"))
    return InferHead(**head, outputs=outputs, binary=binary), packets.read(body, lazily=True)


def _document_length(request: Request) -> int | None:
    given = request.headers.get(_LENGTH.lower().encode())
    if given is None:
        return None
    if not given.isdigit() or len(given) > _MAX_DIGITS:
        raise RequestError(f"{_LENGTH} must be a number of bytes", seen=given.decode(errors="replace")[:40])
    return int(given)


async def write_infer(bodies: Bodies, model: str, version: str, head: InferHead, outputs: Arrays) -> Response:
    """Return the answer with these outputs."""
    binary = [name for name in outputs if wants_bytes(head, name)]
    if all(is_quick(array) or (name in binary and array.dtype != object) for name, array in outputs.items()):
        size, pieces = write_answer(model, version, head.id, outputs, binary)
        body = b"".join(pieces)
    else:
        told = {"model": model, "version": version, "id": head.id, "binary": binary}
        data = b"".join(packets.pack(packets.ANSWER, 0, None, outputs))
        answer, made = await bodies.elsewhere("infer_answer", told, data)
        size, body = answer["json_bytes"], bytes(made)
    if not size:
        return Response(200, body)
    return Response(200, body, "application/octet-stream", {_LENGTH: str(size)})
