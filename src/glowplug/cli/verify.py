"""`glowplug verify`: every digest, every bound, every operation of a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "verify"
HELP = "check every byte of a bundle"
EXAMPLE = """
glowplug verify model.glow
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's directory")


def run(args: argparse.Namespace) -> int:
    """Verify the bundle; what is wrong with it is raised."""
    from glowplug.bundle.verify import verify
    from glowplug.cli.output import Percentage, note, print_json
    from glowplug.core.clock import human_bytes, human_duration, now_ns

    began = now_ns()
    progress = Percentage("verified")
    try:
        report = verify(Path(args.bundle), progress=progress)
    finally:
        progress.clear()
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
