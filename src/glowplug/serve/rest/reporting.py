"""What all REST requests have in common, whichever API they are for: errors become bodies; all are counted, logged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from glowplug.core.errors import GlowplugError
from glowplug.serve.log import Log
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.request_ids import new_id
from glowplug.serve.telemetry.trail import Outcome, Trail, Watch
from glowplug.serve.wire.json_tensor import dumps
from glowplug.serve.wire.statuses import HTTP, code_of

from .exchange import Request, Response


@dataclass(slots=True)
class Asked:
    """What a request turned out to be about: filled in by whoever answers it."""

    model: str = ""
    method: str = ""


def error_body(text: str) -> bytes:
    """Return the JSON body of an error, whatever text of the caller's is in it."""
    return dumps({"error": text.encode(errors="replace").decode()})


class Reporting:
    """Has requests answered, and reports on them. `watch` is there where they are followed on their way."""

    def __init__(self, metrics: Metrics, log: Log, watch: Watch | None = None) -> None:
        self._metrics, self._log, self._watch = metrics, log, watch

    async def answer(self, request: Request, answering: Callable[[Request, Asked], Awaitable[Response]]) -> Response:
        """Answer one request, whatever it is."""
        began = time.perf_counter()
        asked, code, problem = Asked(), "OK", ""
        trail = None if self._watch is None else self._watch.begin("REST", request.method, _reader(request))
        try:
            response = await answering(request, asked)
        except GlowplugError as error:
            code, problem = code_of(error), str(error)
            response = Response(HTTP[code], error_body(problem))
        except asyncio.CancelledError:  # the client has gone
            if trail is not None:
                self._followed(trail, request, asked, "CANCELLED", time.perf_counter() - began, "", None)
            raise
        except Exception as error:  # the process boundary
            code, problem = "INTERNAL", f"unexpected {type(error).__name__}"
            response = Response(HTTP[code], error_body(problem))
            self._log.event("defect", error=f"{type(error).__name__}: {error}", method=asked.method, model=asked.model)
        seconds = time.perf_counter() - began
        self._metrics.request("REST", asked.method or "unknown", asked.model, code, seconds)
        if problem:
            self._metrics.trouble.request("REST", asked.method or request.path, asked.model, code, problem)
        if b"x-request-id" in request.headers or self._log.access:
            response.headers["X-Request-Id"] = _request_id(request)
        if trail is not None:
            self._followed(trail, request, asked, code, seconds, problem, response)
        return response

    def _followed(
        self,
        trail: Trail,
        request: Request,
        asked: Asked,
        code: str,
        seconds: float,
        problem: str,
        response: Response | None,
    ) -> None:
        """Tell of a request that was followed; there is no response where nobody waits for it any more."""
        assert self._watch is not None
        status = HTTP[code] if response is None else response.status
        attributes: tuple[tuple[str, str | int], ...] = (
            ("http.request.method", request.method),
            ("url.path", request.path[:200]),
            ("http.response.status_code", status),
        )
        method = asked.method or "unknown"
        outcome = Outcome(f"{request.method} {method}", method, asked.model, code, seconds, problem, attributes)
        self._watch.end(trail, "REST", outcome)
        if self._log.access:
            self._log.request(
                "REST",
                asked.method or request.path,
                code,
                seconds,
                _request_id(request) if response is None else response.headers["X-Request-Id"],
                model=asked.model,
                version=trail.version,
                signature=trail.signature,
                status=status,
                bytes_in=len(request.body),
                bytes_out=0 if response is None else len(response.body),
                trace_id=trail.trace_id,
            )


def _request_id(request: Request) -> str:
    """Return the name that the client gave its request, or a new one."""
    given = request.headers.get(b"x-request-id", b"").decode("ascii", "ignore")[:128]
    return "".join(c for c in given if c.isprintable()) or new_id()


def _reader(request: Request) -> Callable[[bytes], bytes]:
    return lambda name: request.headers.get(name, b"")
