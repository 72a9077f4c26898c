"""Open Inference Protocol v2 over gRPC: `inference.GRPCInferenceService`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, astuple
from typing import Any

from glowplug.core.errors import GlowplugError
from glowplug.serve.access import Scope
from glowplug.serve.rest.bodies import Bodies
from glowplug.serve.rpc.call import Call
from glowplug.serve.rpc.methods import Method, Methods
from glowplug.serve.rpc.reporting import Operation, Reporting, parse, reader
from glowplug.serve.service import Service
from glowplug.serve.wire import v2_message
from glowplug.serve.wire.messages import message
from glowplug.serve.workers import packets

from .description import EXTENSIONS, PLATFORM, SERVER, describe, is_ready, reference

_PACKAGE = "inference"


class Services:
    """The methods of the service. Each takes a message and the seconds that are left."""

    def __init__(self, service: Service, reporting: Reporting, bodies: Bodies, ready: Callable[[], bool]) -> None:
        self._service, self._reporting, self._bodies, self._ready = service, reporting, bodies, ready

    def methods(self) -> Methods:
        """Return the methods by path."""
        named: dict[str, tuple[Operation, Scope]] = {
            "ServerLive": (self.server_live, ""),
            "ServerReady": (self.server_ready, ""),
            "ServerMetadata": (self.server_metadata, "status"),
            "ModelReady": (self.model_ready, "status"),
            "ModelMetadata": (self.model_metadata, "status"),
            "ModelInfer": (self.infer, "predict"),
        }
        found = {name: Method(unary=self._unary(name, one), scope=scope) for name, (one, scope) in named.items()}
        found["ModelStreamInfer"] = Method(streaming=self.stream_infer, scope="predict")
        return {f"/{_PACKAGE}.GRPCInferenceService/{name}": method for name, method in found.items()}

    def _unary(self, name: str, operation: Operation) -> Any:
        read = self._read_infer if name == "ModelInfer" else reader(_message(f"{name}Request"))
        return self._reporting.unary(f"v2:{name}", operation, read, _model)

    async def _read_infer(self, data: bytes) -> v2_message.InferCall:
        """Read a request here where that is quick, in a parser's process where not."""
        limits = self._bodies.limits
        if v2_message.is_quickly_parsed(data):
            request = parse(_message("ModelInferRequest"), data)
            if v2_message.is_quick(request):
                inputs = v2_message.read_inputs(request, limits)
                return v2_message.InferCall(request, inputs, bool(request.raw_input_contents))
        head, body = await self._bodies.elsewhere("infer_message", {"limits": astuple(limits)}, data)
        request = _message("ModelInferRequest").FromString(bytes.fromhex(head["request"]))
        return v2_message.InferCall(request, packets.read(body, lazily=True), head["raw"])

    async def server_live(self, request: Any, timeout_s: float) -> Any:
        """`ServerLive`: whoever answers lives."""
        return _message("ServerLiveResponse")(live=True)

    async def server_ready(self, request: Any, timeout_s: float) -> Any:
        """`ServerReady`: every model has a version that answers."""
        return _message("ServerReadyResponse")(ready=self._ready())

    async def server_metadata(self, request: Any, timeout_s: float) -> Any:
        """`ServerMetadata`."""
        return _message("ServerMetadataResponse")(name=SERVER[0], version=SERVER[1], extensions=EXTENSIONS)

    async def model_ready(self, request: Any, timeout_s: float) -> Any:
        """`ModelReady`."""
        ready = is_ready(self._service.catalog, reference(request.name, request.version))
        return _message("ModelReadyResponse")(ready=ready)

    async def model_metadata(self, request: Any, timeout_s: float) -> Any:
        """`ModelMetadata`."""
        found = describe(self._service.catalog, reference(request.name, request.version))
        response = _message("ModelMetadataResponse")(name=found.name, versions=found.versions, platform=PLATFORM)
        for tensors, entries in ((found.inputs, response.inputs), (found.outputs, response.outputs)):
            for tensor in tensors:
                entries.add(**asdict(tensor))
        return response

    async def infer(self, call: v2_message.InferCall, timeout_s: float) -> Any:
        """`ModelInfer`. The answer is raw where the request was."""
        request = call.message
        target = reference(request.model_name, request.model_version)
        signature, wanted = v2_message.signature_name(request), v2_message.wanted_outputs(request)
        version, _, outputs = await self._service.predict(target, signature, call.inputs, wanted, timeout_s)
        response = _message("ModelInferResponse")(
            model_name=version.model, model_version=str(version.number), id=request.id
        )
        if v2_message.is_quickly_written(outputs):
            v2_message.fill_outputs(response, outputs, raw=call.raw)
        else:
            data = b"".join(packets.pack(packets.ANSWER, 0, None, outputs))
            _, written = await self._bodies.elsewhere("infer_message_answer", {"raw": call.raw}, data)
            response.MergeFromString(bytes(written))
        return response

    async def stream_infer(self, call: Call) -> None:
        """`ModelStreamInfer`: an answer or an error for each message, in their order; an error ends nothing."""
        response = _message("ModelStreamInferResponse")
        async for data in call.messages():
            reply = response()
            try:
                found = await self._reporting.run(
                    "v2:ModelStreamInfer", self.infer, self._read_infer, _model, data, call
                )
                reply.infer_response.CopyFrom(found)
            except GlowplugError as error:
                reply.error_message = str(error).encode(errors="replace").decode()
            await call.send(reply.SerializeToString())


def _message(name: str) -> Any:
    return message(f"{_PACKAGE}.{name}")


def _model(request: Any) -> str:
    return str(getattr(request, "model_name", "") or getattr(request, "name", ""))
