"""What fuzz targets share: random changes to good inputs, and the choice between atheris and seeded runs."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path


def mutate(data: bytes, chance: random.Random, pieces: Sequence[bytes]) -> bytes:
    """Change, remove, insert, copy or cut at a few random places. `pieces` are what is likely to matter."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
        at = chance.randrange(len(out) + 1)
        span = chance.choice((1, 1, 2, 5, 30))
        kind = chance.randrange(6)
        if kind == 0 and at < len(out):
            out[at] = chance.randrange(256)
        elif kind == 1:
            del out[at : at + span]
        elif kind == 2:
            out[at:at] = chance.choice(pieces)
        elif kind == 3:
            out[at : at + span] = chance.choice(pieces)
        elif kind == 4:
            source = chance.randrange(len(out) + 1)
            out[at:at] = out[source : source + span]
        elif kind == 5 and chance.random() < 0.1:
            del out[at:]
    return bytes(out)


def main(
    description: str | None,
    one_input: Callable[[bytes], None],
    run: Callable[[int, int], str],
    seeds: Sequence[bytes] = (),
) -> None:
    """Run a target: guided by coverage where atheris is there and no `--runs` was given, else seeded.

    `seeds` are where atheris starts; a folder that keeps what it finds can be named on the command line.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options, rest = parser.parse_known_args()
    if options.runs is None:
        try:
            import atheris
        except ImportError:
            options.runs = 20_000
        else:
            with tempfile.TemporaryDirectory() as folder:
                for place, seed in enumerate(seeds):
                    (Path(folder) / str(place)).write_bytes(seed)
                kept = [one for one in rest if not one.startswith("-")] or [tempfile.mkdtemp(dir=folder)]
                flags = [one for one in rest if one.startswith("-")]
                atheris.instrument_all()
                atheris.Setup([sys.argv[0], *flags, *kept, folder], one_input)
                atheris.Fuzz()
            return
    print(run(options.runs, options.seed))
