"""A replica: an actor of Ray Serve's that answers TensorFlow Serving's API and Open Inference for its models.

It is the server's front end without the ports: Ray Serve's proxies take requests, and this has them answered by workers
that come from the node's standby. It says that it is ready when every model is warm. Nothing of TensorFlow is loaded
into the actor itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from typing import Any
from urllib.parse import unquote

from glowplug.cluster.settings import Generation, ReplicaSettings
from glowplug.core.errors import GlowplugError
from glowplug.serve.log import Log
from glowplug.serve.rest.bodies import Bodies
from glowplug.serve.rest.exchange import Handler, Request
from glowplug.serve.rest.fields import body_coding
from glowplug.serve.rest.reporting import Reporting
from glowplug.serve.rest.routes import Pages, Routes
from glowplug.serve.service import Service
from glowplug.serve.v2.routes import Routes as V2Routes
from glowplug.serve.v2.routes import beside
from glowplug.serve.wire.limits import Limits
from glowplug.serve.workers.parsers import Parsers

from .hosted import HostedWorkers
from .models import ReplicaModels
from .rpc import METHODS, RpcAnswers, rpc_method

_MODEL = re.compile(r"(?i)/v[12]/models/([^/:]+)")


class Replica:
    """What Ray Serve runs. `reconfigure` is told the generation, at the start and whenever it changes."""

    async def __init__(self, settings: dict[str, Any]) -> None:  # type: ignore[misc]
        self._began = time.monotonic()
        self._settings = ReplicaSettings.from_json(settings)
        self._workers = HostedWorkers(standby=self._settings.standby)
        self._models = ReplicaModels(self._settings, self._workers)
        self._error, self._ready_s, self._asked = "", 0.0, 0
        self._told_s = 0.0
        log = Log(as_json=True, access=False)
        service = Service(self._models, self._models.metrics, None, self._models.wait_for_change)
        parsers = Parsers(self._workers, self._settings.timeout_s)
        bodies = Bodies(parsers, Limits())
        self._handler = self._routes(service, bodies, log)
        self._rpc = RpcAnswers(
            service, self._models.metrics, log, parsers, bodies, self._settings.timeout_s, self._ready
        )
        self._adopting = asyncio.Lock()

    def _routes(self, service: Service, bodies: Bodies, log: Log) -> Handler:
        metrics, timeout_s = self._models.metrics, self._settings.timeout_s

        def ready() -> tuple[int, bytes, str]:
            return (200, b"ready\n", "text/plain") if self._ready() else (503, b"not ready\n", "text/plain")

        pages: Pages = {
            "/healthz": lambda: (200, b"ok\n", "text/plain"),
            "/readyz": ready,
            "/monitoring/prometheus/metrics": lambda: (
                200,
                metrics.page(self._workers.pids()),
                "text/plain; version=0.0.4",
            ),
        }
        reporting = Reporting(metrics, log)
        routes = Routes(service, reporting, bodies, timeout_s, pages)
        return beside(routes, V2Routes(service, reporting, bodies, timeout_s, self._ready))

    async def reconfigure(self, generation: dict[str, Any]) -> None:
        """Serve another generation once all of it is warm. Where that fails, the one that is served goes on.

        A replica that serves nothing yet fails instead: Ray Serve then starts another.
        """
        asked = Generation.from_json(generation)
        self._told_s = self._told_s or time.monotonic() - self._began
        async with self._adopting:
            self._asked = asked.number
            try:
                await self._models.adopt(asked)
            except GlowplugError as error:
                self._error = str(error)
                if not self._models.generation:
                    await self._report()
                    raise
            else:
                self._error = ""
                self._ready_s = self._ready_s or time.monotonic() - self._began
        await self._report()

    async def __call__(self, request: Any) -> Any:
        """Answer a request that came by HTTP: one of starlette's, to one of starlette's."""
        from starlette.responses import Response

        root = request.scope.get("root_path", "").rstrip("/")
        path = request.scope["path"]
        headers = {name.lower(): value for name, value in request.scope["headers"]}
        asked = Request(
            request.method,
            path.removeprefix(root) if root else path,
            headers,
            await request.body(),
            local=False,
            coding=body_coding(headers),
        )
        named = _MODEL.match(asked.path) if self._settings.resident else None
        if named is not None:  # to look at a model that is not loaded is to ask for it, too
            with contextlib.suppress(GlowplugError):  # whoever answers says what is wrong
                await self._models.ensure(unquote(named[1]), self._settings.timeout_s)
        answer = await self._handler(asked)
        return Response(answer.body, answer.status, answer.headers, media_type=answer.content_type)

    async def check_health(self) -> None:
        """Raise where no worker answers any more and none can be started: Ray Serve then replaces this replica."""
        for model in self._models.models.values():
            for version in model.available():
                if version.group is not None and version.group.problem and not version.group.ready:
                    raise RuntimeError(f"{version.model}: {version.group.problem}")

    async def workers(self) -> list[int]:
        """Return the processes with the models."""
        return sorted(self._workers.pids().values())

    async def __del__(self) -> None:
        with contextlib.suppress(AttributeError):
            await self._models.close()
            self._workers.close()
        await self._report(gone=True)

    def _ready(self) -> bool:
        return bool(self._models.generation) and not any(
            version.group is None or not version.group.ready
            for model in self._models.models.values()
            for version in model.available()
        )

    async def _report(self, *, gone: bool = False) -> None:
        """Tell the node's agent, which shows it in the cluster's status."""
        from ray import serve

        from glowplug.cluster.nodes.agents import agent_of

        with contextlib.suppress(Exception):  # who serves does not fail because nobody can be told
            import ray

            context = serve.get_replica_context()
            about = {
                "application": context.app_name,
                "replica": context.replica_tag,
                "pid": os.getpid(),
                "workers": sorted(self._workers.pids().values()),
                "generation": self._models.generation,
                "asked": self._asked,
                "models": self._models.describe(),
                "error": self._error,
                "ready_s": round(self._ready_s, 3),
                "steps": {"told": round(self._told_s, 3), "models": self._models.steps},
                "notes": self._workers.notes[-3:],
            }
            agent = agent_of(ray.get_runtime_context().get_node_id())
            await asyncio.wait_for(agent.heard.remote(context.replica_tag, None if gone else about), 5.0)


for _name in METHODS:  # Ray Serve looks for a method of the class by the name that gRPC has for it
    setattr(Replica, _name, rpc_method(_name))
