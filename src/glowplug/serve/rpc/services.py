"""TensorFlow Serving's gRPC services, `PredictionService` and `ModelService`, over our own messages."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from glowplug.core.errors import GlowplugError, RequestError
from glowplug.serve.array_types import dtype_name
from glowplug.serve.limits import Limits
from glowplug.serve.log import Log
from glowplug.serve.manager import Manager
from glowplug.serve.messages import serving
from glowplug.serve.metrics import Metrics
from glowplug.serve.model_config import from_message
from glowplug.serve.request_ids import new_id
from glowplug.serve.service import Service, read_target, write_spec
from glowplug.serve.statuses import CODES, code_of
from glowplug.serve.tensor_proto import decode, encode

_SIGNATURE_DEF = "signature_def"
_TYPE_URL = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
_STATUS = {status.value[0]: status for status in grpc.StatusCode}

Method = Callable[[Any, float, str], Awaitable[Any]]


class Services:
    """The methods of both services. Each takes a message, the seconds that are left, and who asks."""

    def __init__(
        self, service: Service, manager: Manager, metrics: Metrics, log: Log, limits: Limits, timeout_s: float
    ) -> None:
        self._service, self._manager = service, manager
        self._metrics, self._log = metrics, log
        self._limits, self._timeout_s = limits, timeout_s

    def handlers(self) -> list[Any]:
        """Return gRPC's handlers for both services."""
        prediction: dict[str, tuple[Method, str, str]] = {
            "Predict": (self.predict, "PredictRequest", "PredictResponse"),
            "Classify": (self.classify, "ClassificationRequest", "ClassificationResponse"),
            "Regress": (self.regress, "RegressionRequest", "RegressionResponse"),
            "MultiInference": (self.multi_inference, "MultiInferenceRequest", "MultiInferenceResponse"),
            "GetModelMetadata": (self.metadata, "GetModelMetadataRequest", "GetModelMetadataResponse"),
        }
        model: dict[str, tuple[Method, str, str]] = {
            "GetModelStatus": (self.status, "GetModelStatusRequest", "GetModelStatusResponse"),
            "HandleReloadConfigRequest": (self.reload, "ReloadConfigRequest", "ReloadConfigResponse"),
        }
        return [
            grpc.method_handlers_generic_handler(
                f"tensorflow.serving.{name}", {key: self._handler(key, *entry) for key, entry in methods.items()}
            )
            for name, methods in (("PredictionService", prediction), ("ModelService", model))
        ]

    def _handler(self, name: str, method: Method, request: str, response: str) -> Any:
        parse = serving(request).FromString

        async def answer(data: bytes, context: Any) -> Any:
            began = time.perf_counter()
            left = context.time_remaining()
            timeout = self._timeout_s if left is None or not math.isfinite(left) else min(left, self._timeout_s)
            code, text, reply, message = "OK", "", None, None
            try:
                message = _parse(parse, data)
                reply = await method(message, timeout, context.peer())
            except GlowplugError as error:
                code, text = code_of(error), str(error)
            except Exception as error:  # the process boundary
                code, text = "INTERNAL", f"unexpected {type(error).__name__}"
                self._log.event("defect", error=f"{type(error).__name__}: {error}", method=name)
            seconds = time.perf_counter() - began
            model = message.model_spec.name if message is not None and hasattr(message, "model_spec") else ""
            self._metrics.request("gRPC", name, model, code, seconds)
            if self._log.access:
                self._log.request("gRPC", name, code, seconds, _request_id(context), model=model)
            if reply is None:
                await context.abort(_STATUS[CODES[code]], text)
            return reply

        return grpc.unary_unary_rpc_method_handler(
            answer,  # without a deserializer it gets bytes: gRPC calls an unreadable message our fault
            response_serializer=serving(response).SerializeToString,
        )

    async def predict(self, request: Any, timeout_s: float, peer: str) -> Any:
        """`PredictionService.Predict`."""
        spec = request.model_spec
        inputs = {name: decode(proto, name, self._limits) for name, proto in request.inputs.items()}
        version, name, outputs = await self._service.predict(
            read_target(spec), spec.signature_name, inputs, list(request.output_filter), timeout_s
        )
        response = serving("PredictResponse")(model_spec=write_spec(version, name))
        for key, array in outputs.items():
            response.outputs[key].CopyFrom(encode(array, dtype_name(array)))
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
        self._manager.configure(from_message(request.config))
        response = serving("ReloadConfigResponse")()
        response.status.SetInParent()
        return response


def _parse(parse: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return parse(data)
    except DecodeError:
        raise RequestError("Error deserializing request", seen=f"{len(data)} bytes") from None


def _request_id(context: Any) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == "x-request-id":
            return str(value)[:128]
    return new_id()
