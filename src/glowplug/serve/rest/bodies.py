"""Reads the bodies of requests and writes those of answers: here where that is quick, in another process where not.

Every millisecond in this process is one that all clients wait. Bodies beyond a few kilobytes, and all that unfold to
more, go to a parser's process (`workers.parser`), the first of which starts when the first such body comes.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

import orjson
from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Signature
from glowplug.serve.wire.calls import Arrays, find_signature
from glowplug.serve.wire.examples import read_json
from glowplug.serve.wire.json_predict import Form, read_body, read_inputs, write_answer
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import serving
from glowplug.serve.workers import packets
from glowplug.serve.workers.group import Group, GroupSettings, Spawner
from glowplug.serve.workers.parser import as_bytes, unpacked
from glowplug.serve.workers.spec import WorkerSpec, signatures_to_json

from .http import Request

_QUICK_BYTES = 1 << 15
_QUICK_STRINGS = 1 << 10
_PARSERS = 2
_MAX_WAITING = 64


class Bodies:
    """Reads and writes bodies. `timeout_s` bounds the wait for a parser."""

    def __init__(self, spawner: Spawner, limits: Limits, timeout_s: float) -> None:
        self._spawner, self._limits, self._timeout_s = spawner, limits, timeout_s
        self._parsers: asyncio.Task[Group] | None = None

    async def read_predict(
        self, request: Request, signatures: Callable[[], Mapping[str, Signature]]
    ) -> tuple[str, Form, dict[str, NDArray[Any]]]:
        """Return the signature's name, the form of the body, and the arrays in it. `signatures` are the model's."""
        text = _quick_text(request)
        if text is not None:
            parsed = read_body(text)
            _, signature = find_signature(signatures(), parsed.signature)
            return parsed.signature, parsed.form, read_inputs(parsed, signature, self._limits)
        head, body = await self._read("predict", request, {"signatures": signatures_to_json(signatures())})
        return head["signature"], head["form"], packets.read(body)

    async def read_examples(self, request: Request) -> tuple[str, Any]:
        """Return the signature's name and the `Input` message of a body."""
        text = _quick_text(request)
        if text is not None:
            return read_json(text)
        head, body = await self._read("examples", request, {})
        return head["signature"], serving("Input").FromString(bytes(body))

    async def write_answer(self, form: Form, outputs: Arrays) -> bytes:
        """Return the body of an answer."""
        if all(_is_quick(array) for array in outputs.values()):
            return write_answer(form, outputs)
        data = b"".join(packets.pack(packets.ANSWER, 0, None, outputs))
        _, body = await self._call("answer", {"form": form}, data)
        return bytes(body)

    async def _read(self, operation: str, request: Request, head: dict[str, Any]) -> tuple[Any, memoryview]:
        head |= {"gzip": request.gzip, "limits": astuple(self._limits)}
        return await self._call(operation, head, request.body)

    async def _call(self, operation: str, head: dict[str, Any], body: bytes) -> tuple[Any, memoryview]:
        if self._parsers is None or (self._parsers.done() and self._parsers.exception() is not None):
            self._parsers = asyncio.ensure_future(self._start())
        group = await asyncio.shield(self._parsers)
        inputs = {"head": as_bytes(orjson.dumps(head)), "body": as_bytes(body)}
        answer = await group.submit(operation, inputs, ("head", "body"), self._timeout_s)
        return orjson.loads(answer["head"].data), answer["body"].data

    async def _start(self) -> Group:
        spec = WorkerSpec("", "parser", synthesize=False)
        group = Group(spec, GroupSettings(_PARSERS, max_queue=_MAX_WAITING), self._spawner, _Unobserved())
        await group.start()
        return group


class _Unobserved:
    """Parsers are no version: nobody counts what they do."""

    def batch_sent(self, rows: int, padding: int, waited_s: float) -> None:
        """Learn that a batch went to a worker."""

    def worker_died(self, reason: str) -> None:
        """Learn that a worker ended on its own."""


def _quick_text(request: Request) -> bytes | None:
    """Return the text of a body that is read here; `None` for one that is not."""
    if len(request.body) > _QUICK_BYTES:
        return None
    if not request.gzip:
        return request.body
    try:
        if len(zlib.decompressobj(31).decompress(request.body, _QUICK_BYTES + 1)) > _QUICK_BYTES:
            return None
    except zlib.error:
        raise RequestError("the body is not gzip") from None
    return unpacked(request.body, _QUICK_BYTES)


def _is_quick(array: NDArray[Any]) -> bool:
    return array.nbytes <= _QUICK_BYTES and (array.dtype != object or array.size <= _QUICK_STRINGS)
