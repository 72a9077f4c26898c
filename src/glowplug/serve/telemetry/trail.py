"""What a request leaves behind on its way through the server, for the access log and for traces.

Where neither is wanted there is no `Watch`, and whoever answers requests asks for nothing more than that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from glowplug.core.errors import GlowplugError
from glowplug.serve.wire.statuses import code_of
from glowplug.serve.workers.jobs import Timing

Field = Callable[[bytes], bytes]  # from the name of a header or of metadata to its value, empty where there is none


@dataclass(slots=True)
class Trail:
    """One request. `span` and `trace_id` are set where it is traced; the rest once it is known which model answers."""

    span: object = None
    trace_id: str = ""
    version: str = ""
    signature: str = ""


@dataclass(slots=True)
class ModelCall:
    """One call of a model within a request."""

    trail: Trail
    model: str
    version: str
    signature: str
    timing: Timing | None = None  # where somebody wants to know
    began_ns: int = field(default_factory=time.time_ns)
    began: float = field(default_factory=time.perf_counter)
    code: str = "OK"
    error: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended. `name` and `attributes` are as its protocol has them."""

    name: str
    method: str
    model: str
    code: str
    seconds: float
    error: str = ""
    attributes: tuple[tuple[str, str | int], ...] = ()


class Exporter(Protocol):
    """Whoever hands on what was seen: OpenTelemetry."""

    def begin(self, trail: Trail, protocol: str, name: str, read: Field) -> None:
        """A request came."""

    def called(self, call: ModelCall) -> None:
        """A call of a model is over."""

    def end(self, trail: Trail, protocol: str, outcome: Outcome) -> None:
        """A request is over."""


_TRAIL: ContextVar[Trail | None] = ContextVar("trail", default=None)


class Watch:
    """Follows requests. Each runs in a task of its own, or after the one before it."""

    def __init__(self, exporter: Exporter | None = None) -> None:
        self._exporter = exporter

    def begin(self, protocol: str, name: str, read: Field) -> Trail:
        """Follow a request from now on."""
        trail = Trail()
        if self._exporter is not None:
            self._exporter.begin(trail, protocol, name, read)
        _TRAIL.set(trail)
        return trail

    def call(self, model: str, version: int, signature: str) -> ModelCall:
        """Follow a call of a model that belongs to the request of this task."""
        trail = _TRAIL.get() or Trail()
        trail.version, trail.signature = str(version), signature
        return ModelCall(trail, model, str(version), signature, Timing() if self._exporter is not None else None)

    def called(self, call: ModelCall, error: BaseException | None = None) -> None:
        """Learn how a call ended."""
        if error is not None:
            call.code, call.error = failure_code(error), str(error)
        if self._exporter is not None:
            self._exporter.called(call)

    def end(self, trail: Trail, protocol: str, outcome: Outcome) -> None:
        """Learn how a request ended."""
        if self._exporter is not None:
            self._exporter.end(trail, protocol, outcome)


def failure_code(error: BaseException) -> str:
    """Return gRPC's name for an error, whatever it is."""
    if isinstance(error, GlowplugError):
        return code_of(error)
    return "CANCELLED" if isinstance(error, asyncio.CancelledError) else "INTERNAL"
