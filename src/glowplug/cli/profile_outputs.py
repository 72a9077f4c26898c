"""The files a profile is rendered into: options and writing, shared by the verbs that have a profile in hand."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glowplug.cli.options import named_path

if TYPE_CHECKING:
    from glowplug.core.profile import Profile


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--html`, `--trace`, `--speedscope` and `--force`."""
    parser.add_argument("--html", type=named_path, metavar="FILE", help="write a self-contained HTML report")
    parser.add_argument("--trace", type=named_path, metavar="FILE", help="write a Chrome trace for ui.perfetto.dev")
    parser.add_argument("--speedscope", type=named_path, metavar="FILE", help="write a file for speedscope.app")
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def check_outputs(args: argparse.Namespace, *more: Path | None, read: Sequence[Path] = ()) -> None:
    """Raise what writing the files would raise before any work is done, rather than after it.

    Each has a place of its own, which is none of the files that are `read`.
    """
    outputs = (args.html, args.trace, args.speedscope, *more)
    refuse_shared(*outputs, read=read)
    for path in outputs[1:]:
        _check_file(path, force=args.force)
    check_page(args.html, force=args.force)


def refuse_shared(*outputs: Path | None, read: Sequence[Path]) -> None:
    """Raise where an output would take the place of an input, or of another output."""
    from glowplug.core.errors import UsageError

    taken = {path.resolve() for path in read}
    for path in outputs:
        if path is None:
            continue
        if path.resolve() in taken:
            raise UsageError("an output would replace another file of this command", seen=path, remedy="name another")
        taken.add(path.resolve())


def check_page(path: Path | None, *, force: bool) -> None:
    """Raise what writing a page would raise."""
    if path is not None:
        from glowplug.report.pages import make_environment

        _check_file(path, force=force)
        make_environment()  # raises where jinja2 is missing


def _check_file(path: Path | None, *, force: bool) -> None:
    from glowplug.core.disk.files import refuse_existing
    from glowplug.core.errors import UsageError

    if path is None:
        return
    refuse_existing(path, force=force)
    if not path.parent.is_dir():
        raise UsageError("there is no folder for an output", seen=path, remedy=f"make it: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError("the folder of an output cannot be written to", seen=path, remedy="name another one")


def write_outputs(profile: Profile, args: argparse.Namespace) -> None:
    """Write the files that were asked for and name each on stderr."""
    from glowplug.core.disk.files import write_file

    if args.html is not None:
        from glowplug.report.html import render_html

        write_file(args.html, render_html(profile), force=args.force, mode=0o600)
        print(f"wrote {args.html}", file=sys.stderr)
    if args.trace is not None:
        from glowplug.report.perfetto import render_trace

        write_file(args.trace, render_trace(profile), force=args.force, mode=0o600)
        print(f"wrote {args.trace} (open it at ui.perfetto.dev)", file=sys.stderr)
    if args.speedscope is not None:
        from glowplug.report.speedscope import render_speedscope

        write_file(args.speedscope, render_speedscope(profile), force=args.force, mode=0o600)
        print(f"wrote {args.speedscope} (open it at speedscope.app)", file=sys.stderr)
