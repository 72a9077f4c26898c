"""`glowplug cache`: what the trace cache holds, why a step was traced, and how to make it smaller."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glowplug.train.trace.entry import Header
    from glowplug.train.trace.entry_store import DirectoryStore, Item

NAME = "cache"
HELP = "look into the trace cache, explain it, or make it smaller"
EXAMPLE = """
glowplug cache ls
glowplug cache explain
glowplug cache prune --max-bytes 1000000000
"""

_DAY_S = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("action", choices=("ls", "explain", "prune", "clear"), help="what to do")
    parser.add_argument("entry", nargs="?", help="for explain: the start of an entry's name; the newest if left out")
    parser.add_argument("--cache-dir", metavar="DIR", help="the cache to use instead of the user's own")
    parser.add_argument("--max-bytes", type=int, metavar="N", help="for prune: keep the last used up to this size")
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="for prune: remove what is unused for longer")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    from pathlib import Path

    from glowplug.core.errors import UsageError
    from glowplug.train.trace.entry_store import DirectoryStore, default_directory

    directory = Path(args.cache_dir) if args.cache_dir else default_directory()
    if not directory.exists():
        _print(args, {"directory": str(directory), "entries": []}, f"{directory}: no trace cache yet")
        return 0
    store = DirectoryStore(directory, create=False)
    if args.action == "ls":
        return _list(args, store)
    if args.action == "explain":
        return _explain(args, store)
    if args.action == "prune" and args.max_bytes is None and args.older_than is None:
        raise UsageError("prune needs to know what to keep", remedy="pass --max-bytes N or --older-than DAYS")
    return _remove(args, store)


def _list(args: argparse.Namespace, store: DirectoryStore) -> int:
    from glowplug.core.clock import human_bytes
    from glowplug.train.trace.entries import headers

    found = headers(store)
    total = sum(item.size for item, _ in found)
    rows = [_row(*each) for each in found]
    document = {"directory": str(store.path), "bytes": total, "entries": rows}
    lines = [f"{store.path}: {len(found)} traces, {human_bytes(total)}"]
    for row in rows:
        used = _ago(row["used_s"])
        inputs = ", ".join(row["inputs"])
        lines.append(f"{row['name'][:12]}  {row['label']}  ({inputs})  {human_bytes(row['bytes'])}  used {used}")
    _print(args, document, "\n".join(lines))
    return 0


def _explain(args: argparse.Namespace, store: DirectoryStore) -> int:
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
    _print(args, document, "\n".join(lines))
    return 0


def _remove(args: argparse.Namespace, store: DirectoryStore) -> int:
    from glowplug.core.clock import human_bytes
    from glowplug.train.trace.entry_store import prune

    limit = 0 if args.action == "clear" else args.max_bytes
    age = None if args.older_than is None else args.older_than * _DAY_S
    removed = prune(store, max_bytes=limit, older_than_s=age)
    store.sweep()
    size = sum(item.size for item in removed)
    document = {"directory": str(store.path), "removed": [item.name for item in removed], "bytes": size}
    _print(args, document, f"{store.path}: removed {len(removed)} traces, {human_bytes(size)}")
    return 0


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


def _ago(moment_s: float) -> str:
    age = max(0.0, time.time() - moment_s)
    for unit, size in (("days", _DAY_S), ("hours", 3600), ("minutes", 60)):
        if age >= 2 * size:
            return f"{age / size:.0f} {unit} ago"
    return "just now"


def _print(args: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    print(json.dumps(document) if args.json else text, file=sys.stdout)
