"""Fuzz target for what reads untrusted bytes: the manifest and the graph.

    python tests/fuzz/fuzz_bundle.py                 with atheris: coverage-guided, until stopped
    python tests/fuzz/fuzz_bundle.py --runs 20000    without: seeded random changes to the golden bundle

Whatever the bytes, a parser returns or raises a `BundleError`; anything else ends the run with a traceback.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from pathlib import Path

from glowplug.bundle import allowlist, graphscan, schema
from glowplug.core.errors import BundleError

GOLDEN = Path(__file__).parent.parent / "bundle" / "golden"
MANIFEST = (GOLDEN / "bundle.json").read_bytes()
GRAPH = (GOLDEN / "graph.pb").read_bytes()
HEAD, TAIL = b'{"glowplug_bundle":1,"manifest":', b',"sha256":"%s"}\n'
BODY = MANIFEST[len(HEAD) : -len(TAIL % bytes(64))]
PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"9" * 30,
    b"\\ud800",
    b"../",
    b"\0",
]
PIECES += [b"\x0a", b"\x12", b"\x1a", b"\x80\x00", b"\xff" * 10, b"ReadFile", b"string", b"\x0b", b"\x0d"]


def parse_manifest(data: bytes) -> bool:
    """Parse, and if it was accepted require that it is written the same again."""
    try:
        manifest = schema.parse(data)
    except BundleError:
        return False
    assert schema.parse(schema.dump(manifest)) == manifest
    return True


def check_graph(data: bytes) -> bool:
    """Scan, and check against the golden manifest."""
    try:
        graphscan.scan(data)
        allowlist.check_graph(data, schema.parse(MANIFEST))
    except BundleError:
        return False
    return True


def seal(body: bytes) -> bytes:
    """Give a manifest the digest that fits, or no change would get past it."""
    return HEAD + body + TAIL % hashlib.sha256(body).hexdigest().encode()


def one_input(data: bytes) -> None:
    """The entry point for atheris."""
    parse_manifest(data)
    parse_manifest(seal(data))
    check_graph(data)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Change, remove, insert, copy or cut at a few random places."""
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
            out[at:at] = chance.choice(PIECES)
        elif kind == 3:
            out[at : at + span] = chance.choice(PIECES)
        elif kind == 4:
            source = chance.randrange(len(out) + 1)
            out[at:at] = out[source : source + span]
        elif kind == 5 and chance.random() < 0.1:
            del out[at:]
    return bytes(out)


def run(runs: int, seed: int) -> str:
    """Try `runs` random inputs of each kind; return how many were accepted."""
    chance = random.Random(seed)
    accepted = [0, 0, 0]
    for _ in range(runs):
        accepted[0] += parse_manifest(mutate(MANIFEST, chance))
        accepted[1] += parse_manifest(seal(mutate(BODY, chance)))
        accepted[2] += check_graph(mutate(GRAPH, chance))
    manifests, sealed, graphs = accepted
    return f"{runs} runs, seed {seed}: accepted {manifests} manifests, {sealed} sealed ones, {graphs} graphs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options, rest = parser.parse_known_args()
    if options.runs is None:
        try:
            import atheris
        except ImportError:
            options.runs = 20_000
        else:
            atheris.instrument_all()
            atheris.Setup([sys.argv[0], *rest], one_input)
            atheris.Fuzz()
            return
    print(run(options.runs, options.seed))


if __name__ == "__main__":
    main()
