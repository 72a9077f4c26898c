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
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from glowplug.core.errors import GlowplugError

from .access import Gate, Tokens
from .heap import Heap, map_what_is_large
from .listening import Listener
from .log import Log
from .metrics.history import History
from .metrics.registry import Metrics
from .models.catalog import Catalog
from .models.loading import LoadSettings
from .models.manager import Manager, ManagerSettings
from .models.mirrors import Mirrors, MirrorSettings
from .models.packing import Packer
from .page.document import LiveDocument
from .page.routes import HOME, with_page
from .processes.spawning import Processes
from .recording import Recorder
from .rest.bodies import Bodies
from .rest.cors import with_cors
from .rest.exchange import Budget, Handler, HttpSettings
from .rest.http import Connection
from .rest.reporting import Reporting, error_body
from .rest.routes import Pages, Routes
from .rest.tokens import with_tokens
from .service import Service
from .settings import Settings
from .telemetry.trail import Watch
from .v2.routes import Routes as V2Routes
from .v2.routes import beside
from .workers.group import GroupSettings
from .workers.parsers import Parsers
from .workers.spec import WorkerSpec

if TYPE_CHECKING:
    from .telemetry.otel import OpenTelemetry

_USAGE = 2
_REFRESH_SECONDS = 1.0
_LAST_WORDS_SECONDS = 1.0
_LAST_EXPORT_SECONDS = 5.0


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
    log = Log(
        as_json=settings.log_json, access=settings.access_log, access_json=settings.access_log_json, threaded=True
    )
    try:
        await _serve(channel, settings, log)
    finally:
        log.flush(_LAST_WORDS_SECONDS)


async def _serve(channel: socket.socket, settings: Settings, log: Log) -> None:
    stop = asyncio.Event()
    processes = Processes(channel, stop.set)
    tokens = Tokens(settings.auth_tokens) if settings.auth_tokens else None
    gate = Gate(tokens)
    catalog = Catalog()
    metrics = Metrics(catalog)
    log.on_error = metrics.trouble.event
    telemetry = _telemetry(settings, catalog, metrics, processes, log)
    watch = Watch(telemetry) if telemetry is not None or log.access else None
    packer = None
    if settings.pack_cache is not None:
        packer = Packer(settings.pack_cache, processes.run, settings.saved_model_tags, settings.op_libraries)

    def mirrors(changed: Callable[[], None]) -> Mirrors:
        terms = MirrorSettings(settings.poll_seconds, settings.trust, settings.trusted_keys, settings.require_signature)
        return Mirrors(terms, processes.run, log, changed)

    manager = Manager(catalog, _manager_settings(settings), processes, metrics.observer, packer, log, mirrors)
    recorder = Recorder(settings.record_warmup, log) if settings.record_warmup else None
    service = Service(catalog, metrics, recorder, manager.wait_for_change, watch)
    draining = stop.is_set

    def is_ready() -> bool:
        return not draining() and bool(catalog.models) and catalog.all_ready()

    pages = _pages(settings, metrics, processes, catalog, is_ready)
    parsers = Parsers(processes, settings.timeout_s)
    bodies = Bodies(parsers, settings.limits)
    reporting = Reporting(metrics, log, watch)
    routes = Routes(service, reporting, bodies, settings.timeout_s, pages)
    handler = beside(routes, V2Routes(service, reporting, bodies, settings.timeout_s, is_ready))
    history = History(metrics, catalog, processes.pids)
    shows_page = settings.page and settings.metrics_path != HOME
    if shows_page:
        handler = with_page(handler, LiveDocument(catalog, metrics, history, is_ready))
    if tokens is not None:
        handler = with_tokens(handler, gate, reporting, {HOME} if shows_page else ())
    if settings.cors:
        handler = with_cors(handler, tokens=tokens is not None)
    map_what_is_large()
    heap = Heap()
    manager.configure(settings.models)  # first, so that workers load while the ports are opened
    async with (
        _rest(settings, handler, log, heap) as rest,
        _grpc(settings, service, manager, parsers, bodies, metrics, gate, log, watch, is_ready, heap) as grpc,
    ):
        log.event("listening", rest=settings.rest_port, grpc=settings.grpc_port, host=settings.host)
        watching = asyncio.ensure_future(manager.run())
        announcing = asyncio.ensure_future(_announce(settings, catalog, manager))
        refreshing = asyncio.ensure_future(_refresh([one for one in (rest, grpc) if one], tokens, log))
        sampling = [asyncio.ensure_future(history.run())] if shows_page else []
        gc.collect()
        gc.freeze()
        await stop.wait()
        log.event("draining")
        service.stop_waiting()
        manager.tell_waiters()
        for task in (watching, announcing, refreshing, *sampling):
            task.cancel()
    await manager.drain()
    if telemetry is not None:
        closing = asyncio.get_running_loop().run_in_executor(None, telemetry.close)
        await asyncio.wait([closing], timeout=_LAST_EXPORT_SECONDS)
    log.event("stopped")


