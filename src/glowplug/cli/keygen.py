"""`glowplug keygen`: a pair of keys for signing what is pushed."""

from __future__ import annotations

import argparse

from glowplug.cli.options import named_path

NAME = "keygen"
HELP = "make a pair of keys: one signs what is pushed, the other is trusted"
EXAMPLE = """
glowplug keygen team.key
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("key", metavar="FILE", type=named_path, help="the private key; the public one is FILE.pub")
    parser.add_argument("--force", action="store_true", help="replace keys that are there")


def run(args: argparse.Namespace) -> int:
    """Write both files and say what they are for."""
    import json

    from glowplug.store.signature import make_key_pair, public_path

    public = make_key_pair(args.key, force=args.force)
    names = {"private": str(args.key), "public": str(public_path(args.key)), "id": public.id}
    if args.json:
        print(json.dumps(names))
    else:
        print(f"{names['private']}: signs (push --sign); keep it to yourself")
        print(f"{names['public']}: key {public.id}, for those who trust it (pull --trust)")
    return 0
