"""Changes what a cluster serves: everywhere fetched and warmed first, then switched, else left as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glowplug.core.errors import RolloutError, UsageError

from . import ledger
from .application import build, generation_of
from .connection import connect
from .ledger import Record
from .nodes.agents import Node, ask, first_line, living, stop
from .nodes.preloading import Preloaded, describe, seed
from .replicas.rpc import SERVICER_FUNCTIONS
from .settings import Generation, ReplicaSettings

HTTP_PORT, GRPC_PORT = 8000, 9000


@dataclass(frozen=True, slots=True)
class Deployed:
    """What is served now, and what became of its models on the nodes."""

    application: str
    generation: Generation
    models: tuple[Preloaded, ...]


def deploy(
    models: str | Mapping[str, str],
    *,
    application: str = "glowplug",
    name: str | None = None,
    replicas: int | None = None,
    autoscaling: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    route_prefix: str = "/",
    http_port: int = HTTP_PORT,
    grpc_port: int = GRPC_PORT,
    address: str | None = None,
    **options: Any,
) -> Deployed:
    """Serve a model, or several by name, as an application; one that runs already changes to them without a gap.

    The models are fetched to every node and warmed there first. If that fails anywhere, `RolloutError` says where, and
    what was served before goes on. The ports are those of Ray Serve, if it does not run yet. See `deployment` for the
    rest.
    """
    connect(address)
    history = ledger.read(application)
    number = history[-1].generation.number + 1 if history else 1
    record = Record(
        generation_of(models, name, number),
        ReplicaSettings.from_json(settings or {}),
        replicas,
        dict(autoscaling) if autoscaling is not None else None,
        route_prefix,
        options,
    )
    start_serve(http_port, grpc_port)
    return _switch(application, record, history)


def rollback(application: str = "glowplug", *, address: str | None = None) -> Deployed:
    """Serve what an application served before. It is fetched and warmed first, as anything new is."""
    connect(address)
    history = ledger.read(application)
    if len(history) < 2:
        raise UsageError(
            "there is nothing to go back to",
            seen=f"application {application!r} has {len(history)} known versions",
            remedy=f"known applications: {', '.join(ledger.applications()) or 'none'}",
        )
    before = history[-2]
    number = history[-1].generation.number + 1
    record = replace(before, generation=Generation(number, before.generation.models))
    return _switch(application, record, [history[-1]])


def down(application: str = "glowplug", *, agents: bool = False, address: str | None = None) -> None:
    """End an application; with `agents`, the agents of the nodes too. What was fetched stays in the node caches."""
    connect(address)
    if not ledger.read(application) and not agents:
        raise UsageError(
            "there is no such application",
            seen=application,
            remedy=f"known applications: {', '.join(ledger.applications()) or 'none'}",
        )
    _delete(application)
    ledger.write(application, [])
    if agents:
        stop(living())


def start_serve(http_port: int = HTTP_PORT, grpc_port: int = GRPC_PORT) -> None:
    """Start Ray Serve with the services of gRPC, where it does not run; one that runs keeps its ports."""
    from ray import serve
    from ray.serve.config import gRPCOptions

    rpc = gRPCOptions(port=grpc_port, grpc_servicer_functions=list(SERVICER_FUNCTIONS))
    serve.start(http_options={"host": "0.0.0.0", "port": http_port}, grpc_options=rpc)


def _switch(application: str, record: Record, history: list[Record]) -> Deployed:
    found = living()
    begun = not history and _begin(application, replace(record, generation=_pinned(record.generation, found)))
    try:
        pinned, preloaded = prepare(record.generation, record.settings, found)
    except BaseException:
        if begun:
            _delete(application)
        raise
    record = replace(record, generation=pinned)
    problem = _run(application, record) or _problem(application, pinned.number, living())
    if problem:
        if history:
            _run(application, replace(history[-1], generation=_again(history[-1], pinned.number + 1)))
        else:
            _delete(application)
        kept = "the old one goes on" if history else "nothing is served"
        raise RolloutError("the new version could not be switched to", seen=problem, remedy=f"{kept}; see the log")
    ledger.write(application, [*history[-1:], record])
    return Deployed(application, pinned, tuple(preloaded))


def prepare(
    generation: Generation, settings: ReplicaSettings, found: Sequence[Node]
) -> tuple[Generation, list[Preloaded]]:
    """Have every model of a generation on every node, and warm it there once; return the generation with digests."""
    preloaded = [seed(one.url, found) for one in generation.models]
    failed = [f"{node_of(found, one.node)}: {one.error}" for some in preloaded for one in some.failed]
    if failed:
        raise RolloutError(
            "the new version cannot be fetched everywhere", seen="; ".join(failed), remedy="what was served goes on"
        )
    models = [replace(one, url=some.url) for one, some in zip(generation.models, preloaded, strict=True)]
    pinned = Generation(generation.number, tuple(models))
    for choice in models:
        trial = Generation(generation.number, (choice,)).to_json()
        answers = ask(found, "rehearse", trial, settings.to_json())
        failed = [f"{node}: {text}" for node, text in zip(found, answers, strict=True) if text]
        if failed:
            raise RolloutError(
                f"{choice.name} cannot be served everywhere", seen="; ".join(failed), remedy="what was served goes on"
            )
    return pinned, preloaded


def node_of(found: Sequence[Node], name: str) -> str:
    """Return a node as it is shown."""
    return next((str(node) for node in found if node.name == name), name[:8])


def _pinned(generation: Generation, found: Sequence[Node]) -> Generation:
    """Return a generation with the digests of what its URLs name now."""
    described = [(one, describe(one.url, found)[0]) for one in generation.models]
    models = tuple(replace(one, url=f"{what.url}@{what.digest}") for one, what in described)
    return Generation(generation.number, models)


def _begin(application: str, record: Record) -> bool:
    """Have Ray Serve start replicas already, if it can do so without waiting for them; say whether it does.

    A replica starts in seconds, and then waits for its node's agent, which fetches the model meanwhile. Only where
    nothing is served yet: else the new version must not take over before it was tried on every node.
    """
    from ray import serve

    if not hasattr(serve, "run_many") or application in serve.status().applications:  # somebody may have run it by hand
        return False
    target = serve.RunTarget(_application(record), name=application, route_prefix=record.route_prefix)
    serve.run_many([target], wait_for_ingress_deployment_creation=False, wait_for_applications_running=False)
    return True


def _run(application: str, record: Record) -> str:
    """Hand an application to Ray Serve and wait until it runs; return why it does not, or nothing."""
    from ray import serve

    try:
        serve.run(_application(record), name=application, route_prefix=record.route_prefix)
    except (RuntimeError, TimeoutError) as error:
        return first_line(error)
    return ""


def _application(record: Record) -> Any:
    return build(record.generation, record.settings, record.replicas, record.autoscaling, record.options)


def _delete(application: str) -> None:
    from ray import serve

    serve.delete(application, _blocking=True)


def _problem(application: str, number: int, found: Sequence[Node]) -> str:
    """Return what a replica says that could not change, or nothing."""
    for node, answer in zip(found, ask(found, "status"), strict=True):
        for replica in answer["replicas"] if isinstance(answer, dict) else ():
            if replica["application"] == application and replica["asked"] == number != replica["generation"]:
                return f"{node}: {replica['error']}"
    return ""


def _again(record: Record, number: int) -> Generation:
    return Generation(number, record.generation.models)