def _telemetry(
    settings: Settings, catalog: Catalog, metrics: Metrics, processes: Processes, log: Log
) -> OpenTelemetry | None:
    if not settings.otel:
        return None
    from .telemetry.otel import OpenTelemetry

    return OpenTelemetry(catalog, metrics, processes.pids, log)


def _manager_settings(settings: Settings) -> ManagerSettings:
    template = WorkerSpec(
        path="",
        kind="bundle",
        trust=settings.trust,
        op_libraries=settings.op_libraries,
        intra_op_threads=settings.intra_op_threads,
        inter_op_threads=settings.inter_op_threads,
        tags=settings.saved_model_tags,
    )
    group = GroupSettings(settings.instances, settings.batching, settings.max_queue, settings.timeout_s)
    load = LoadSettings(
        group,
        template,
        settings.record_warmup,
        settings.per_model_batching,
        settings.load_retries,
        settings.load_retry_seconds,
        settings.load_patience_seconds,
    )
    return ManagerSettings(
        load, settings.poll_seconds, settings.config_file, settings.config_poll_seconds, settings.prefer_tflite
    )


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
        trouble = {name: model.trouble for name, model in catalog.models.items() if model.trouble}
        shown = {"ready": is_ready(), "models": document} | ({"trouble": trouble} if trouble else {})
        return 200, json.dumps(shown).encode(), "application/json"

    pages: Pages = {"/healthz": health, "/readyz": ready, "/v1/glowplug/status": status}
    if settings.metrics_path:
        pages[settings.metrics_path] = lambda: (200, metrics.page(processes.pids), "text/plain; version=0.0.4")
    return pages


@contextlib.asynccontextmanager
async def _rest(settings: Settings, routes: Handler, log: Log, heap: Heap) -> AsyncIterator[Listener]:
    """Listen for REST for the length of the block; afterwards finish the requests that are here."""
    connections: set[Connection] = set()
    bounds = HttpSettings(settings.limits.request_bytes, Budget(settings.bodies_bytes), heap, error_body=error_body)
    listener = Listener(lambda: Connection(routes, bounds, connections), log, "http/1.1")
    if settings.rest_port:
        await listener.open_port(settings.host, settings.rest_port, settings.rest_tls)
    if settings.rest_socket:
        await listener.open_socket(settings.rest_socket)
    try:
        yield listener
    finally:
        listener.close()
        for connection in list(connections):
            connection.drain()
        while connections:  # bounded by the supervisor's patience
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _grpc(
    settings: Settings,
    service: Service,
    manager: Manager,
    parsers: Parsers,
    bodies: Bodies,
    metrics: Metrics,
    gate: Gate,
    log: Log,
    watch: Watch | None,
    is_ready: Any,
    heap: Heap,
) -> AsyncIterator[Listener | None]:
    """Listen for gRPC for the length of the block; afterwards finish the calls that are here."""
    if not (settings.grpc_port or settings.grpc_socket or settings.control_socket):
        yield None
        return
    from .rpc import health, reflection
    from .rpc.reporting import Reporting
    from .rpc.server import RpcServer
    from .rpc.services import Services
    from .v2.services import Services as V2Services

    reporting = Reporting(service, metrics, log, settings.timeout_s, watch)
    methods = {
        **Services(service, manager, reporting, parsers, settings.limits).methods(),
        **V2Services(service, reporting, bodies, is_ready).methods(),
        **health.methods(is_ready),
        **reflection.methods(),
    }
    rpc = RpcServer(methods, settings.limits, log, gate, heap)
    control = RpcServer(methods, settings.limits, log, heap=heap)
    listener, private = Listener(rpc.connection, log, "h2"), Listener(control.connection, log, "h2")
    if settings.grpc_port:
        await listener.open_port(settings.host, settings.grpc_port, settings.grpc_tls)
    if settings.grpc_socket:
        await listener.open_socket(settings.grpc_socket)
    if settings.control_socket:
        await private.open_socket(settings.control_socket, private=True)
    try:
        yield listener
    finally:
        listener.close()
        private.close()
        await asyncio.gather(*(one.drain(settings.drain_seconds) for one in (rpc, control)))


async def _refresh(listeners: list[Listener], tokens: Tokens | None, log: Log) -> None:
    """Follow the files of certificates and tokens, for as long as the server runs."""
    while True:
        await asyncio.sleep(_REFRESH_SECONDS)
        for listener in listeners:
            await listener.refresh()
        if tokens is not None:
            tokens.refresh(log)


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
