"""`glowplug pack`: a model in, a bundle out."""

from __future__ import annotations

import argparse
from pathlib import Path

from glowplug.cli.options import add_op_library, add_trusted_keys

NAME = "pack"
HELP = "turn a SavedModel, .keras, .h5 or .tflite model into a bundle, outputs proven equal"
EXAMPLE = """
glowplug pack saved_model_dir -o model.glow
glowplug pack model.keras -o model.glow --warmup requests.npz --force
glowplug pack saved_model_dir -o small.glow --engine litert --quantize int8 --calibration requests.npz
glowplug pack s3://bucket/saved_model/7 -o s3://bucket/bundles/7 --trust
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "model", metavar="MODEL", help="a SavedModel directory, a .keras, an .h5 or a .tflite file, or a URL of one"
    )
    parser.add_argument(
        "-o", "--output", metavar="BUNDLE", required=True, help="the directory to make, or a URL to store it under"
    )
    parser.add_argument(
        "--engine",
        choices=("auto", "native", "litert", "savedmodel"),
        default="auto",
        help="native takes nearly all models; litert takes fewer and needs no TensorFlow to run; savedmodel takes all; "
        "auto measures native and litert, else takes savedmodel (default)",
    )
    parser.add_argument(
        "--prefer",
        choices=("start", "steady", "memory", "any"),
        default="start",
        help="what auto chooses by: the soonest first prediction whose steady call is not clearly slower (start, the "
        "default), the fastest steady call, the least memory of one more instance; any takes the first that is equal",
    )
    parser.add_argument(
        "--quantize",
        choices=("dynamic", "float16", "int8"),
        help="with --engine litert: coarser weights, or with int8 all numbers; the difference is measured and kept",
    )
    parser.add_argument(
        "--calibration", metavar="FILE", help="requests like real ones for --quantize int8, as --warmup"
    )
    parser.add_argument(
        "--tolerance",
        metavar="X",
        type=float,
        help="refuse a quantised model whose answers differ by more than X times their largest value "
        "(default: dynamic 0.05, float16 0.005, int8 0.1)",
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
    add_trusted_keys(parser)
    parser.add_argument("--trust", action="store_true", help="pack a SavedModel of a URL, which runs it, without one")
    parser.add_argument("--sign", metavar="KEY", help="where BUNDLE is a URL: sign it with this private key")
    parser.add_argument("--force", action="store_true", help="replace BUNDLE if it exists")


def run(args: argparse.Namespace) -> int:
    """Pack the model."""
    from glowplug.cli.description import as_json, equality, measured_lines, total_bytes
    from glowplug.cli.output import Stages, TransferLine, note, print_json, quiet_tensorflow
    from glowplug.convert.pack import pack
    from glowplug.core.clock import human_bytes, human_duration
    from glowplug.core.errors import UsageError

    for path in (args.warmup, args.calibration):
        if path is not None and not Path(path).is_file():  # before TensorFlow is imported, which takes seconds
            raise UsageError("there is no such file of requests", seen=path, remedy="see glowplug pack --help")
    quiet_tensorflow()
    with Stages() as stages, TransferLine("transferred") as transfer:
        packed = pack(
            args.model,
            args.output,
            engine=args.engine,
            warmup=args.warmup,
            op_libraries=args.op_library,
            keep_variables=args.keep_variables,
            tags=None if args.tags is None else [tag for tag in args.tags.split(",") if tag],
            unsafe_lambda=args.unsafe_lambda,
            quantize=args.quantize,
            calibration=args.calibration,
            tolerance=args.tolerance,
            prefer=args.prefer,
            force=args.force,
            progress=stages,
            transfer=transfer,
            trusted_keys=args.trust_key,
            require_signature=args.require_signature,
            trust=args.trust,
            sign=args.sign,
        )
    manifest = packed.manifest
    for line in packed.notes:
        note(line)
    if packed.reason is not None:
        note(f"the native engine cannot take this model ({packed.reason}): packed for the {manifest.engine} engine")
    unproven = manifest.equivalence.get("unproven")
    if unproven:
        note(f"not compared, since no made-up input suits: {', '.join(unproven)}; give a real request with --warmup")
    if args.json:
        document = {
            "path": packed.path if isinstance(packed.path, str) else str(packed.path.absolute()),
            "reason": packed.reason,
            "notes": list(packed.notes),
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
    for line in measured_lines(manifest):
        print(line)
    return 0
