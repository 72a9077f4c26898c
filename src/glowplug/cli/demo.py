"""`glowplug demo`: builds a model, profiles a stock start, packs it, and starts it both ways in fresh processes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glowplug.cli.options import count

if TYPE_CHECKING:
    from glowplug.core.profile import Profile

NAME = "demo"
HELP = "a tour: stock TensorFlow against Glowplug on a model it builds itself"
EXAMPLE = """
glowplug demo
glowplug demo --rounds 5 --keep tour
"""

_LARGEST_DIFFERENCE = 1e-5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("--rounds", metavar="N", type=count, default=3, help="starts of each kind (default 3)")
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the model, the bundle and the scripts in this new directory"
    )


def run(args: argparse.Namespace) -> int:
    """Take the tour; exit code 1 if the two ways give different answers."""
    import tempfile

    from glowplug.core.disk.files import new_directory
    from glowplug.core.errors import UsageError
    from glowplug.runtime.library import find_directory

    if not args.rounds:
        raise UsageError("a tour has at least one round", seen=args.rounds)
    find_directory()  # before anything is made: without TensorFlow there is nothing to show
    if args.keep is None:
        with tempfile.TemporaryDirectory(prefix="glowplug-demo-") as scratch:
            return _tour(Path(scratch), args)
    with new_directory(Path(args.keep)) as directory:
        return _tour(directory, args)


def _tour(directory: Path, args: argparse.Namespace) -> int:
    from glowplug.cli.output import Stages, note, print_json
    from glowplug.cli.tour import SCRIPTS
    from glowplug.core.profile_json import read_profile

    for name, text in SCRIPTS.items():
        (directory / name).write_text(text, encoding="utf-8")
    rounds: dict[str, list[dict[str, Any]]] = {"stock": [], "glowplug": []}
    with Stages() as stages:
        stages("build a small model")
        _run(directory, "build_model.py", "saved_model")
        stages("glowplug profile")
        _run(directory, "-m", "glowplug", "profile", "-o", "stock.json", "stock.py", "saved_model")
        stages("glowplug pack")
        _run(directory, "-m", "glowplug", "pack", "saved_model", "-o", "model.glow")
        for number in range(args.rounds):
            for kind, command in (
                ("stock", ("stock.py", "saved_model")),
                ("glowplug", ("fast.py", "model.glow")),
            ):
                stages(f"round {number + 1}: {kind}")
                rounds[kind].append(_start(directory, command))
    profile = read_profile(directory / "stock.json")
    result = {**_result(rounds), "stock_phases_ns": dict(profile.phases)}
    if args.json:
        print_json(result)
    else:
        _print_profile(profile)
        _print(result, args.rounds)
    if args.keep:
        note(f"kept in {args.keep}: run `python stock.py saved_model` and `python fast.py model.glow` there")
    return 0 if result["largest_difference"] <= _LARGEST_DIFFERENCE else 1


def _start(directory: Path, command: tuple[str, ...]) -> dict[str, Any]:
    """Run a start in a fresh process; `first_result_ns` counts from just before the process was made."""
    import json
    import time

    began = time.monotonic_ns()
    record: dict[str, Any] = json.loads(_run(directory, *command).splitlines()[-1])
    record["first_result_ns"] = record.pop("at_ns") - began
    return record


def _run(directory: Path, *arguments: str) -> str:
    import os
    import subprocess
    import sys

    from glowplug.core.errors import RuntimeFailure

    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise RuntimeFailure(
            f"a step of the tour failed ({' '.join(arguments)})", seen=last, remedy="run glowplug doctor"
        )
    return done.stdout


def _result(rounds: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    from statistics import median

    answers = [record.pop("answer") for records in rounds.values() for record in records]
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
    """Show where a stock start went, its measuring loop included."""
    import sys

    from glowplug.report.terminal import print_lines
    from glowplug.report.waterfall import waterfall_lines

    print("a stock start, as `glowplug profile` sees it")
    print_lines(waterfall_lines(profile, 80), sys.stdout)
    print()


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
    print("\nwith a model of yours:\n  glowplug pack saved_model_dir -o model.glow")
    print("  python -c 'import glowplug; model = glowplug.load(\"model.glow\"); print(model)'")
