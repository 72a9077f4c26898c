"""Open Inference Protocol v2 over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from urllib.parse import unquote

from glowplug.core.errors import NotReadyError, RequestError
from glowplug.serve.rest.bodies import Bodies
from glowplug.serve.rest.exchange import Handler, Request, Response
from glowplug.serve.rest.reporting import Asked, Reporting
from glowplug.serve.service import Service
from glowplug.serve.wire.calls import ModelReference
from glowplug.serve.wire.json_tensor import dumps

from .bodies import read_infer, write_infer
from .description import EXTENSIONS, PLATFORM, SERVER, describe, is_ready, reference

LIVE, READY = "/v2/health/live", "/v2/health/ready"
_PREFIX = "/v2"
_MODEL = re.compile(r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?(?P<call>/infer|/ready)?/?")


def beside(other: Handler, routes: Routes) -> Handler:
    """Return a handler for this API and another one."""

    async def answer(request: Request) -> Response:
        path = request.path
        ours = path.startswith(_PREFIX) and path[len(_PREFIX) :][:1] in ("", "/")
        return await (routes(request) if ours else other(request))

    return answer


class Routes:
    """Answers requests for `/v2`. `ready` says whether every model has a version that answers."""

    def __init__(
        self, service: Service, reporting: Reporting, bodies: Bodies, timeout_s: float, ready: Callable[[], bool]
    ) -> None:
        self._service, self._reporting, self._bodies = service, reporting, bodies
        self._timeout_s, self._ready = timeout_s, ready

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        if request.method in ("GET", "HEAD"):
            if request.path == LIVE:
                return Response(200, b'{"live":true}')
            if request.path == READY:
                return Response(200, b'{"ready":true}') if self._ready() else Response(503, b'{"ready":false}')
        return await self._reporting.answer(request, self._answer)

    async def _answer(self, request: Request, asked: Asked) -> Response:
        found = _MODEL.fullmatch(request.path)
        call = (found["call"] or "/metadata")[1:] if found else "server"
        if request.method != ("POST" if call == "infer" else "GET"):
            raise RequestError(f"Malformed request: {request.method} {request.path[:200]}")
        if found is None:
            if request.path.rstrip("/") != _PREFIX:
                raise RequestError(f"Not found: {request.path[:200]}", code="NOT_FOUND")
            asked.method = "v2:server"
            return Response(200, dumps({"name": SERVER[0], "version": SERVER[1], "extensions": EXTENSIONS}))
        asked.model, asked.method = unquote(found["name"]), f"v2:{call}"
        target = reference(asked.model, unquote(found["version"] or ""))
        if call == "ready":
            ready = is_ready(self._service.catalog, target)
            return Response(200 if ready else 503, dumps({"name": asked.model, "ready": ready}))
        if call == "metadata":
            return self._metadata(target)
        try:
            return await self._infer(target, request)
        except NotReadyError:
            return await self._service.when_ready(lambda: self._infer(target, request), self._timeout_s)

    def _metadata(self, target: ModelReference) -> Response:
        document = asdict(describe(self._service.catalog, target))
        document |= {"platform": PLATFORM, "parameters": {"signatures": document.pop("signatures")}}
        return Response(200, dumps(document))

    async def _infer(self, target: ModelReference, request: Request) -> Response:
        head, inputs = await read_infer(self._bodies, request)
        version, _, outputs = await self._service.predict(
            target, head.signature, inputs, list(head.outputs), self._timeout_s
        )
        return await write_infer(self._bodies, version.model, str(version.number), head, outputs)
