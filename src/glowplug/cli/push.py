"""`glowplug push`: a bundle goes to a storage, as chunks that other versions share."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "push"
HELP = "store a bundle under a URL: only what the storage does not have is sent"
EXAMPLE = """
glowplug push model.glow s3://bucket/models/encoder/3
glowplug push model.glow hdfs://namenode:8020/models/encoder --sign release.key
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's directory, or a SavedModel's")
    parser.add_argument("url", metavar="URL", help="where to: s3://, gs://, az://, hdfs://, https://, file:// and more")
    parser.add_argument("--sign", metavar="KEY", help="sign it with this private key (`glowplug keygen` makes one)")
    parser.add_argument("--force", action="store_true", help="send every chunk, also those that the storage has")
    parser.add_argument(
        "--prune",
        metavar="DAYS",
        type=float,
        help="then remove chunks beside URL that are older and that no published version needs; not while others push",
    )


def run(args: argparse.Namespace) -> int:
    """Push the bundle."""
    from glowplug.cli.output import TransferLine, print_json
    from glowplug.core.clock import human_bytes, human_duration, now_ns
    from glowplug.loader.origin import publish

    key = None
    if args.sign:
        from glowplug.store.signature import read_private

        key = read_private(Path(args.sign))
    if args.prune is not None and not args.prune >= 1:
        from glowplug.core.errors import UsageError

        seen = f"--prune {args.prune:g}"
        raise UsageError("what is younger than a day is never removed", seen=seen, remedy="give 1 or more days")
    began = now_ns()
    with TransferLine("pushed") as progress:
        pushed = publish(Path(args.bundle), args.url, key=key, force=args.force, progress=progress)
    took = now_ns() - began
    pruned = None
    if args.prune is not None:
        from glowplug.store.pruning import DAY_S, prune

        pruned = prune(args.url, older_than_s=args.prune * DAY_S)
    if args.json:
        document = {
            "url": args.url,
            "digest": pushed.digest,
            "bytes": pushed.total_bytes,
            "sent_bytes": pushed.sent_bytes,
            "duration_ns": took,
        }
        if pruned is not None:
            document |= {"removed_objects": pruned.objects, "removed_bytes": pruned.bytes}
        print_json(document)
        return 0
    sent = f"{human_bytes(pushed.sent_bytes)} of {human_bytes(pushed.total_bytes)} sent"
    print(f"{args.url}@{pushed.digest}")
    print(f"  {sent}, {human_duration(took)}")
    if pruned is not None:
        print(f"  {human_bytes(pruned.bytes)} in {pruned.objects} objects removed, which no published version needs")
    return 0
