"""`glowplug cache`: what the trace cache and the node cache hold, why a step was traced, what is whole, what may go."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from glowplug.cli import cache_travel
from glowplug.cli.options import count, span

if TYPE_CHECKING:
    from glowplug.train.trace.entry import Header
    from glowplug.train.trace.entry_store import DirectoryStore, Item

NAME = "cache"
HELP = "look into the trace cache and the node cache, explain, check, make them smaller, or take traces elsewhere"
EXAMPLE = """
glowplug cache ls
glowplug cache explain
glowplug cache prune --max-bytes 1000000000
glowplug cache verify
glowplug cache push s3://models/traces --sign team.key
glowplug cache pull s3://models/traces --trust team.key.pub
glowplug cache export traces.tar --sign team.key
glowplug cache import traces.tar --trust team.key.pub
"""

_DAY_S = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument(
        "action", choices=("ls", "explain", "prune", "clear", "verify", *cache_travel.ACTIONS), help="what to do"
    )
    parser.add_argument(
        "entry",
        nargs="?",
        metavar="ENTRY|URL|FILE",
        help="for explain: the start of an entry's name, the newest if left out; for push and pull a URL, for export "
        "and import a file",
    )
    parser.add_argument("--cache-dir", metavar="DIR", help="the trace cache to use instead of the user's own")
    parser.add_argument(
        "--only",
        choices=("traces", "node", "litert"),
        help="only the trace cache, the node cache, or the packed weights of LiteRT models (default: all; for clear "
        "and explain the trace cache)",
    )
    parser.add_argument("--max-bytes", type=count, metavar="N", help="for prune: keep the last used up to this size")
    parser.add_argument("--older-than", type=span, metavar="DAYS", help="for prune: remove what is unused for longer")
    cache_travel.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    from glowplug.core.errors import UsageError

    if args.action in cache_travel.ACTIONS:
        return cache_travel.run(args)
    if args.action == "prune" and args.max_bytes is None and args.older_than is None:
        raise UsageError("prune needs to know what to keep", remedy="pass --max-bytes N or --older-than DAYS")
    if args.action == "explain" and args.only not in (None, "traces"):
        raise UsageError("explain is about traces", seen=f"--only {args.only}", remedy="leave --only out")
    if args.action == "verify" and args.only == "litert":
        raise UsageError(
            "packed weights are looked at whenever they are used",
            seen="--only litert",
            remedy="leave --only out, or name another cache",
        )
    document: dict[str, Any] = {}
    lines: list[str] = []
    if args.only in (None, "traces") and args.action != "verify":
        document, lines = _traces(args)
    damaged = False
    limit = 0 if args.action == "clear" else args.max_bytes
    age_s = None if args.older_than is None else args.older_than * _DAY_S
    everything = args.only is None and not args.cache_dir and args.action in ("ls", "prune", "verify")
    if args.only == "node" or everything:
        from glowplug.cli import node_cache

        if args.action == "ls":
            node, more = node_cache.listing()
        elif args.action == "verify":
            node, more = node_cache.verified()
            damaged = bool(node["damaged"])
        else:
            node, more = node_cache.pruned(limit, age_s)
        document["node"] = node
        lines += more
    if args.only == "litert" or (everything and args.action != "verify"):
        from glowplug.cli import litert_cache

        packed, more = litert_cache.listing() if args.action == "ls" else litert_cache.pruned(limit, age_s)
        document["litert"] = packed
        lines += more
    print(json.dumps(document) if args.json else "\n".join(lines), file=sys.stdout)
    return 1 if damaged else 0


def _traces(args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Do what was asked to the trace cache."""
    from pathlib import Path

    from glowplug.train.trace.entry_store import DirectoryStore, default_directory

    directory = Path(args.cache_dir) if args.cache_dir else default_directory()
    if not directory.exists():
        return {"directory": str(directory), "entries": []}, [f"{directory}: no trace cache yet"]
    store = DirectoryStore(directory, create=False)
    if args.action == "ls":
        return _list(store)
    if args.action == "explain":
        return _explain(args, store)
    return _remove(args, store)


def _list(store: DirectoryStore) -> tuple[dict[str, Any], list[str]]:
    from glowplug.cli.output import ago
    from glowplug.core.clock import human_bytes
    from glowplug.train.trace.entries import headers

    found = headers(store)
    total = sum(item.size for item, _ in found)
    rows = [_row(*each) for each in found]
    document = {"directory": str(store.path), "bytes": total, "entries": rows}
    lines = [f"{store.path}: {len(found)} traces, {human_bytes(total)}"]
    for row in rows:
        used = ago(row["used_s"])
        inputs = ", ".join(row["inputs"])
        lines.append(f"{row['name'][:12]}  {row['label']}  ({inputs})  {human_bytes(row['bytes'])}  used {used}")
    return document, lines


def _explain(args: argparse.Namespace, store: DirectoryStore) -> tuple[dict[str, Any], list[str]]:
    from glowplug.core.errors import UsageError
    from glowplug.train.trace.entries import headers

    found = [each for each in headers(store) if each[0].name.startswith(args.entry or "")]
    if not found:
        raise UsageError("no such trace", seen=args.entry or store.path, remedy="glowplug cache ls shows all")
    if args.entry and len(found) > 1:
        raise UsageError("more than one trace begins so", seen=args.entry, remedy="give more of its name")
    item, header = max(found, key=lambda each: each[1].created_s)
    row = _row(item, header)
    document = {**row, "components": dict(header.key.components), "because": header.info.get("because", [])}
    lines = [f"{item.name}", f"{row['label']}, {row['nodes']} nodes, {row['captures']} captures"]
    if document["because"]:
        lines += ["traced, because this had changed since a trace of the same kind:"]
        lines += [f"  {reason}" for reason in document["because"]]
    else:
        lines += ["traced, because nothing like it was kept"]
    lines += ["its key:"]
    lines += [f"  {name:<12} {digest[:16]}" for name, digest in sorted(header.key.components.items())]
    return document, lines


def _remove(args: argparse.Namespace, store: DirectoryStore) -> tuple[dict[str, Any], list[str]]:
    from glowplug.core.clock import human_bytes
    from glowplug.train.trace.entry_store import prune

    limit = 0 if args.action == "clear" else args.max_bytes
    age = None if args.older_than is None else args.older_than * _DAY_S
    removed = prune(store, max_bytes=limit, older_than_s=age)
    store.sweep()
    size = sum(item.size for item in removed)
    document = {"directory": str(store.path), "removed": [item.name for item in removed], "bytes": size}
    return document, [f"{store.path}: removed {len(removed)} traces, {human_bytes(size)}"]


def _row(item: Item, header: Header) -> dict[str, Any]:
    return {
        "name": item.name,
        "label": header.info.get("label", ""),
        "function": header.info.get("function", ""),
        "inputs": header.info.get("inputs", []),
        "nodes": header.info.get("nodes", 0),
        "captures": header.info.get("captures", 0),
        "bytes": item.size,
        "created_s": header.created_s,
        "used_s": item.used_s,
    }
