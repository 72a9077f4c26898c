"""The standard reflection service, so that tools such as grpcurl can list and call what this server offers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from glowplug.serve.messages import message, pool

_SERVICES = (
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
    "tensorflow.serving.ModelService",
    "tensorflow.serving.PredictionService",
)
_PACKAGE = "grpc.reflection.v1alpha"


def handler() -> Any:
    """Return gRPC's handler for the service."""
    request = message(f"{_PACKAGE}.ServerReflectionRequest")
    response = message(f"{_PACKAGE}.ServerReflectionResponse")

    async def info(asked: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for one in asked:
            reply = response(valid_host=one.host, original_request=one)
            _answer(one, reply)
            yield reply

    return grpc.method_handlers_generic_handler(
        f"{_PACKAGE}.ServerReflection",
        {
            "ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(
                info, request_deserializer=request.FromString, response_serializer=response.SerializeToString
            )
        },
    )


def _answer(asked: Any, reply: Any) -> None:
    kind = asked.WhichOneof("message_request")
    try:
        if kind == "list_services":
            for name in _SERVICES:
                reply.list_services_response.service.add(name=name)
            return
        if kind == "file_by_filename":
            found = pool().FindFileByName(asked.file_by_filename)
        elif kind == "file_containing_symbol":
            found = pool().FindFileContainingSymbol(asked.file_containing_symbol)
        else:
            raise KeyError(kind)
    except KeyError:
        reply.error_response.error_code = grpc.StatusCode.NOT_FOUND.value[0]
        reply.error_response.error_message = "not found"
        return
    for file in _with_dependencies(found):
        reply.file_descriptor_response.file_descriptor_proto.append(file.serialized_pb)


def _with_dependencies(file: Any) -> list[Any]:
    found = {file.name: file}
    for needed in file.dependencies:
        for one in _with_dependencies(needed):
            found.setdefault(one.name, one)
    return list(found.values())
