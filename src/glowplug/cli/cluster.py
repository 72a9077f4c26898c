"""`glowplug cluster`: models on the nodes of a Ray cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glowplug.cluster.nodes.preloading import Preloaded

NAME = "cluster"
HELP = "models on the nodes of a Ray cluster: fetched about once, served, changed, gone back from"
EXAMPLE = """
glowplug cluster preload s3://bucket/models/encoder/3 --address 10.0.0.1:6379
glowplug cluster deploy encoder=s3://bucket/models/encoder/3 --replicas 6
glowplug cluster status
glowplug cluster rollback
glowplug cluster down
"""
_STORAGE = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "action", choices=("status", "preload", "deploy", "rollback", "down"), help="what to do with the cluster"
    )
    parser.add_argument(
        "models", metavar="[NAME=]URL", nargs="*", help="for preload and deploy: what to fetch, or to serve"
    )
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="the cluster (default: RAY_ADDRESS, or one that runs here)"
    )
    parser.add_argument("--application", metavar="NAME", default="glowplug", help="which one (default: glowplug)")
    parser.add_argument("--nodes", metavar="IDS", default="all", help="for preload: ids or addresses, by commas")
    parser.add_argument("--replicas", metavar="N", type=int, help="for deploy: how many (default: 1)")
    parser.add_argument("--autoscale", metavar="MIN:MAX", help="for deploy: as many as Ray Serve finds needed")
    parser.add_argument("--batching", action="store_true", help="for deploy: join calls that wait")
    parser.add_argument(
        "--resident", metavar="N", type=int, default=0, help="for deploy: models that a replica has loaded at a time"
    )
    parser.add_argument(
        "--trust", action="store_true", help="for deploy: run models that are programs, unsigned ones too"
    )
    parser.add_argument(
        "--num-cpus", metavar="N", type=float, help="for deploy: processors that Ray reserves a replica"
    )
    parser.add_argument(
        "--http-port", metavar="PORT", type=int, default=8000, help="of Ray Serve, if it does not run yet"
    )
    parser.add_argument(
        "--grpc-port", metavar="PORT", type=int, default=9000, help="of Ray Serve, if it does not run yet"
    )
    parser.add_argument("--agents", action="store_true", help="for down: end the agents of the nodes, too")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    import os

    from glowplug.core.errors import UsageError

    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "error")  # what goes wrong is said in one line, by us
    if bool(args.models) != (args.action in ("preload", "deploy")):
        wanted = "needs the URL of a model" if not args.models else "takes no URL"
        raise UsageError(
            f"cluster {args.action} {wanted}",
            seen=" ".join(args.models) or "none",
            remedy="see glowplug cluster --help",
        )
    actions = {"status": _status, "preload": _preload, "deploy": _deploy, "rollback": _rollback, "down": _down}
    return actions[args.action](args)


def _status(args: argparse.Namespace) -> int:
    from glowplug.cluster import status

    document = status(args.address)
    _print(args, document, [line for node in document["nodes"] for line in _node(node)] + _applications(document))
    return 0


def _node(node: dict[str, Any]) -> list[str]:
    from glowplug.core.clock import human_bytes

    state = "" if node["alive"] else ", gone"
    lines = [f"node {node['node'][:8]} {node['address']}{state}"]
    if node["error"]:
        lines.append(f"  {node['error']}")
    for one in node["models"]:
        done = f"{100 * one['done_bytes'] // max(1, one['total_bytes'])} %"
        origin, peers = human_bytes(one["origin_bytes"]), human_bytes(one["peer_bytes"])
        lines.append(f"  {one['url']}@{one['digest'][:12]}: {done}, {origin} from the origin, {peers} from other nodes")
    for one in node["replicas"]:
        served = ", ".join(f"{model['model']} version {model['version']}" for model in one["models"] if model["loaded"])
        state = one["error"] or f"{served or 'nothing yet'}, ready in {one['ready_s']} s"
        lines.append(f"  replica {one['replica']} of {one['application']}: {state}")
    return lines


def _applications(document: dict[str, Any]) -> list[str]:
    lines = []
    for one in document["applications"]:
        served = ", ".join(f"{model['name']} version {model['version']}" for model in one["models"])
        lines.append(f"application {one['application']}: {one['state']}, generation {one['generation']}: {served}")
    return lines


def _preload(args: argparse.Namespace) -> int:
    from glowplug.cluster import preload

    nodes = "all" if args.nodes == "all" else args.nodes.split(",")
    done = [preload(url, nodes=nodes, address=args.address) for url in args.models]
    _print(args, {"models": [_document(one) for one in done]}, [line for one in done for line in _lines(one)])
    return _STORAGE if any(one.failed for one in done) else 0


def _document(done: Preloaded) -> dict[str, Any]:
    nodes = [
        {
            "node": one.node,
            "origin_bytes": one.origin_bytes,
            "peer_bytes": one.peer_bytes,
            "duration_ns": one.duration_ns,
            "error": str(one.error) if one.error is not None else "",
        }
        for one in done.outcomes
    ]
    return {"url": done.url, "bytes": done.size, "origin_bytes": done.origin_bytes, "nodes": nodes}


def _lines(done: Preloaded) -> list[str]:
    from glowplug.core.clock import human_bytes, human_duration

    lines = [done.url, f"  {human_bytes(done.size)}, {human_bytes(done.origin_bytes)} read from the origin"]
    for one in done.outcomes:
        if one.error is not None:
            lines.append(f"  node {one.node[:8]}: {one.error}")
        else:
            origin, peers = human_bytes(one.origin_bytes), human_bytes(one.peer_bytes)
            took = human_duration(one.duration_ns)
            lines.append(f"  node {one.node[:8]}: {origin} from the origin, {peers} from other nodes, {took}")
    return lines


def _deploy(args: argparse.Namespace) -> int:
    from glowplug.cluster import deploy

    options: dict[str, Any] = {}
    if args.num_cpus is not None:
        options["ray_actor_options"] = {"num_cpus": args.num_cpus}
    done = deploy(
        _named(args.models),
        application=args.application,
        replicas=args.replicas,
        autoscaling=_scaled(args.autoscale),
        settings={"batching": args.batching, "resident": args.resident, "trust": args.trust},
        http_port=args.http_port,
        grpc_port=args.grpc_port,
        address=args.address,
        **options,
    )
    _deployed(args, done)
    return 0


def _rollback(args: argparse.Namespace) -> int:
    from glowplug.cluster import rollback

    _deployed(args, rollback(args.application, address=args.address))
    return 0


def _deployed(args: argparse.Namespace, done: Any) -> None:
    document = {
        "application": done.application,
        **done.generation.to_json(),
        "preloaded": [_document(one) for one in done.models],
    }
    lines = [f"{one.name} version {one.version}: {one.url}" for one in done.generation.models]
    _print(args, document, [f"application {done.application} serves generation {done.generation.number}", *lines])


def _down(args: argparse.Namespace) -> int:
    from glowplug.cluster import down

    down(args.application, agents=args.agents, address=args.address)
    _print(args, {"ended": args.application}, [f"application {args.application} has ended"])
    return 0


def _named(models: list[str]) -> str | dict[str, str]:
    """Return the URL, or the URLs by name."""
    from glowplug.core.errors import UsageError

    if len(models) == 1 and ("=" not in models[0] or "://" in models[0].partition("=")[0]):
        return models[0]
    named: dict[str, str] = {}
    for one in models:
        name, separator, url = one.partition("=")
        if not separator or "://" in name or name in named:
            raise UsageError("several models need a name each", seen=one, remedy="write NAME=URL")
        named[name] = url
    return named


def _scaled(text: str | None) -> dict[str, Any] | None:
    from glowplug.core.errors import UsageError

    if text is None:
        return None
    least, separator, most = text.partition(":")
    if not (separator and least.isdigit() and most.isdigit() and 0 < int(most) >= int(least)):
        raise UsageError("this is no range of replicas", seen=text, remedy="write MIN:MAX, as in 2:6")
    return {"min_replicas": int(least), "max_replicas": int(most)}


def _print(args: argparse.Namespace, document: dict[str, Any], lines: list[str]) -> None:
    from .output import print_json

    if args.json:
        print_json(document)
    else:
        print("\n".join(lines) or "nothing")
