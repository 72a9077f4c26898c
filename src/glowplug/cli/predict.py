"""`glowplug predict`: one call of a bundle, with its timing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glowplug.cli.options import add_op_library, add_trusted_keys, count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from glowplug.core.manifest import Signature
    from glowplug.loader.model import CallableSignature, Model

NAME = "predict"
HELP = "call a bundle once, and say how long it took"
EXAMPLE = """
glowplug predict model.glow --input image.npy
glowplug predict encoder.glow --input ids=ids.json --input mask=mask.npy --output answer.npz --repeat 20
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long each part took. `steady_ns` is the median of the calls after the first, where there were any."""

    load_ns: int
    first_call_ns: int
    steady_ns: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's directory or URL")
    parser.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help="an input as .npy or .json (repeatable); NAME may be left out where there is one input",
    )
    parser.add_argument("--signature", metavar="NAME", help="the signature to call (default: serving_default)")
    parser.add_argument("--output", metavar="FILE", help="write the outputs to a .npy, .npz or .json file")
    parser.add_argument("--repeat", metavar="N", type=count, default=0, help="N more calls, for the steady time")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load a savedmodel bundle that you did not pack: it can run any program",
    )
    add_op_library(parser)
    add_trusted_keys(parser)
    parser.add_argument("--force", action="store_true", help="replace the output FILE if it exists")


def run(args: argparse.Namespace) -> int:
    """Load the bundle, call it and print what came out."""
    from glowplug.cli.output import TransferLine, note, quiet_tensorflow
    from glowplug.core.clock import now_ns
    from glowplug.core.disk.files import write_file

    _refuse_missing(args.input)
    target = _output_path(args.output, force=args.force)
    quiet_tensorflow()
    from glowplug.loader.open import load

    began = now_ns()
    with TransferLine("fetched") as transfer:
        model = load(
            args.bundle,
            trust=args.trust,
            op_libraries=args.op_library,
            transfer=transfer,
            trusted_keys=args.trust_key,
            require_signature=args.require_signature,
        )
    with model:
        loaded = now_ns()
        for text in model.info.notes:
            note(text)
        name = args.signature or _default_signature(model)
        call = model.signature(name)
        inputs = _read_inputs(args.input, call.signature)
        outputs, timing = _timed(call, inputs, loaded - began, args.repeat)
    if target is not None:
        from glowplug.cli.arrays import encode_outputs

        write_file(target, encode_outputs(target.suffix, outputs), force=args.force)
        note(f"wrote {target}")
    _print(args, name, outputs, timing)
    return 0


def _timed(
    call: CallableSignature, inputs: Mapping[str, Any], load_ns: int, repeat: int
) -> tuple[dict[str, NDArray[Any]], Timing]:
    from statistics import median

    from glowplug.core.clock import now_ns

    began = now_ns()
    answer = call(inputs)
    first = now_ns() - began
    steady = []
    for _ in range(repeat):
        began = now_ns()
        call(inputs)
        steady.append(now_ns() - began)
    outputs = answer if isinstance(answer, dict) else {next(iter(call.signature.outputs)): answer}
    return outputs, Timing(load_ns, first, int(median(steady)) if steady else None)


def _default_signature(model: Model) -> str:
    names = list(model.signatures)
    return names[0] if len(names) == 1 else "serving_default"


def _read_inputs(texts: Sequence[str], signature: Signature) -> dict[str, Any]:
    from glowplug.cli.arrays import read_input
    from glowplug.core.errors import UsageError

    inputs: dict[str, Any] = {}
    for text in texts:
        name, separator, file = text.partition("=")
        if not separator or (len(signature.inputs) == 1 and name not in signature.inputs and Path(text).exists()):
            if len(signature.inputs) != 1:
                raise UsageError(
                    "an input needs a name here",
                    seen=text,
                    remedy=f"use NAME=FILE; the signature is {signature}",
                )
            name, file = next(iter(signature.inputs)), text
        if name in inputs:
            raise UsageError("an input was given twice", seen=name, remedy="give each --input once")
        port = signature.inputs.get(name)
        inputs[name] = read_input(Path(file), port.spec if port else None)
    return inputs


def _output_path(text: str | None, *, force: bool) -> Path | None:
    """Check where the outputs go before anything is computed."""
    if text is None:
        return None
    from glowplug.core.disk.files import refuse_existing
    from glowplug.core.errors import UsageError

    path = Path(text)
    if path.suffix not in (".npy", ".npz", ".json"):
        raise UsageError("an output file is .npy, .npz or .json", seen=path, remedy="give it one of these endings")
    refuse_existing(path, force=force)
    if not path.parent.is_dir():
        raise UsageError("there is no folder for an output", seen=path, remedy=f"make it: mkdir -p {path.parent}")
    return path


def _refuse_missing(texts: Sequence[str]) -> None:
    """Find input files that are not there before a model is fetched for them."""
    from glowplug.cli.arrays import refuse_unknown_kind
    from glowplug.core.errors import UsageError

    for text in texts:
        _, separator, file = text.partition("=")
        path = Path(file if separator and not Path(text).exists() else text)
        refuse_unknown_kind(path)
        if not path.exists():
            raise UsageError("there is no such input file", seen=path, remedy="check the path")


def _print(args: argparse.Namespace, name: str, outputs: Mapping[str, NDArray[Any]], timing: Timing) -> None:
    from dataclasses import asdict

    from glowplug.cli.arrays import to_json
    from glowplug.cli.output import print_json
    from glowplug.core.clock import human_duration

    if args.json:
        values = {
            key: {"dtype": _dtype(array), "shape": list(array.shape), "values": to_json(array)}
            for key, array in outputs.items()
        }
        print_json({"signature": name, "outputs": values, "timing": asdict(timing)})
        return
    for key, array in outputs.items():
        print(f"{key}: {_dtype(array)}{list(array.shape)} {_summary(array)}".rstrip())
    parts = [f"load {human_duration(timing.load_ns)}", f"first call {human_duration(timing.first_call_ns)}"]
    if timing.steady_ns is not None:
        parts.append(f"steady {human_duration(timing.steady_ns)} (median of {args.repeat})")
    print(", ".join(parts))


def _dtype(array: NDArray[Any]) -> str:
    return "string" if array.dtype == object else str(array.dtype)


def _summary(array: NDArray[Any]) -> str:
    """Return small arrays whole, and of others the first values and the range."""
    import numpy as np

    from glowplug.cli.arrays import to_json

    flat = array.reshape(-1)
    head = ", ".join(f"{item:.6g}" if isinstance(item, float) else repr(item) for item in to_json(flat[:6]))
    if flat.size <= 6:
        return f"= {head}" if flat.size else ""
    if array.dtype == object or array.dtype.kind not in "fiuV":
        return f"= {head}, ..."
    wide = flat.astype(np.float64)
    return f"= {head}, ... (min {wide.min():.6g}, max {wide.max():.6g}, mean {wide.mean():.6g})"
