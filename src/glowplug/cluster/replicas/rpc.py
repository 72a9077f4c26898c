"""gRPC through Ray Serve: TensorFlow Serving's services and Open Inference's, as bytes that pass its proxies unread.

Ray Serve is told of services by functions that add them to a server. Those of generated code would bring messages of
their own; these hand the bytes on, and the replica reads them with the server's own messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from glowplug.core.errors import GlowplugError
from glowplug.serve.log import Log
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.rest.bodies import Bodies
from glowplug.serve.rpc.reporting import Reporting
from glowplug.serve.rpc.services import Services
from glowplug.serve.service import Service
from glowplug.serve.v2.services import Services as V2Services
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.statuses import CODES, code_of
from glowplug.serve.workers.parsers import Parsers

SERVICES = {
    "tensorflow.serving.PredictionService": ("Predict", "Classify", "Regress", "MultiInference", "GetModelMetadata"),
    "tensorflow.serving.ModelService": ("GetModelStatus",),
    "inference.GRPCInferenceService": (
        "ServerLive",
        "ServerReady",
        "ServerMetadata",
        "ModelReady",
        "ModelMetadata",
        "ModelInfer",
    ),
}
METHODS = tuple(name for names in SERVICES.values() for name in names)
SERVICER_FUNCTIONS = ("glowplug.cluster.replicas.rpc.add_services",)


def add_services(servicer: Any, server: Any) -> None:
    """Add the services to a gRPC server of Ray Serve's, which has the calls answered by replicas."""
    import grpc

    for service, names in SERVICES.items():
        handlers = {name: grpc.unary_unary_rpc_method_handler(getattr(servicer, name)) for name in names}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


class Written:
    """An answer that is bytes already, where Ray Serve expects a message."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Return the bytes."""
        return self._data


class _Call:
    """What the services ask of a call: Ray Serve's proxies keep the deadline."""

    outcome = "CANCELLED"

    def time_left(self) -> float | None:
        """Nobody says here how long the client waits."""
        return None


class RpcAnswers:
    """Answers calls by the name of their method."""

    def __init__(
        self,
        service: Service,
        metrics: Metrics,
        log: Log,
        parsers: Parsers,
        bodies: Bodies,
        timeout_s: float,
        ready: Callable[[], bool],
    ) -> None:
        reporting = Reporting(service, metrics, log, timeout_s)
        manager: Any = None  # `HandleReloadConfigRequest` is not offered: what is served is decided by deploying
        methods = {
            **Services(service, manager, reporting, parsers, Limits()).methods(),
            **V2Services(service, reporting, bodies, ready).methods(),
        }
        self._methods = {path.rpartition("/")[2]: method for path, method in methods.items()}

    async def answer(self, name: str, data: bytes, context: Any) -> Written:
        """Answer a call, or give it the status of what went wrong."""
        import grpc

        unary = self._methods[name].unary
        assert unary is not None
        call: Any = _Call()
        try:
            return Written(await unary(data, call))
        except GlowplugError as error:
            code = CODES[code_of(error)]
            context.set_code(next(one for one in grpc.StatusCode if one.value[0] == code))
            context.set_details(str(error)[:1000])
            raise


def rpc_method(name: str) -> Callable[..., Awaitable[Written]]:
    """Return the method of a replica that Ray Serve calls for a method of gRPC's."""

    async def method(self: Any, request: bytes, grpc_context: Any) -> Written:
        return await self._rpc.answer(name, request, grpc_context)  # type: ignore[no-any-return]

    method.__name__ = method.__qualname__ = name
    return method
