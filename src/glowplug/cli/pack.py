"""`glowplug pack`: a model in, a bundle out."""

from __future__ import annotations

import argparse
from pathlib import Path

from glowplug.cli.options import add_op_library

NAME = "pack"
HELP = "turn a SavedModel, .keras or .h5 model into a bundle, outputs proven equal"
EXAMPLE = """
glowplug pack saved_model_dir -o model.glow
glowplug pack model.keras -o model.glow --warmup requests.npz --force
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("model", metavar="MODEL", help="a SavedModel directory, a .keras file or an .h5 file")
    parser.add_argument("-o", "--output", metavar="BUNDLE", required=True, help="the directory to make")
    parser.add_argument(
        "--engine",
        choices=("auto", "native", "savedmodel"),
        default="auto",
        help="native starts fastest; savedmodel takes every model; auto is native, else savedmodel (default)",
    )
    parser.add_argument(
        "--warmup", metavar="FILE", help="requests to keep: .npz, .json or a tf_serving_warmup_requests file"
    )
    parser.add_argument(
        "--keep-variables",
        action="store_true",
        help="also keep the values of variables that packing folds, for train.load_weights (a larger bundle)",
    )
    parser.add_argument(
        "--tags",
        metavar="TAG,...",
        help="which graph of a SavedModel to pack, '' for the one without tags (default: serve, or the only one)",
    )
    parser.add_argument(
        "--unsafe-lambda",
        action="store_true",
        help="load Lambda layers of a Keras file, which run Python code that the file brings: only if you trust it",
    )
    add_op_library(parser)
    parser.add_argument("--force", action="store_true", help="replace BUNDLE if it exists")


def run(args: argparse.Namespace) -> int:
    """Pack the model."""
    from glowplug.cli.description import as_json, equality, total_bytes
    from glowplug.cli.output import Stages, note, print_json, quiet_tensorflow
    from glowplug.convert.pack import pack
    from glowplug.core.clock import human_bytes, human_duration

    quiet_tensorflow()
    with Stages() as stages:
        packed = pack(
            args.model,
            args.output,
            engine=args.engine,
            warmup=args.warmup,
            op_libraries=args.op_library,
            keep_variables=args.keep_variables,
            tags=None if args.tags is None else [tag for tag in args.tags.split(",") if tag],
            unsafe_lambda=args.unsafe_lambda,
            force=args.force,
            progress=stages,
        )
    manifest = packed.manifest
    if packed.reason is not None:
        note(f"the native engine cannot take this model ({packed.reason}): packed for the savedmodel engine")
    unproven = manifest.equivalence.get("unproven")
    if unproven:
        note(f"not compared, since no made-up input suits: {', '.join(unproven)}; give a real request with --warmup")
    if args.json:
        document = {
            "path": str(Path(packed.path).absolute()),
            "reason": packed.reason,
            "stages_ns": dict(packed.stages_ns),
            "bytes": total_bytes(manifest),
            "manifest": as_json(manifest),
        }
        print_json(document)
        return 0
    took = human_duration(sum(packed.stages_ns.values()))
    print(f"{packed.path}: {manifest.engine} bundle of {human_bytes(total_bytes(manifest))}, packed in {took}")
    for name, signature in manifest.signatures.items():
        print(f"  {name}{signature}")
    print(f"  {equality(manifest)}")
    return 0
