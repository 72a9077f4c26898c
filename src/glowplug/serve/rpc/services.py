"""TensorFlow Serving's gRPC services, `PredictionService` and `ModelService`, over our own messages."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.message import DecodeError

from glowplug.core.errors import GlowplugError, NotReadyError, RequestError
from glowplug.serve.log import Log
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.models.config import from_message
from glowplug.serve.models.manager import Manager
from glowplug.serve.request_ids import new_id
from glowplug.serve.service import Service, read_target, write_spec
from glowplug.serve.wire.array_types import dtype_name
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import serving
from glowplug.serve.wire.statuses import code_of
from glowplug.serve.wire.tensor_proto import decode, fill

from .call import Call
from .methods import Method, Methods

_SIGNATURE_DEF = "signature_def"
_TYPE_URL = "type.googleapis.com/tensorflow.serving.SignatureDefMap"

Operation = Callable[[Any, float, str], Awaitable[Any]]


class Services:
    """The methods of both services. Each takes a message, the seconds that are left, and who asks."""

    def __init__(
        self, service: Service, manager: Manager, metrics: Metrics, log: Log, limits: Limits, timeout_s: float
    ) -> None:
        self._service, self._manager = service, manager
        self._metrics, self._log = metrics, log
        self._limits, self._timeout_s = limits, timeout_s

    def methods(self) -> Methods:
        """Return the methods of both services by path."""
        prediction: dict[str, tuple[Operation, str]] = {
            "Predict": (self.predict, "PredictRequest"),
            "Classify": (self.classify, "ClassificationRequest"),
            "Regress": (self.regress, "RegressionRequest"),
            "MultiInference": (self.multi_inference, "MultiInferenceRequest"),
            "GetModelMetadata": (self.metadata, "GetModelMetadataRequest"),
        }
        model: dict[str, tuple[Operation, str]] = {
            "GetModelStatus": (self.status, "GetModelStatusRequest"),
            "HandleReloadConfigRequest": (self.reload, "ReloadConfigRequest"),
        }
        return {
            f"/tensorflow.serving.{service}/{name}": Method(unary=self._method(name, *entry))
            for service, entries in (("PredictionService", prediction), ("ModelService", model))
            for name, entry in entries.items()
        }

    def _method(self, name: str, operation: Operation, request: str) -> Callable[[bytes, Call], Awaitable[bytes]]:
        parse = serving(request).FromString

        async def answer(data: bytes, call: Call) -> bytes:
            began = time.perf_counter()
            left = call.time_left()
            timeout = self._timeout_s if left is None else min(left, self._timeout_s)
            code, message = "OK", None
            try:
                message = _parse(parse, data)
                try:
                    reply = await operation(message, timeout, call.peer)
                except NotReadyError:
                    again = functools.partial(operation, message, timeout, call.peer)
                    reply = await self._service.when_ready(again, timeout)
                return bytes(reply.SerializeToString())
            except asyncio.CancelledError:
                code = call.outcome
                raise
            except GlowplugError as error:
                code = code_of(error)
                raise
            except Exception:
                code = "INTERNAL"
                raise
            finally:
                seconds = time.perf_counter() - began
                model = message.model_spec.name if message is not None and hasattr(message, "model_spec") else ""
                self._metrics.request("GRPC", name, model, code, seconds)
                if self._log.access:
                    self._log.request("gRPC", name, code, seconds, _request_id(call), model=model)

        return answer

    async def predict(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`PredictionService.Predict`."""
        spec = request.model_spec
        inputs = {name: decode(proto, name, self._limits) for name, proto in request.inputs.items()}
        version, name, outputs = await self._service.predict(
            read_target(spec), spec.signature_name, inputs, list(request.output_filter), timeout_s
        )
        response = serving("PredictResponse")()
        write_spec(version, name, response.model_spec)
        for key, array in outputs.items():
            fill(response.outputs[key], array, dtype_name(array))
        return response

    async def classify(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`PredictionService.Classify`."""
        return await self._infer("classify", "ClassificationResponse", request, timeout_s)

    async def regress(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`PredictionService.Regress`."""
        return await self._infer("regress", "RegressionResponse", request, timeout_s)

    async def _infer(self, method: str, response: str, request: Any, timeout_s: float) -> Any:
        spec = request.model_spec
        version, name, result = await self._service.infer(
            method, read_target(spec), spec.signature_name, request.input, timeout_s
        )
        return serving(response)(model_spec=write_spec(version, name), result=result)

    async def multi_inference(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`PredictionService.MultiInference`."""
        results = await self._service.multi_infer(list(request.tasks), request.input, timeout_s)
        return serving("MultiInferenceResponse")(results=results)

    async def metadata(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`PredictionService.GetModelMetadata`."""
        if not request.metadata_field:
            raise RequestError("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != _SIGNATURE_DEF:
                raise RequestError(f"Metadata field {field[:100]} is not supported")
        version, found = self._service.metadata(read_target(request.model_spec))
        response = serving("GetModelMetadataResponse")(model_spec=write_spec(version, ""))
        packed = response.metadata[_SIGNATURE_DEF]
        packed.type_url, packed.value = _TYPE_URL, found.SerializeToString()
        return response

    async def status(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`ModelService.GetModelStatus`."""
        return self._service.status(read_target(request.model_spec))

    async def reload(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`ModelService.HandleReloadConfigRequest`, from this machine only."""
        if not peer.startswith(("unix:", "ipv4:127.0.0.1:", "ipv6:[::1]:", "ipv6:%5B::1%5D:")):
            raise RequestError(
                "the configuration can be changed only over loopback or the unix socket", code="PERMISSION_DENIED"
            )
        if request.config.WhichOneof("config") != "model_config_list":
            raise RequestError("only a model_config_list can be loaded", seen=request.config.WhichOneof("config"))
        known = set(self._manager.catalog.models)
        self._manager.configure(from_message(request.config))
        await self._started(set(self._manager.catalog.models) - known, timeout_s)
        response = serving("ReloadConfigResponse")()
        response.status.SetInParent()
        return response

    async def _started(self, names: set[str], timeout_s: float) -> None:
        """Wait until every model answers or cannot; raises where one of these new ones cannot."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while self._manager.starting():
            try:
                await asyncio.wait_for(self._manager.wait_for_change(), deadline - loop.time())
            except asyncio.TimeoutError:
                raise RequestError("the models are still being loaded", code="DEADLINE_EXCEEDED") from None
        for name, model in self._manager.catalog.models.items():
            failed = [version.error for version in model.versions.values() if version.error]
            if name in names and failed and not model.available():
                raise RequestError(f"model {name!r} cannot be loaded", seen=failed[-1], code="UNKNOWN")


def _parse(parse: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return parse(data)
    except DecodeError:
        raise RequestError("Error deserializing request", seen=f"{len(data)} bytes") from None


def _request_id(call: Call) -> str:
    return call.metadata(b"x-request-id").decode("utf-8", "replace")[:128] or new_id()
