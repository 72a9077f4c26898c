"""`glowplug verify`: every digest, every bound, every operation of a bundle."""

from __future__ import annotations

import argparse

from glowplug.cli.options import add_op_library, add_trusted_keys, trusted_keys

NAME = "verify"
HELP = "check every byte of a bundle"
EXAMPLE = """
glowplug verify model.glow
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's directory or URL")
    add_op_library(parser)
    add_trusted_keys(parser)


def run(args: argparse.Namespace) -> int:
    """Verify the bundle; what is wrong with it is raised."""
    from glowplug.bundle.verify import Report, verify
    from glowplug.cli.output import Percentage, TransferLine, note, print_json
    from glowplug.core.clock import human_bytes, human_duration, now_ns
    from glowplug.loader.origin import LocalCopy, with_local_copy
    from glowplug.runtime.oplibrary import custom_ops

    began = now_ns()
    progress = Percentage("verified")

    def check(copy: LocalCopy) -> Report:
        for text in copy.notes:
            note(text)
        try:
            found = verify(copy.path, progress=progress, extra_ops=custom_ops(args.op_library))
        finally:
            progress.clear()
        copy.release()
        return found

    with TransferLine("fetched") as transfer:
        report = with_local_copy(args.bundle, check, progress=transfer, trusted=trusted_keys(args))
    took = now_ns() - began
    for path in report.unlisted:
        note(f"not listed in the manifest, never loaded: {path}")
    if args.json:
        document = {
            "path": str(report.root),
            "good": True,
            "engine": report.manifest.engine,
            "files": len(report.manifest.files),
            "bytes_hashed": report.bytes_hashed,
            "unlisted": list(report.unlisted),
            "duration_ns": took,
        }
        print_json(document)
        return 0
    files = len(report.manifest.files)
    print(f"{args.bundle}: good ({files} files, {human_bytes(report.bytes_hashed)}, {human_duration(took)})")
    return 0
