"""`glowplug inspect`: what a bundle says about itself."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from glowplug.cli.options import add_trusted_keys, count, trusted_keys

if TYPE_CHECKING:
    from pathlib import Path

    from glowplug.bundle.reader import Bundle
    from glowplug.core.manifest import LiteRTSettings, Manifest

NAME = "inspect"
HELP = "show what a bundle holds"
EXAMPLE = """
glowplug inspect model.glow
glowplug inspect model.glow --tensors 0 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's directory or URL")
    add_trusted_keys(parser)
    parser.add_argument(
        "--tensors",
        metavar="N",
        type=count,
        default=10,
        help="how many tensors to list, 0 for all (default 10)",
    )


def run(args: argparse.Namespace) -> int:
    """Read the manifest and print it."""
    from glowplug.bundle.seal import is_sealed_here
    from glowplug.cli.description import as_json, total_bytes
    from glowplug.cli.output import TransferLine, print_json
    from glowplug.loader.origin import with_local_copy

    with TransferLine("fetched") as transfer:
        bundle = with_local_copy(
            args.bundle, lambda copy: _opened(copy.path), progress=transfer, trusted=trusted_keys(args)
        )
    sealed = is_sealed_here(bundle)
    if args.json:
        document = {
            "path": str(bundle.root),
            "bytes": total_bytes(bundle.manifest),
            "loads_without_trust": bundle.manifest.engine != "savedmodel" or sealed,
            "manifest": as_json(bundle.manifest),
        }
        print_json(document)
        return 0
    print("\n".join(_lines(args.bundle, bundle.manifest, args.tensors, sealed=sealed)))
    return 0


def _opened(directory: Path) -> Bundle:
    """Return a bundle whose graphs are those that were packed, as `load` would find."""
    from glowplug.bundle import layout
    from glowplug.bundle.reader import open_bundle

    bundle = open_bundle(directory)
    for path in {layout.GRAPH, layout.PORTABLE_GRAPH} & set(bundle.manifest.files):
        bundle.read_file(path)
    return bundle


def _lines(name: str, manifest: Manifest, limit: int, *, sealed: bool) -> list[str]:
    from glowplug.cli.description import equality, measured_lines, plain, total_bytes
    from glowplug.cli.output import table
    from glowplug.core.clock import human_bytes
    from glowplug.core.manifest import TensorSpec

    lines = [f"{name}: {manifest.engine} bundle of {human_bytes(total_bytes(manifest))}"]
    if manifest.fingerprint is not None:
        lines.append(f"  optimised for TensorFlow {manifest.fingerprint.tensorflow}, {_cpu(manifest)}")
    if manifest.litert is not None:
        lines.append(f"  {_litert(manifest.litert)}")
    if manifest.engine == "savedmodel":
        lines.append(f"  packed by this user: {'yes' if sealed else 'no, so it loads only with --trust'}")
    if manifest.op_libraries:
        lines.append(f"  needs custom operations: {', '.join(manifest.op_libraries)}")
    lines += ["", "signatures"]
    for key, signature in manifest.signatures.items():
        lines.append(f"  {key}")
        rows = [("in", port, str(value.spec)) for port, value in signature.inputs.items()]
        rows += [("out", port, str(value.spec)) for port, value in signature.outputs.items()]
        lines += [table(rows, indent="    ")] if rows else []
    largest = sorted(manifest.tensors, key=lambda tensor: (-tensor.nbytes, tensor.offset))
    shown = largest[:limit] if limit else largest
    if shown:
        lines += ["", f"tensors ({len(shown)} of {len(largest)}, largest first)"]
        lines.append(
            table([(human_bytes(one.nbytes), str(TensorSpec(one.dtype, one.shape)), one.name) for one in shown])
        )
    lines += [
        "",
        "files",
        table([(human_bytes(entry.size), path) for path, entry in sorted(manifest.files.items())]),
    ]
    if manifest.provenance:
        lines += ["", "provenance"]
        lines.append(table([(plain(key), plain(value)) for key, value in sorted(manifest.provenance.items())]))
    lines += ["", "equivalence", f"  {equality(manifest)}", *_outputs(manifest)]
    measured = measured_lines(manifest)
    return [*lines, "", *measured] if measured else lines


def _litert(settings: LiteRTSettings) -> str:
    from glowplug.core.clock import human_bytes

    means = {
        "compiled": "CompiledModel",
        "declared": "CompiledModel for the declared shapes, an interpreter for others",
        "interpreter": "an interpreter",
    }[settings.interface]
    parts = [f"runs in LiteRT through {means}"]
    if settings.packed is not None:
        parts.append(f"weights packed for one machine take {human_bytes(settings.packed.size)}")
    if settings.largest is not None:
        parts.append(f"takes numbers up to {settings.largest:g}, and no NaN")
    return "; ".join(parts)


def _outputs(manifest: Manifest) -> list[str]:
    from glowplug.cli.description import output_differences
    from glowplug.cli.output import table

    rows = [
        (one.name, one.dtype, f"absolute {one.max_abs:.2g}", f"relative {one.max_rel:.2g}")
        for one in output_differences(manifest)
    ]
    return [table(rows)] if rows else []


def _cpu(manifest: Manifest) -> str:
    assert manifest.fingerprint is not None
    features = manifest.fingerprint.cpu
    return f"a processor with {len(features)} known features" if len(features) > 1 else " ".join(features)
