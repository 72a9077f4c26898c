"""`glowplug demo`: a model and a training program of its own, started with stock TensorFlow and with Glowplug.

It profiles a stock start, packs the model, starts it both ways, serves it, and runs the training program both ways.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glowplug.cli.options import count

from .demo_steps import Place, first_training_steps, run_step, serve_once, timed_step

if TYPE_CHECKING:
    from glowplug.core.profile import Profile

NAME = "demo"
HELP = "a tour: stock TensorFlow against Glowplug on a model it builds itself"
EXAMPLE = """
glowplug demo
glowplug demo --quick
glowplug demo --rounds 5 --keep tour
"""

_LARGEST_DIFFERENCE = 1e-5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("--rounds", metavar="N", type=count, default=3, help="starts of each kind (default 3)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a shorter tour: pack without measuring which engine is best, start each kind once, train a smaller model",
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the model, the bundle and the scripts in this new directory"
    )


def run(args: argparse.Namespace) -> int:
    """Take the tour; exit code 1 if the two ways give different answers."""
    import os
    import tempfile

    from glowplug.core.disk.files import new_directory
    from glowplug.core.errors import OutputExistsError, UsageError
    from glowplug.runtime.library import find_directory

    if not args.rounds:
        raise UsageError("a tour has at least one round", seen=args.rounds, remedy="give 1 or more")
    if args.keep is not None and os.path.lexists(args.keep):
        raise OutputExistsError("the folder exists already", seen=args.keep, remedy="name a new one")
    find_directory()  # before anything is made: without TensorFlow there is nothing to show
    # A process that outlives its program may still write there when the folder is removed.
    with tempfile.TemporaryDirectory(prefix="glowplug-demo-", ignore_cleanup_errors=True) as scratch:
        if args.keep is None:
            return _tour(Place(Path(scratch), Path(scratch, "cache")), args)
        with new_directory(Path(args.keep)) as directory:
            return _tour(Place(directory, Path(scratch)), args)


def _tour(place: Place, args: argparse.Namespace) -> int:
    from glowplug.cli.output import Stages, note, print_json
    from glowplug.cli.tour import SCRIPTS
    from glowplug.core.profile_json import read_profile

    for name, text in SCRIPTS.items():
        (place.directory / name).write_text(text, encoding="utf-8")
    rounds: dict[str, list[dict[str, Any]]] = {"stock": [], "glowplug": []}
    repeat = 1 if args.quick else args.rounds
    with Stages() as stages:
        stages("build a small model")
        run_step(place, "build_model.py", "saved_model")
        stages("glowplug profile")
        run_step(place, "-m", "glowplug", "profile", "-o", "stock.json", "stock.py", "saved_model")
        stages("glowplug pack")
        measured = ("--prefer", "any") if args.quick else ()
        run_step(place, "-m", "glowplug", "pack", "saved_model", "-o", "model.glow", *measured)
        for number in range(repeat):
            for kind, command in (
                ("stock", ("stock.py", "saved_model")),
                ("glowplug", ("fast.py", "model.glow")),
            ):
                stages(f"round {number + 1}: {kind}")
                rounds[kind].append(timed_step(place, *command))
        stages("glowplug serve")
        served = serve_once(place, "model.glow")
        training = first_training_steps(place, stages, layers=4 if args.quick else 24)
    profile = read_profile(place.directory / "stock.json")
    if isinstance(served, dict):
        rounds["serve"] = [{"answer": served.pop("answer")}]
    result = {
        **_result(rounds),
        "stock_phases_ns": dict(profile.phases),
        "findings": [finding.rule for finding in profile.findings],
        "serve": served,
        "run": training,
    }
    if args.json:
        print_json(result)
    else:
        _print_profile(profile)
        _print(result, repeat)
        _print_more(result)
    if args.keep:
        note(f"kept in {args.keep}: run `python stock.py saved_model` and `python fast.py model.glow` there")
    return 0 if result["largest_difference"] <= _LARGEST_DIFFERENCE and training["same_loss"] else 1


def _result(rounds: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    from statistics import median

    answers = [record.pop("answer") for records in rounds.values() for record in records]
    rounds.pop("serve", None)  # it answered, and that was compared
    difference = max(abs(a - b) for other in answers[1:] for a, b in zip(answers[0], other, strict=True))
    medians = {
        kind: {key: int(median(record[key] for record in records)) for key in records[0]}
        for kind, records in rounds.items()
    }
    times = medians["stock"]["first_result_ns"] / medians["glowplug"]["first_result_ns"]
    return {
        "times_sooner": round(times, 2),
        "largest_difference": difference,
        "medians": medians,
        "rounds": rounds,
    }


def _print_profile(profile: Profile) -> None:
    """Show where a stock start went, its measuring loop included, and what to do about it first."""
    import sys

    from glowplug.report.lines import BLANK, BOLD, plain, wrap
    from glowplug.report.terminal import finding_lines, print_lines
    from glowplug.report.waterfall import waterfall_lines

    lines = [plain("a stock start, as `glowplug profile` sees it", BOLD), *waterfall_lines(profile, 80), BLANK]
    if profile.findings:
        lines += [plain("the first of its findings", BOLD), *finding_lines(profile.findings[:1], 80), BLANK]
    else:
        lines += [*wrap("it found nothing to do about that", 80), BLANK]
    print_lines(lines, sys.stdout)


def _print(result: dict[str, Any], rounds: int) -> None:
    from glowplug.cli.output import table
    from glowplug.core.clock import human_bytes, human_duration

    stock, fast = result["medians"]["stock"], result["medians"]["glowplug"]
    rows = [("", "stock", "glowplug")]
    for title, key, show in (
        ("process start to first prediction", "first_result_ns", human_duration),
        ("a further prediction", "steady_ns", human_duration),
        ("peak memory", "max_rss_bytes", human_bytes),
    ):
        rows.append((title, show(stock[key]), show(fast[key])))
    print(table(rows, indent=""))
    print(
        f"\n{result['times_sooner']:.1f} times sooner (medians of {rounds}, fresh processes in turn, warm page cache)"
    )
    print(f"the answers differ by at most {result['largest_difference']:.1g}")


def _print_more(result: dict[str, Any]) -> None:
    """Show the server and the training program, and what to do with one's own."""
    from glowplug.core.clock import human_duration

    serve, run = result["serve"], result["run"]
    if isinstance(serve, str):
        print(f"\n{serve}")
    else:
        ready, answered = human_duration(serve["ready_ns"]), human_duration(serve["answered_ns"])
        print(
            f"\n`glowplug serve tour=model.glow` was ready after {ready}, and had answered over REST after {answered}"
        )
    stock, first, second = (human_duration(run[f"{kind}_ns"]) for kind in ("stock", "first", "second"))
    print("\n`glowplug run train.py`, process start to the end of the first training step")
    print(f"  stock Python {stock}; under run {first} the first time, {second} from the second time on")
    print(f"  {run['times_sooner']:.1f} times sooner, the loss {'is the same' if run['same_loss'] else 'DIFFERS'}")
    print("\nwith programs and models of yours:\n  glowplug profile train.py\n  glowplug run train.py")
    print("  glowplug pack saved_model_dir -o model.glow")
    print("  python -c 'import glowplug; model = glowplug.load(\"model.glow\"); print(model)'")
    print("  glowplug serve mine=model.glow")
