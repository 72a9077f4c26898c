"""What every call of a service has in common: its time, waiting for a version that is being loaded, counts and log."""

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
from glowplug.serve.request_ids import new_id
from glowplug.serve.service import Service
from glowplug.serve.telemetry.trail import Outcome, Trail, Watch
from glowplug.serve.wire.statuses import CODES, code_of

from .call import Call
from .methods import Unary

Operation = Callable[[Any, float], Awaitable[Any]]  # a message and the seconds that are left, to an answer or its bytes
Reader = Callable[[bytes], Awaitable[Any]]  # from bytes to a message, or to what an operation takes in its place


class Reporting:
    """Runs operations of services, and reports on them. `watch` is there where they are followed on their way."""

    def __init__(
        self, service: Service, metrics: Metrics, log: Log, timeout_s: float, watch: Watch | None = None
    ) -> None:
        self._service, self._metrics, self._log, self._timeout_s = service, metrics, log, timeout_s
        self._watch = watch

    def unary(self, name: str, operation: Operation, read: Reader, model: Callable[[Any], str]) -> Unary:
        """Return the method that reads a message, runs an operation and writes what it returns."""

        async def answer(data: bytes, call: Call) -> bytes:
            reply = await self.run(name, operation, read, model, data, call)
            return reply if isinstance(reply, bytes) else bytes(reply.SerializeToString())

        return answer

    async def run(
        self, name: str, operation: Operation, read: Reader, model: Callable[[Any], str], data: bytes, call: Call
    ) -> Any:
        """Run an operation for one message of a call. `model` tells the model that a message is about."""
        began = time.perf_counter()
        left = call.time_left()
        timeout = self._timeout_s if left is None else left  # the flag is about REST; a call has a deadline of its own
        code, problem, message = "OK", "", None
        trail = None if self._watch is None else self._watch.begin("gRPC", call.head.path[1:], call.metadata)
        try:
            message = await read(data)
            try:
                return await operation(message, timeout)
            except NotReadyError:
                return await self._service.when_ready(functools.partial(operation, message, timeout), timeout)
        except asyncio.CancelledError:
            code = call.outcome
            raise
        except GlowplugError as error:
            code, problem = code_of(error), str(error)
            raise
        except Exception as error:
            code, problem = "INTERNAL", f"unexpected {type(error).__name__}"
            raise
        finally:
            seconds = time.perf_counter() - began
            about = model(message) if message is not None else ""
            self._metrics.request("GRPC", name, about, code, seconds)
            if problem:
                self._metrics.trouble.request("gRPC", name, about, code, problem)
            if trail is not None:
                attributes = _attributes(call, code)
                outcome = Outcome(call.head.path[1:], name, about, code, seconds, problem, attributes)
                self._followed(trail, call, outcome)

    def _followed(self, trail: Trail, call: Call, outcome: Outcome) -> None:
        """Tell of a call that was followed."""
        assert self._watch is not None
        self._watch.end(trail, "gRPC", outcome)
        self._log.request(
            "gRPC",
            outcome.method,
            outcome.code,
            outcome.seconds,
            _request_id(call),
            model=outcome.model,
            version=trail.version,
            signature=trail.signature,
            trace_id=trail.trace_id,
        )


def parse(request: Any, data: bytes) -> Any:
    """Return the message of a class that bytes hold."""
    try:
        return request.FromString(data)
    except DecodeError:
        raise RequestError("Error deserializing request", seen=f"{len(data)} bytes") from None


def reader(request: Any) -> Reader:
    """Return what reads messages of a class."""

    async def read(data: bytes) -> Any:
        return parse(request, data)

    return read


def _attributes(call: Call, code: str) -> tuple[tuple[str, str | int], ...]:
    service, _, method = call.head.path[1:].partition("/")
    return (
        ("rpc.system", "grpc"),
        ("rpc.service", service),
        ("rpc.method", method),
        ("rpc.grpc.status_code", CODES[code]),
    )


def _request_id(call: Call) -> str:
    return call.metadata(b"x-request-id").decode("utf-8", "replace")[:128] or new_id()
