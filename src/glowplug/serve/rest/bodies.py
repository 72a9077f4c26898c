"""Reads the bodies of requests and writes those of answers: here where that is quick, in another process where not.

Every millisecond in this process is one that all clients wait. Bodies beyond a few kilobytes, and all that unfold to
more, go to a parser's process (`workers.parser`), the first of which starts when the first such body comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Signature
from glowplug.serve.wire.calls import Arrays, find_signature
from glowplug.serve.wire.examples import read_json
from glowplug.serve.wire.gzip_members import unpacked
from glowplug.serve.wire.json_predict import Form, read_body, read_inputs, write_answer
from glowplug.serve.wire.limits import Limits
from glowplug.serve.workers import packets
from glowplug.serve.workers.parsers import Parsers
from glowplug.serve.workers.spec import signatures_to_json

from .exchange import Request

QUICK_BYTES = 1 << 15
_QUICK_STRINGS = 1 << 10


class Bodies:
    """Reads and writes bodies."""

    def __init__(self, parsers: Parsers, limits: Limits) -> None:
        self.limits, self._parsers = limits, parsers

    async def read_predict(
        self, request: Request, signatures: Callable[[], Mapping[str, Signature]]
    ) -> tuple[str, Form, dict[str, NDArray[Any]]]:
        """Return the signature's name, the form of the body, and the arrays in it. `signatures` are the model's."""
        text = quick_text(request)
        if text is not None:
            parsed = read_body(text)
            _, signature = find_signature(signatures(), parsed.signature)
            return parsed.signature, parsed.form, read_inputs(parsed, signature, self.limits)
        head, body = await self.read("predict", request, {"signatures": signatures_to_json(signatures())})
        return head["signature"], head["form"], packets.read(body, lazily=True)

    async def read_examples(self, request: Request) -> tuple[str, Any]:
        """Return the signature's name and the examples of a body: an `Input` message, or a vector of strings."""
        text = quick_text(request)
        if text is not None:
            return read_json(text)
        head, body = await self.read("examples", request, {})
        return head["signature"], packets.read(body, lazily=True)["inputs"]

    async def write_answer(self, form: Form, outputs: Arrays) -> bytes:
        """Return the body of an answer."""
        if all(is_quick(array) for array in outputs.values()):
            return write_answer(form, outputs)
        data = b"".join(packets.pack(packets.ANSWER, 0, None, outputs))
        _, body = await self.elsewhere("answer", {"form": form}, data)
        return bytes(body)

    async def read(self, operation: str, request: Request, head: dict[str, Any]) -> tuple[Any, memoryview]:
        """Have a parser's process read the body of a request."""
        head |= {"gzip": request.coding == "gzip", "limits": astuple(self.limits)}
        return await self.elsewhere(operation, head, request.body)

    async def elsewhere(self, operation: str, head: dict[str, Any], body: bytes) -> tuple[Any, memoryview]:
        """Have a parser's process do an operation."""
        return await self._parsers.run(operation, head, body)


def quick_text(request: Request) -> bytes | None:
    """Return the text of a body that is read here; `None` for one that is not."""
    if request.coding not in ("", "gzip"):
        raise RequestError("this compression is not supported", seen=request.coding[:40], remedy="use gzip, or none")
    if len(request.body) > QUICK_BYTES:
        return None
    return unpacked(request.body, QUICK_BYTES) if request.coding else request.body


def is_quick(array: NDArray[Any]) -> bool:
    """Say whether an array can be written as text here."""
    return array.nbytes <= QUICK_BYTES and (array.dtype != object or array.size <= _QUICK_STRINGS)
