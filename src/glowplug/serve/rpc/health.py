"""The standard health service: serving once every configured model has a version that answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from glowplug.serve.messages import message

_SERVICES = ("", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService")
_SERVING, _NOT_SERVING, _UNKNOWN = 1, 2, 3
_WATCH_SECONDS = 0.5


def handler(is_ready: Callable[[], bool]) -> Any:
    """Return gRPC's handler for the service."""
    request, response = (message(f"grpc.health.v1.HealthCheck{side}") for side in ("Request", "Response"))

    def status(service: str) -> int:
        if service not in _SERVICES:
            return _UNKNOWN
        return _SERVING if is_ready() else _NOT_SERVING

    async def check(asked: Any, context: Any) -> Any:
        found = status(asked.service)
        if found == _UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return response(status=found)

    async def watch(asked: Any, context: Any) -> AsyncIterator[Any]:
        last = None
        while True:
            found = status(asked.service)
            if found != last:
                last = found
                yield response(status=found)
            await asyncio.sleep(_WATCH_SECONDS)

    return grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health",
        {
            "Check": grpc.unary_unary_rpc_method_handler(
                check, request_deserializer=request.FromString, response_serializer=response.SerializeToString
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(
                watch, request_deserializer=request.FromString, response_serializer=response.SerializeToString
            ),
        },
    )
