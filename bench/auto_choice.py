"""How often `pack --engine auto` chooses what is best: auto_choice.py [SCENARIO ...] [--packs 10] [--whole]

The two bundles between which `pack` chooses are made once, and measured as `pack` does, as often as there would be
packs. What each engine measured in all of them together says which is best by the rule of `convert/choice.py`; a choice
is good if its first prediction is within 5 % of that one's. With `--whole` each time is a whole `glowplug pack`.
`--prepare` makes the bundles and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "scenarios"))

import machine
import run
import sources

from glowplug.bench.contestant import Question
from glowplug.bench.preparation import NotPreparedError, Preparation, Source
from glowplug.convert.choice import Figures, as_record, best, contestant_for, measure
from glowplug.convert.example import make_kept_example

SCENARIOS = ("dense", "resnet50", "mobilenet_v3", "lstm_text")
ENGINES = ("native", "litert")
LIMIT_S = 600.0
_CLOSE = 1.05

Choice = tuple[str, dict[str, Any]]  # the engine, and what was measured


def bundles(name: str) -> tuple[dict[str, Path], Question]:
    """Return the bundles between which `pack` chooses; those that `auto` may not take are none."""
    model = sources.path_of(name)
    scratch, example = make_kept_example(model, run.PREPARED, limit_s=LIMIT_S)
    source = Source(model, example.saved_model, example.signature)
    preparation = Preparation(source, scratch, machine.ENVIRONMENTS, limit_s=LIMIT_S)
    preparation.choose()
    found = {}
    for engine in ENGINES:
        try:
            found[engine] = preparation.form(engine)
        except NotPreparedError as error:
            print(f"{name}: no choice, {engine} cannot take it: {error}", file=sys.stderr)
    if preparation.chosen == "glowplug-native" and not _was_measured(found.get("native")):
        found.pop("litert", None)
    return found, Question(example.signature, example.inputs)


def _was_measured(bundle: Path | None) -> bool:
    """Say whether LiteRT took part when this bundle was chosen."""
    manifest = json.loads((bundle / "bundle.json").read_bytes()) if bundle else {}
    return "failed" not in manifest.get("measured", {}).get("engines", {}).get("litert", {"failed": ""})


def measured(name: str, count: int) -> Iterator[Choice]:
    found, question = bundles(name)
    contestants = [contestant_for(engine, bundle, sys.path, ()) for engine, bundle in found.items()]
    for _ in range(count):
        if len(contestants) < 2:
            yield next(iter(found)), {}
            continue
        rows = measure(contestants, question, "start")
        yield best(rows, "start"), as_record(rows, "start")["engines"]


def packed(name: str, count: int) -> Iterator[Choice]:
    for _ in range(count):
        with tempfile.TemporaryDirectory(prefix="glowplug-bench-") as folder:
            words = ["pack", sources.path_of(name), "-o", f"{folder}/m.glow", "--json"]
            command = [sys.executable, "-m", "glowplug", *words]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        manifest = json.loads(done.stdout)["manifest"]
        yield manifest["engine"], manifest.get("measured", {}).get("engines", {})


def judged(choices: list[Choice]) -> dict[str, Any]:
    chosen, figures = [engine for engine, _ in choices], [one for _, one in choices]
    able = [one for one in figures if len(one) > 1 and not any("failed" in row for row in one.values())]
    if not able:
        return {"chosen": chosen, "figures": figures, "good": len(choices), "best": chosen[0]}
    rows = [
        Figures(engine, *(round(median(one[engine][key] for one in able)) for key in ("first_ns", "steady_ns")))
        for engine in able[0]
    ]
    first = {row.engine: row.first_ns for row in rows}
    right = best(rows, "start")
    good = sum(engine == right or first[engine] <= first[right] * _CLOSE for engine in chosen)
    return {"chosen": chosen, "figures": figures, "good": good, "best": right}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--packs", type=int, default=10)
    parser.add_argument("--whole", action="store_true", help="convert each time, too")
    parser.add_argument("--prepare", action="store_true", help="only build and convert the models")
    args = parser.parse_args()
    machine.prepare()
    results = {}
    for name in args.scenarios or SCENARIOS:
        if args.prepare:
            print(name, *bundles(name)[0], flush=True)
            continue
        results[name] = judged(list((packed if args.whole else measured)(name, args.packs)))
        print(f"{name:<16} best {results[name]['best']}, {results[name]['good']} of {args.packs} good", flush=True)
    if not args.prepare:
        document = {"machine": machine.describe(), "packs": args.packs, "whole": args.whole, "scenarios": results}
        machine.write_result("auto_choice", document, partial=bool(args.scenarios))


if __name__ == "__main__":
    main()
