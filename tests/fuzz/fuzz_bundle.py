"""Fuzz target for what reads untrusted bytes: the manifest and the graph.

    python tests/fuzz/fuzz_bundle.py                 with atheris: coverage-guided, until stopped
    python tests/fuzz/fuzz_bundle.py --runs 20000    without: seeded random changes to the golden bundle

Whatever the bytes, a parser returns or raises a `BundleError`; anything else ends the run with a traceback.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from driving import main, mutate

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


def run(runs: int, seed: int) -> str:
    """Try `runs` random inputs of each kind; return how many were accepted."""
    chance = random.Random(seed)
    accepted = [0, 0, 0]
    for _ in range(runs):
        accepted[0] += parse_manifest(mutate(MANIFEST, chance, PIECES))
        accepted[1] += parse_manifest(seal(mutate(BODY, chance, PIECES)))
        accepted[2] += check_graph(mutate(GRAPH, chance, PIECES))
    manifests, sealed, graphs = accepted
    return f"{runs} runs, seed {seed}: accepted {manifests} manifests, {sealed} sealed ones, {graphs} graphs"


if __name__ == "__main__":
    main(__doc__, one_input, run, [MANIFEST, BODY, GRAPH])
