"""The part of `glowplug cache` by which traces travel: to a URL and back, into one file and out of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from glowplug.cli.options import add_trusted_keys

if TYPE_CHECKING:
    from glowplug.train.trace.entry_store import DirectoryStore
    from glowplug.train.travel.archive import Moved
    from glowplug.train.travel.terms import Terms

ACTIONS = ("push", "pull", "export", "import")

_SHOWN = 5
_STORAGE = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of these actions."""
    add = parser.add_argument
    add("--sign", metavar="KEY", type=Path, help="for push and export: sign each trace with this private key")
    add_trusted_keys(parser, "--trust")
    add("--no-signature", action="store_true", help="for pull and import: take unsigned traces too, which are code")
    add("--force", action="store_true", help="for export: replace the file")


def run(args: argparse.Namespace) -> int:
    """Move traces; return the exit code, which is not 0 where all were refused."""
    from glowplug.core.disk.files import refuse_existing
    from glowplug.core.errors import UsageError
    from glowplug.train.trace.entry_store import DirectoryStore, default_directory
    from glowplug.train.travel import archive
    from glowplug.train.travel.terms import terms

    if not args.entry:
        what = "URL" if args.action in ("push", "pull") else "FILE"
        raise UsageError(f"{args.action} needs a {what}", remedy=f"glowplug cache {args.action} {what}")
    incoming = args.action in ("pull", "import")
    directory = Path(args.cache_dir) if args.cache_dir else default_directory()
    if not incoming and not directory.exists():
        raise UsageError(
            "there is no trace cache yet", seen=directory, remedy="glowplug run, or train.enable(), makes it"
        )
    store = DirectoryStore(directory, create=incoming)
    chosen = terms(trust=args.no_signature, keys=args.trust_key, sign=args.sign, required=args.require_signature)
    if args.action in ("push", "pull"):
        moved = _to_or_from_url(args, store, chosen)
    elif args.action == "export":
        refuse_existing(Path(args.entry), force=args.force)
        moved = archive.export(store, Path(args.entry), chosen)
    else:
        moved = archive.take_in(Path(args.entry), store, chosen)
    return _tell(args, moved)


def _to_or_from_url(args: argparse.Namespace, store: DirectoryStore, terms: Terms) -> Moved:
    from glowplug.store.location import parse
    from glowplug.train.travel import archive
    from glowplug.train.travel.remote import RemoteTraces

    remote = RemoteTraces(parse(args.entry), terms)
    return archive.push(store, remote) if args.action == "push" else archive.pull(remote, store)


def _tell(args: argparse.Namespace, moved: Moved) -> int:
    done = {"push": "stored", "pull": "fetched", "export": "written", "import": "taken"}[args.action]
    if args.json:
        print(json.dumps({"taken": moved.taken, "known": moved.known, "refused": moved.refused}))
    else:
        known = f", {len(moved.known)} were there already" if moved.known else ""
        print(f"{len(moved.taken)} traces {done}{known}")
    for name, reason in list(moved.refused.items())[:_SHOWN]:
        print(f"glowplug: {name[:12]} is left out: {reason}", file=sys.stderr)
    if len(moved.refused) > _SHOWN:
        print(f"glowplug: and {len(moved.refused) - _SHOWN} more", file=sys.stderr)
    return _STORAGE if moved.refused and not moved.taken and not moved.known else 0
