"""The front end: the process that speaks REST and gRPC, queues calls, joins them, and keeps the versions in order.

Forked by the supervisor before anything of TensorFlow was loaded. It runs one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from glowplug.core.errors import GlowplugError, UsageError

from .log import Log
from .metrics.registry import Metrics
from .models.catalog import Catalog
from .models.loading import LoadSettings
from .models.manager import Manager, ManagerSettings
from .models.packing import Packer
from .processes.spawning import Processes
from .recording import Recorder
from .rest.bodies import Bodies
from .rest.cors import with_cors
from .rest.http import Budget, Connection, Handler, HttpSettings
from .rest.routes import Pages, Routes, error_body
from .service import Service
from .settings import Settings
from .workers.group import GroupSettings
from .workers.spec import WorkerSpec

_USAGE = 2
_BACKLOG = 1024


def run(channel: socket.socket, settings: Settings) -> int:
    """Run the front end until it is told to stop; returns the exit code."""
    import uvloop

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to everyone; the supervisor decides
    try:
        loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_main(channel, settings))
    except GlowplugError as error:
        print(f"glowplug: {error}", file=sys.stderr, flush=True)
        return error.exit_code if error.exit_code in (2, 3, 4) else _USAGE
    except OSError as error:
        print(f"glowplug: {error.strerror or error}", file=sys.stderr, flush=True)
        return _USAGE
    return 0


async def _main(channel: socket.socket, settings: Settings) -> None:
    stop = asyncio.Event()
    log = Log(as_json=settings.log_json, access=settings.access_log)
    processes = Processes(channel, stop.set)
    catalog = Catalog()
    metrics = Metrics(catalog)
    packer = Packer(settings.pack_cache, processes.run) if settings.pack_cache is not None else None
    manager = Manager(catalog, _manager_settings(settings), processes, metrics.observer, packer, log)
    recorder = Recorder(settings.record_warmup, log) if settings.record_warmup else None
    service = Service(catalog, metrics, recorder, manager.wait_for_change)
    draining = stop.is_set

    def is_ready() -> bool:
        return not draining() and bool(catalog.models) and catalog.all_ready()

    pages = _pages(settings, metrics, processes, catalog, is_ready)
    bodies = Bodies(processes, settings.limits, settings.timeout_s)
    routes = Routes(service, metrics, log, bodies, settings.timeout_s, pages)
    handler = with_cors(routes) if settings.cors else routes
    manager.configure(settings.models)  # first, so that workers load while the ports are opened
    async with _rest(settings, handler, log), _grpc(settings, service, manager, metrics, log, is_ready):
        log.event("listening", rest=settings.rest_port, grpc=settings.grpc_port, host=settings.host)
        watching = asyncio.ensure_future(manager.run())
        announcing = asyncio.ensure_future(_announce(settings, catalog, manager))
        gc.collect()
        gc.freeze()
        await stop.wait()
        log.event("draining")
        service.stop_waiting()
        manager.tell_waiters()
        for task in (watching, announcing):
            task.cancel()
    await manager.drain()
    log.event("stopped")


def _manager_settings(settings: Settings) -> ManagerSettings:
    template = WorkerSpec(
        path="",
        kind="bundle",
        trust=settings.trust,
        op_libraries=settings.op_libraries,
        intra_op_threads=settings.intra_op_threads,
        inter_op_threads=settings.inter_op_threads,
        largest_batch=settings.batching.max_batch_size if settings.batching.allowed_sizes else 0,
    )
    batches, rows = settings.batching.max_enqueued_batches, settings.batching.max_batch_size
    max_queue = min(settings.max_queue, batches * rows) if batches else settings.max_queue
    group = GroupSettings(settings.instances, settings.batching, max_queue)
    load = LoadSettings(group, template, settings.record_warmup, settings.load_retries, settings.load_retry_seconds)
    return ManagerSettings(load, settings.poll_seconds, settings.config_file, settings.config_poll_seconds)


def _pages(settings: Settings, metrics: Metrics, processes: Processes, catalog: Catalog, is_ready: Any) -> Pages:
    def health() -> tuple[int, bytes, str]:
        return 200, b"ok\n", "text/plain"

    def ready() -> tuple[int, bytes, str]:
        return (200, b"ready\n", "text/plain") if is_ready() else (503, b"not ready\n", "text/plain")

    def status() -> tuple[int, bytes, str]:
        document = {
            name: {str(number): version.describe() for number, version in sorted(model.versions.items())}
            for name, model in catalog.models.items()
        }
        return 200, json.dumps({"ready": is_ready(), "models": document}).encode(), "application/json"

    pages: Pages = {"/healthz": health, "/readyz": ready, "/v1/glowplug/status": status}
    if settings.metrics_path:
        pages[settings.metrics_path] = lambda: (200, metrics.page(processes.pids), "text/plain; version=0.0.4")
    return pages


@contextlib.asynccontextmanager
async def _rest(settings: Settings, routes: Handler, log: Log) -> AsyncIterator[None]:
    """Listen for REST for the length of the block; afterwards finish the requests that are here."""
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()
    bounds = HttpSettings(settings.limits.request_bytes, Budget(settings.bodies_bytes), error_body=error_body)
    servers = []
    if settings.rest_port:
        try:
            server = await loop.create_server(
                lambda: Connection(routes, bounds, connections), settings.host, settings.rest_port, backlog=_BACKLOG
            )
        except OSError as error:
            raise _cannot_listen(settings.host, settings.rest_port, error) from error
        servers.append(server)
    if settings.rest_socket:
        _take_socket(settings.rest_socket, log)
        servers.append(
            await loop.create_unix_server(
                lambda: Connection(routes, bounds, connections), settings.rest_socket, backlog=_BACKLOG
            )
        )
    try:
        yield
    finally:
        for server in servers:
            server.close()
        for connection in list(connections):
            connection.drain()
        while connections:  # bounded by the supervisor's patience
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _grpc(
    settings: Settings, service: Service, manager: Manager, metrics: Metrics, log: Log, is_ready: Any
) -> AsyncIterator[None]:
    """Listen for gRPC for the length of the block; afterwards finish the calls that are here."""
    if not settings.grpc_port and not settings.grpc_socket:
        yield
        return
    from .rpc import health, reflection
    from .rpc.server import RpcServer
    from .rpc.services import Services

    services = Services(service, manager, metrics, log, settings.limits, settings.timeout_s)
    methods = {**services.methods(), **health.methods(is_ready), **reflection.methods()}
    rpc = RpcServer(methods, settings.limits, log)
    loop = asyncio.get_running_loop()
    servers = []
    if settings.grpc_port:
        try:
            server = await loop.create_server(rpc.connection, settings.host, settings.grpc_port, backlog=_BACKLOG)
        except OSError as error:
            raise _cannot_listen(settings.host, settings.grpc_port, error) from error
        servers.append(server)
    if settings.grpc_socket:
        _take_socket(settings.grpc_socket, log)
        servers.append(await loop.create_unix_server(rpc.connection, settings.grpc_socket, backlog=_BACKLOG))
    try:
        yield
    finally:
        for server in servers:
            server.close()
        await rpc.drain(settings.drain_seconds)


async def _announce(settings: Settings, catalog: Catalog, manager: Manager) -> None:
    """Print one line on stdout when every model answers for the first time."""
    while not (catalog.models and catalog.all_ready()):
        await manager.wait_for_change()
    names = sorted(catalog.models)
    if settings.announce_json:
        text = json.dumps({"models": names, "rest_port": settings.rest_port, "grpc_port": settings.grpc_port})
    else:
        text = f"serving {', '.join(names)}: REST on port {settings.rest_port}, gRPC on port {settings.grpc_port}"
    with contextlib.suppress(OSError):
        os.write(1, f"{text}\n".encode())


def _take_socket(path: str, log: Log) -> None:
    """Make room for our socket: the name belongs to the server that came last, as with TensorFlow Serving.

    A server that still listens behind it keeps the connections that it has and gets no new ones.
    """
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(path)
        log.event("socket_taken_over", path=path)
    Path(path).unlink(missing_ok=True)


def _cannot_listen(host: str, port: int, error: Exception) -> UsageError:
    return UsageError("cannot listen on this address", seen=f"{host}:{port} ({error})", remedy="choose another port")
