"""`glowplug bench`: one model, and everybody who could answer from it, side by side."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from glowplug.cli.options import count, span

if TYPE_CHECKING:
    from glowplug.core.benchmark import Benchmark

NAME = "bench"
HELP = "measure a model in stock TensorFlow, its peers and every engine, in fresh processes"
EXAMPLE = """
glowplug bench saved_model_dir --html bench.html
glowplug bench model.keras --against tensorflow,litert --repeat 3 --json > bench.json
"""

ENVIRONMENTS = "GLOWPLUG_BENCH_ENVIRONMENTS"
_DROP_CACHES = "/proc/sys/vm/drop_caches"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("model", metavar="MODEL", help="a SavedModel directory, a .keras file or an .h5 file")
    parser.add_argument(
        "--against",
        metavar="NAME,...",
        help="who takes part besides Glowplug: tensorflow, keras, litert, onnxruntime, openvino (default: all)",
    )
    parser.add_argument("--repeat", metavar="N", type=count, default=5, help="rounds to measure (default 5)")
    parser.add_argument("--cold", action="store_true", help="measure with a dropped page cache, too (root)")
    parser.add_argument(
        "--seconds", metavar="S", type=span, default=0.5, help="how long steady calls are timed (default 0.5)"
    )
    parser.add_argument("--signature", metavar="NAME", default="", help="the signature to call")
    parser.add_argument(
        "--warmup", metavar="FILE", help="a request to send: .npz, .json or a tf_serving_warmup_requests file"
    )
    parser.add_argument(
        "--environments",
        metavar="DIR",
        help=f"where the environments peers-NAME are (default: {ENVIRONMENTS}, or .venvs); a peer that has none is "
        "looked for in this one",
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the converted models in DIR, and use those that an earlier run left there"
    )
    parser.add_argument("--only-prepare", action="store_true", help="convert the model into DIR, and measure nothing")
    parser.add_argument("--limit", metavar="S", type=span, default=600.0, help="longest wait for anyone (default 600)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON document to FILE")
    parser.add_argument("--html", metavar="FILE", help="write a page with bar charts to FILE")
    parser.add_argument(
        "--unsafe-lambda", action="store_true", help="load Lambda layers of a Keras file: only if you trust it"
    )
    parser.add_argument("--force", action="store_true", help="replace the files if they exist")


def run(args: argparse.Namespace) -> int:
    """Measure, and show what was found."""
    from glowplug.cli.output import print_json, quiet_tensorflow
    from glowplug.core.disk.files import refuse_existing, write_file
    from glowplug.core.errors import UsageError

    names = _names(args.against)
    if args.only_prepare and not args.keep:
        raise UsageError("there is nothing to prepare for", seen="--only-prepare", remedy="name a folder with --keep")
    targets = [Path(text) for text in (args.output, args.html) if text]
    for target in targets:
        refuse_existing(target, force=args.force)
    quiet_tensorflow()
    benchmark = _measure(args, names)
    if args.output:
        import json

        text = json.dumps(benchmark.to_json(), indent=1, allow_nan=False) + "\n"
        write_file(Path(args.output), text.encode(), force=args.force)
    if args.html:
        from glowplug.report.benchmark import render_benchmark

        write_file(Path(args.html), render_benchmark(benchmark), force=args.force)
    if args.json:
        print_json(benchmark.to_json())
        return 0
    import sys

    from glowplug.report.benchmark import benchmark_lines
    from glowplug.report.terminal import print_lines, shown_width

    print_lines(benchmark_lines(benchmark, shown_width(sys.stdout)), sys.stdout)
    return 0


def _names(against: str | None) -> list[str]:
    """Return who takes part. Glowplug's own engines always do, and stock, which says what is right."""
    from glowplug.bench.peers import GLOWPLUG, PEERS, STOCK
    from glowplug.core.errors import UsageError

    others = [peer.name for peer in PEERS if not peer.name.startswith(GLOWPLUG)]
    chosen = others if against is None else [name for name in against.split(",") if name]
    unknown = [name for name in chosen if name not in others]
    if unknown:
        raise UsageError("there is no such peer", seen=", ".join(unknown), remedy=f"use some of {', '.join(others)}")
    return [STOCK, *chosen, *(peer.name for peer in PEERS if peer.name.startswith(GLOWPLUG))]


def _measure(args: argparse.Namespace, names: list[str]) -> Benchmark:
    import contextlib
    import tempfile
    from dataclasses import replace

    from glowplug.bench.contest import run as run_contest
    from glowplug.bench.contestant import Question
    from glowplug.bench.preparation import Source
    from glowplug.bench.rounds import Plan
    from glowplug.cli.output import Stages, note
    from glowplug.convert.example import make_example, make_kept_example

    notes = []
    if args.cold and not os.access(_DROP_CACHES, os.W_OK):
        notes.append("only root may drop the page cache: measured with a warm one alone")
    model, warmup = Path(args.model).absolute(), Path(args.warmup).absolute() if args.warmup else None
    repeats = 0 if args.only_prepare else max(1, args.repeat)
    plan = Plan(repeats, args.cold and not notes, args.seconds, args.limit)
    environments = Path(args.environments or os.environ.get(ENVIRONMENTS) or ".venvs")
    for text in notes:
        note(text)
    with contextlib.ExitStack() as stack:
        stages = stack.enter_context(Stages())
        stages("find inputs that suit")
        wishes = {"warmup": warmup, "signature": args.signature, "unsafe_lambda": args.unsafe_lambda}
        if args.keep:
            scratch, example = make_kept_example(model, Path(args.keep), limit_s=args.limit, **wishes)
        else:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glowplug-bench-")))
            example = make_example(model, scratch, limit_s=args.limit, **wishes)
        benchmark = run_contest(
            Source(model, example.saved_model, example.signature, warmup),
            Question(example.signature, example.inputs),
            names=names,
            plan=plan,
            scratch=scratch,
            environments=environments,
            progress=stages,
        )
    return replace(benchmark, notes=tuple(notes))
