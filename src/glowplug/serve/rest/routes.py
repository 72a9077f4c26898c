"""TensorFlow Serving's REST API: from a request's path and body to an answer, and every error to its JSON form."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from glowplug.core.errors import GlowplugError, NotReadyError, RequestError
from glowplug.serve.log import Log
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.request_ids import new_id
from glowplug.serve.service import Service, write_spec
from glowplug.serve.wire import inference
from glowplug.serve.wire.calls import ModelReference
from glowplug.serve.wire.json_tensor import dumps
from glowplug.serve.wire.proto_json import to_dict
from glowplug.serve.wire.statuses import HTTP, code_of

from .bodies import Bodies
from .http import Request, Response

_CHOICE = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_CALL = re.compile(rf"(?i:/v1/models/(?P<name>[^/:]+){_CHOICE}):(?P<method>predict|classify|regress)")
_LOOK = re.compile(rf"(?i:/v1/models(?:/(?P<name>[^/:]+))?{_CHOICE})(?P<metadata>/metadata)?")
_MAX_VERSION, _MAX_DIGITS = (1 << 63) - 1, 19

Pages = dict[str, Callable[[], tuple[int, bytes, str]]]


def error_body(text: str) -> bytes:
    """Return the JSON body of an error, whatever text of the caller's is in it."""
    return dumps({"error": text.encode(errors="replace").decode()})


class Routes:
    """Answers requests. `pages` are further paths: metrics, health, readiness."""

    def __init__(
        self, service: Service, metrics: Metrics, log: Log, bodies: Bodies, timeout_s: float, pages: Pages
    ) -> None:
        self._service, self._metrics, self._log = service, metrics, log
        self._bodies, self._timeout_s, self._pages = bodies, timeout_s, pages

    async def __call__(self, request: Request) -> Response:
        """Answer one request, whatever it is."""
        began = time.perf_counter()
        page = self._pages.get(request.path) if request.method in ("GET", "HEAD") else None
        if page is not None:
            status, body, kind = page()
            return Response(status, body if request.method == "GET" else b"", kind)
        model, method, code = "", "", "OK"
        try:
            if found := _CALL.fullmatch(request.path):
                model, method = unquote(found["name"]), found["method"]
                if request.method != "POST":
                    raise _malformed(request)
                call, target = getattr(self, f"_{method}"), _target(found, model)
                try:
                    body = await call(target, request)
                except NotReadyError:
                    body = await self._service.when_ready(lambda: call(target, request), self._timeout_s)
            elif request.method == "GET" and (found := _LOOK.fullmatch(request.path)):
                if found["name"] is None:
                    raise RequestError("Missing model name in request.")
                model, method = unquote(found["name"]), "metadata" if found["metadata"] else "status"
                body = getattr(self, f"_{method}")(_target(found, model))
            else:
                raise _malformed(request)
        except GlowplugError as error:
            code, body = code_of(error), error_body(str(error))
        except Exception as error:  # the process boundary
            code, body = "INTERNAL", error_body(f"unexpected {type(error).__name__}")
            self._log.event("defect", error=f"{type(error).__name__}: {error}", method=method, model=model)
        seconds = time.perf_counter() - began
        self._metrics.request("REST", method or "unknown", model, code, seconds)
        response = Response(HTTP[code], body)
        if self._log.access or b"x-request-id" in request.headers:
            identity = request.headers.get(b"x-request-id", b"").decode("ascii", "ignore")[:128]
            identity = "".join(c for c in identity if c.isprintable()) or new_id()
            response.headers["X-Request-Id"] = identity
            self._log.request("REST", method or request.path[:200], code, seconds, identity, model=model)
        return response

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
