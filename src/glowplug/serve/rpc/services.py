"""TensorFlow Serving's gRPC services, `PredictionService` and `ModelService`, over our own messages."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import astuple
from typing import Any

from glowplug.core.errors import RequestError
from glowplug.serve.access import Scope
from glowplug.serve.models.config import from_message
from glowplug.serve.models.manager import Manager
from glowplug.serve.service import Service, read_target, write_spec
from glowplug.serve.wire import predict_message
from glowplug.serve.wire.examples import ExamplesCall
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import serving
from glowplug.serve.workers import packets
from glowplug.serve.workers.parsers import Parsers

from .methods import Method, Methods
from .reporting import Operation, Reporting, parse, reader

_SIGNATURE_DEF = "signature_def"
_WITH_EXAMPLES = ("ClassificationRequest", "RegressionRequest", "MultiInferenceRequest")
_QUICK_EXAMPLES_BYTES = 1 << 15
_TYPE_URL = "type.googleapis.com/tensorflow.serving.SignatureDefMap"


class Services:
    """The methods of both services. Each takes a message and the seconds that are left."""

    def __init__(
        self, service: Service, manager: Manager, reporting: Reporting, parsers: Parsers, limits: Limits
    ) -> None:
        self._service, self._manager, self._reporting = service, manager, reporting
        self._parsers, self._limits = parsers, limits

    def methods(self) -> Methods:
        """Return the methods of both services by path."""
        found: dict[str, tuple[Operation, str, Scope]] = {
            "PredictionService/Predict": (self.predict, "PredictRequest", "predict"),
            "PredictionService/Classify": (self.classify, "ClassificationRequest", "predict"),
            "PredictionService/Regress": (self.regress, "RegressionRequest", "predict"),
            "PredictionService/MultiInference": (self.multi_inference, "MultiInferenceRequest", "predict"),
            "PredictionService/GetModelMetadata": (self.metadata, "GetModelMetadataRequest", "status"),
            "ModelService/GetModelStatus": (self.status, "GetModelStatusRequest", "status"),
            "ModelService/HandleReloadConfigRequest": (self.reload, "ReloadConfigRequest", "control"),
        }
        methods = {}
        for path, (operation, request, scope) in found.items():
            read = reader(serving(request))
            if request in _WITH_EXAMPLES:
                read = functools.partial(self._read_examples, request)
            elif request == "PredictRequest":
                read = self._read_predict
            unary = self._reporting.unary(path.partition("/")[2], operation, read, _model)
            methods[f"/tensorflow.serving.{path}"] = Method(unary=unary, scope=scope)
        return methods

    async def _read_predict(self, data: bytes) -> predict_message.PredictCall:
        """Read a request here where that is quick, in a parser's process where not."""
        if predict_message.is_quick(data):
            request = parse(serving("PredictRequest"), data)
            if not predict_message.unfolds(request):
                return predict_message.read(request, self._limits)
        head, body = await self._parsers.run("predict_message", {"limits": astuple(self._limits)}, data)
        request = serving("PredictRequest").FromString(bytes.fromhex(head["request"]))
        inputs = packets.read(body, lazily=True)
        return predict_message.PredictCall(request.model_spec, inputs, list(request.output_filter))

    async def _read_examples(self, kind: str, data: bytes) -> Any:
        """Read a request with examples, the large ones in a parser's process."""
        if len(data) <= _QUICK_EXAMPLES_BYTES:
            return parse(serving(kind), data)
        head, body = await self._parsers.run("examples_message", {"kind": kind}, data)
        request = serving(kind).FromString(bytes.fromhex(head["request"]))
        return ExamplesCall(request, packets.read(body, lazily=True)["inputs"])

    async def predict(self, request: predict_message.PredictCall, timeout_s: float) -> Any:
        """`PredictionService.Predict`."""
        spec = request.model_spec
        version, name, outputs = await self._service.predict(
            read_target(spec), spec.signature_name, request.inputs, request.wanted, timeout_s
        )
        if predict_message.is_quickly_written(outputs):
            response = predict_message.write(outputs)
            write_spec(version, name, response.model_spec)
            return response
        about = serving("PredictResponse")(model_spec=write_spec(version, name))
        data = b"".join(packets.pack(packets.ANSWER, 0, None, outputs))
        _, written = await self._parsers.run("predict_message_answer", {}, data)
        return about.SerializeToString() + bytes(written)  # messages one behind the other are one

    async def classify(self, request: Any, timeout_s: float) -> Any:
        """`PredictionService.Classify`."""
        return await self._infer("classify", "ClassificationResponse", request, timeout_s)

    async def regress(self, request: Any, timeout_s: float) -> Any:
        """`PredictionService.Regress`."""
        return await self._infer("regress", "RegressionResponse", request, timeout_s)

    async def _infer(self, method: str, response: str, request: Any, timeout_s: float) -> Any:
        spec = request.model_spec
        version, name, result = await self._service.infer(
            method, read_target(spec), spec.signature_name, request.input, timeout_s
        )
        return serving(response)(model_spec=write_spec(version, name), result=result)

    async def multi_inference(self, request: Any, timeout_s: float) -> Any:
        """`PredictionService.MultiInference`."""
        results = await self._service.multi_infer(list(request.tasks), request.input, timeout_s)
        return serving("MultiInferenceResponse")(results=results)

    async def metadata(self, request: Any, timeout_s: float) -> Any:
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

    async def status(self, request: Any, timeout_s: float) -> Any:
        """`ModelService.GetModelStatus`."""
        return self._service.status(read_target(request.model_spec))

    async def reload(self, request: Any, timeout_s: float) -> Any:
        """`ModelService.HandleReloadConfigRequest`."""
        if request.config.WhichOneof("config") != "model_config_list":
            raise RequestError("only a model_config_list can be loaded", seen=request.config.WhichOneof("config"))
        known = set(self._manager.catalog.models)
        self._manager.configure(from_message(request.config))
        await self._started(set(self._manager.catalog.models) - known, timeout_s)
        response = serving("ReloadConfigResponse")()
        response.status.SetInParent()
        return response

    async def _started(self, names: set[str], timeout_s: float) -> None:
        """Wait until every model answers or cannot; raises where one of these new ones cannot.

        An older one whose load goes on and on is not waited for.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while self._manager.starting(names):
            try:
                await asyncio.wait_for(self._manager.wait_for_change(), deadline - loop.time())
            except TimeoutError:
                raise RequestError("the models are still being loaded", code="DEADLINE_EXCEEDED") from None
        for name, model in self._manager.catalog.models.items():
            failed = [version.error for version in model.versions.values() if version.error]
            if name in names and failed and not model.available():
                raise RequestError(f"model {name!r} cannot be loaded", seen=failed[-1], code="UNKNOWN")


def _model(request: Any) -> str:
    about = request.message if isinstance(request, ExamplesCall) else request
    return about.model_spec.name if hasattr(about, "model_spec") else ""
