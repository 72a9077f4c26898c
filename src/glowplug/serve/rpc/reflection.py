"""The standard reflection service, so that tools such as grpcurl can list and call what this server offers."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from glowplug.core.errors import RequestError
from glowplug.serve.wire.messages import message, pool
from glowplug.serve.wire.statuses import CODES

from .call import Call
from .methods import Method, Methods

_SERVICES = (
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
    "inference.GRPCInferenceService",
    "tensorflow.serving.ModelService",
    "tensorflow.serving.PredictionService",
)
_PACKAGE = "grpc.reflection.v1alpha"
_NEW_PACKAGE = "grpc.reflection.v1"  # the same messages under another name, which newer tools ask for first


def methods() -> Methods:
    """Return the methods of the service by path."""
    request = message(f"{_PACKAGE}.ServerReflectionRequest")
    response = message(f"{_PACKAGE}.ServerReflectionResponse")

    async def info(call: Call) -> None:
        async for data in call.messages():
            try:
                asked = request.FromString(data)
            except DecodeError:
                raise RequestError("Error deserializing request", seen=f"{len(data)} bytes") from None
            reply = response(valid_host=asked.host, original_request=asked)
            _answer(asked, reply)
            await call.send(reply.SerializeToString())

    method = Method(streaming=info)
    return {f"/{package}.ServerReflection/ServerReflectionInfo": method for package in (_PACKAGE, _NEW_PACKAGE)}


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
        reply.error_response.error_code = CODES["NOT_FOUND"]
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
