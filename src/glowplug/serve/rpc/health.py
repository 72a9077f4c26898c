"""The standard health service: serving once every configured model has a version that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from glowplug.core.errors import RequestError
from glowplug.serve.wire.messages import message

from .call import Call
from .methods import Method, Methods

_SERVICES = (
    "",
    "inference.GRPCInferenceService",
    "tensorflow.serving.ModelService",
    "tensorflow.serving.PredictionService",
)
_SERVING, _NOT_SERVING, _UNKNOWN = 1, 2, 3
_WATCH_SECONDS = 0.5


def methods(is_ready: Callable[[], bool]) -> Methods:
    """Return the methods of the service by path."""
    request, response = (message(f"grpc.health.v1.HealthCheck{side}") for side in ("Request", "Response"))

    def read(data: bytes) -> str:
        try:
            return str(request.FromString(data).service)
        except DecodeError:
            raise RequestError("Error deserializing request", seen=f"{len(data)} bytes") from None

    def status(service: str) -> int:
        if service not in _SERVICES:
            return _UNKNOWN
        return _SERVING if is_ready() else _NOT_SERVING

    def written(found: int) -> bytes:
        reply: Any = response(status=found)
        return bytes(reply.SerializeToString())

    async def check(data: bytes, call: Call) -> bytes:
        found = status(read(data))
        if found == _UNKNOWN:
            raise RequestError("unknown service", code="NOT_FOUND")
        return written(found)

    async def watch(call: Call) -> None:
        async for data in call.messages():
            service, last = read(data), None
            while True:
                found = status(service)
                if found != last:
                    last = found
                    await call.send(written(found))
                await asyncio.sleep(_WATCH_SECONDS)
        raise RequestError("this method takes one message: got none", code="UNIMPLEMENTED")

    return {
        "/grpc.health.v1.Health/Check": Method(unary=check, scope=""),
        "/grpc.health.v1.Health/Watch": Method(streaming=watch, scope=""),
    }
