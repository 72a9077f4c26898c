"""Tokens of REST requests: checked at one place, by what a request can do."""

from __future__ import annotations

from collections.abc import Collection

from glowplug.core.errors import RequestError
from glowplug.serve.access import Gate, Scope

from .exchange import Handler, Request, Response
from .reporting import Asked, Reporting

# Those who look after processes ask without a token: the answers tell nothing but that one is there.
_OPEN = frozenset({"/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"})


def with_tokens(handler: Handler, gate: Gate, reporting: Reporting, shells: Collection[str] = ()) -> Handler:
    """Return a handler for requests that the gate lets in. `shells` are paths of pages that hold nothing themselves."""
    open_paths = _OPEN.union(shells)

    async def answer(request: Request) -> Response:
        try:
            gate.check(request.headers.get(b"authorization", b""), _scope(request, open_paths))
        except RequestError as error:
            return await _refuse(request, error, reporting)
        return await handler(request)

    return answer


async def _refuse(request: Request, error: RequestError, reporting: Reporting) -> Response:
    async def answering(request: Request, asked: Asked) -> Response:
        raise error

    response = await reporting.answer(request, answering)
    if error.code == "UNAUTHENTICATED":
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _scope(request: Request, open_paths: Collection[str]) -> Scope:
    """Models are called by POST, in every API, and by nothing else."""
    if request.method == "POST":
        return "predict"
    return "" if request.path in open_paths and request.method in ("GET", "HEAD") else "status"
