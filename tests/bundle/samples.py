"""Bundles to test with: the golden one, ways to change it, and graphs written by hand."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glowplug.bundle import schema
from glowplug.bundle.writer import BundleWriter
from glowplug.core.manifest import (
    Asset,
    Fingerprint,
    InitStep,
    Manifest,
    Port,
    Signature,
    TensorSpec,
)

GOLDEN = Path(__file__).parent / "golden"

KERNEL = bytes.fromhex("0000803f 00000040 00004040 00008040 0000a040 0000c040")  # float32 1..6
BIAS = bytes.fromhex("0000003f 0000003f 0000003f")  # float32 0.5


def write_golden(directory: Path) -> Manifest:
    """Write the golden bundle, around the graph that was committed, into an empty directory."""
    with BundleWriter(directory) as writer:
        writer.add_file("graph.pb", GOLDEN / "graph.pb")
        writer.add_file("graph.portable.pb", (GOLDEN / "graph.pb").read_bytes())
        writer.add_file("assets/vocab.txt", b"red\ngreen\nblue\n")
        writer.add_file("warmup/0.json", b'{"x": [[1.0, 2.0]]}')
        kernel = writer.add_tensor("weights/kernel", "dense/kernel", "float32", (2, 3), KERNEL)
        bias = writer.add_tensor("weights/bias", "dense/bias", "float32", (3,), BIAS)
        empty = writer.add_tensor("weights/empty", "nothing", "float64", (0, 4), b"")
        assert writer.add_tensor("weights/kernel_again", "tied", "float32", (2, 3), bytearray(KERNEL)) == kernel
        return writer.finish(
            engine="native",
            signatures={
                "serving_default": Signature(
                    inputs={"x": Port(TensorSpec("float32", (None, 2)), "x:0")},
                    outputs={"y": Port(TensorSpec("float32", (None, 3)), "y:0")},
                    weights=(kernel, bias, empty),
                ),
                "lookup": Signature(
                    inputs={"text": Port(TensorSpec("string", None), "text:0")},
                    outputs={"ids": Port(TensorSpec("int64", None), "ids:0")},
                    targets=("done",),
                ),
            },
            assets=(Asset("vocab_path", "assets/vocab.txt"),),
            initializers=(InitStep(("init_table",)),),
            op_libraries=("tensorflow_text",),
            fingerprint=Fingerprint("2.21.0", ("avx2", "fma"), {"TF_ENABLE_ONEDNN_OPTS": "1"}),
            provenance={"glowplug": "0.1.0", "source": "saved_model"},
            equivalence={"float32": {"max_absolute": 0.0}},
        )


def copy_golden(directory: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, directory))


def edit_manifest(directory: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest's JSON and give it the digest that fits, as an attacker would."""
    path = directory / "bundle.json"
    body = json.loads(path.read_bytes())["manifest"]
    edit(body)
    path.write_bytes(seal(body))


def seal(body: Any) -> bytes:
    data = schema.canonical(body)
    return b'{"glowplug_bundle":1,"manifest":%s,"sha256":"%s"}\n' % (
        data,
        hashlib.sha256(data).hexdigest().encode(),
    )


def replace_file(directory: Path, path: str, data: bytes) -> None:
    """Change a file and give its entry the size and digest that fit."""
    (directory / path).write_bytes(data)
    entry = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    edit_manifest(directory, lambda body: body["files"].update({path: entry}))


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(name: str, op: str, *inputs: str) -> bytes:
    """A NodeDef with an attribute, as a field's content."""
    attribute = field(5, field(1, "T") + field(2, b"\x30\x01"))
    return field(1, name) + field(2, op) + b"".join(field(3, one) for one in inputs) + attribute


def function(name: str, *nodes: bytes) -> bytes:
    return field(1, field(1, name)) + b"".join(field(3, one) for one in nodes)


def graph(*nodes: bytes, functions: tuple[bytes, ...] = ()) -> bytes:
    library = field(2, b"".join(field(1, one) for one in functions)) if functions else b""
    return b"".join(field(1, one) for one in nodes) + library + field(4, b"\x08\xa1\x11")
