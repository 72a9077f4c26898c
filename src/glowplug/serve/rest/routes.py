"""TensorFlow Serving's REST API: from a request's path and body to an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from glowplug.core.errors import NotReadyError, RequestError
from glowplug.serve.service import Service, write_spec
from glowplug.serve.wire import inference
from glowplug.serve.wire.calls import ModelReference
from glowplug.serve.wire.json_tensor import dumps
from glowplug.serve.wire.proto_json import to_dict

from .bodies import Bodies
from .exchange import Request, Response
from .reporting import Asked, Reporting

_CHOICE = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_CALL = re.compile(rf"(?i:/v1/models/(?P<name>[^/:]+){_CHOICE}):(?P<method>predict|classify|regress)")
_LOOK = re.compile(rf"(?i:/v1/models(?:/(?P<name>[^/:]+))?{_CHOICE})(?P<metadata>/metadata)?")
_MAX_VERSION, _MAX_DIGITS = (1 << 63) - 1, 19

Pages = dict[str, Callable[[], tuple[int, bytes, str]]]


class Routes:
    """Answers requests. `pages` are further paths: metrics, health, readiness."""

    def __init__(self, service: Service, reporting: Reporting, bodies: Bodies, timeout_s: float, pages: Pages) -> None:
        self._service, self._reporting, self._bodies = service, reporting, bodies
        self._timeout_s, self._pages = timeout_s, pages

    async def __call__(self, request: Request) -> Response:
        """Answer one request, whatever it is."""
        page = self._pages.get(request.path) if request.method in ("GET", "HEAD") else None
        if page is not None:
            status, body, kind = page()
            return Response(status, body if request.method == "GET" else b"", kind)
        return await self._reporting.answer(request, self._answer)

    async def _answer(self, request: Request, asked: Asked) -> Response:
        if found := _CALL.fullmatch(request.path):
            asked.model, asked.method = unquote(found["name"]), found["method"]
            if request.method != "POST":
                raise _malformed(request)
            call, target = getattr(self, f"_{asked.method}"), _target(found, asked.model)
            try:
                body = await call(target, request)
            except NotReadyError:
                body = await self._service.when_ready(lambda: call(target, request), self._timeout_s)
        elif request.method == "GET" and (found := _LOOK.fullmatch(request.path)):
            if found["name"] is None:
                raise RequestError("Missing model name in request.")
            asked.model, asked.method = unquote(found["name"]), "metadata" if found["metadata"] else "status"
            body = getattr(self, f"_{asked.method}")(_target(found, asked.model))
        else:
            raise _malformed(request)
        return Response(200, body)

    async def _predict(self, target: ModelReference, request: Request) -> bytes:
        catalog = self._service.catalog
        name, form, inputs = await self._bodies.read_predict(request, lambda: catalog.group(target)[1].signatures)
        _, _, outputs = await self._service.predict(target, name, inputs, [], self._timeout_s)
        return await self._bodies.write_answer(form, outputs)

    async def _classify(self, target: ModelReference, request: Request) -> bytes:
        name, given = await self._bodies.read_examples(request)
        _, _, result = await self._service.infer("classify", target, name, given, self._timeout_s)
        return inference.classification_json(result)

    async def _regress(self, target: ModelReference, request: Request) -> bytes:
        name, given = await self._bodies.read_examples(request)
        _, _, result = await self._service.infer("regress", target, name, given, self._timeout_s)
        return inference.regression_json(result)

    def _status(self, target: ModelReference) -> bytes:
        return dumps(to_dict(self._service.status(target)))

    def _metadata(self, target: ModelReference) -> bytes:
        version, found = self._service.metadata(target)
        document: dict[str, Any] = {
            "model_spec": to_dict(write_spec(version, "")),
            "metadata": {"signature_def": to_dict(found)},
        }
        return dumps(document)


def _target(found: re.Match[str], name: str) -> ModelReference:
    version = found["version"]
    if version is not None and (len(version) > _MAX_DIGITS or int(version) > _MAX_VERSION):
        raise RequestError(f"Failed to convert version: {version[:40]} to numeric.")
    return ModelReference(name, None if version is None else int(version), found["label"] and unquote(found["label"]))


def _malformed(request: Request) -> RequestError:
    if not request.path.lower().startswith("/v1/"):
        return RequestError(f"Not found: {request.path[:200]}", code="NOT_FOUND")
    return RequestError(f"Malformed request: {request.method} {request.path[:200]}")
