"""`glowplug pull`: what a URL names comes into the node cache, or into a directory of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path

from glowplug.cli.options import add_trusted_keys, trusted_keys

NAME = "pull"
HELP = "fetch what a URL names into this host's node cache, or into a directory"
EXAMPLE = """
glowplug pull s3://bucket/models/encoder/3
glowplug pull s3://bucket/signed/3 -o model.glow --trust release.key.pub
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("url", metavar="URL", help="what to fetch; URL@DIGEST asks for exactly that version")
    parser.add_argument("-o", "--output", metavar="DIR", help="copy it there as well")
    add_trusted_keys(parser, "--trust")
    parser.add_argument("--force", action="store_true", help="replace DIR if it exists")


def run(args: argparse.Namespace) -> int:
    """Pull it, and say where it is."""
    from glowplug.cli.output import TransferLine, note, print_json
    from glowplug.core.clock import human_duration, now_ns
    from glowplug.core.disk.files import refuse_existing
    from glowplug.loader.origin import is_url, local_copy

    if not is_url(args.url):
        from glowplug.core.errors import UsageError

        raise UsageError("this is no URL", seen=args.url, remedy="write it as SCHEME://HOST/PATH")
    if args.output:
        refuse_existing(Path(args.output), force=args.force, replaceable=lambda folder: True)  # seen once it is fetched
    began = now_ns()
    with TransferLine("fetched") as progress:
        copy = local_copy(args.url, progress=progress, trusted=trusted_keys(args))
        if args.output and copy.is_damaged():  # what is mapped is not read; what is copied is
            copy.release()
            copy = local_copy(args.url, progress=progress, trusted=trusted_keys(args))
    with copy:
        for text in copy.notes:
            note(text)
        place = copy.path if args.output is None else _copied(copy.path, Path(args.output), force=args.force)
        took = now_ns() - began
        if args.json:
            document = {
                "url": args.url,
                "path": str(place),
                "digest": copy.digest,
                "signed": copy.signed,
                "duration_ns": took,
            }
            print_json(document)
        else:
            print(place)
            note(f"digest {copy.digest}, {human_duration(took)}")
    return 0


def _copied(source: Path, target: Path, *, force: bool) -> Path:
    """Copy an entry of the node cache, which others map, into files of the user's own."""
    import shutil

    from glowplug.bundle.layout import is_replaceable
    from glowplug.core.disk import refusals
    from glowplug.core.disk.files import new_directory, write_file
    from glowplug.core.errors import StorageError

    try:
        if source.is_file():
            write_file(target, source.read_bytes(), force=force)
            return target
        names = {one.name for one in source.iterdir()}

        def is_like_it(old: Path) -> bool:
            return is_replaceable(old) or names.issuperset(one.name for one in old.iterdir())

        with new_directory(target, force=force, replaceable=is_like_it) as directory:
            shutil.copytree(source, directory, copy_function=shutil.copyfile, dirs_exist_ok=True)
            for path in directory.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
    except shutil.Error as error:  # a list with a line for each file: the first says enough
        _, _, reason = error.args[0][0]
        what = "the copy cannot be written"
        raise StorageError(what, seen=f"{target} ({reason})", remedy="make room there, or choose another") from error
    except OSError as error:
        seen = f"{target} ({error.strerror or error})"
        raise StorageError("the copy cannot be written", seen=seen, remedy=refusals.remedy(error)) from error
    return target
