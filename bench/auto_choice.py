"""How often `pack --engine auto` chooses what is best: auto_choice.py [SCENARIO ...] [--packs 10]

Each scenario is packed several times. What each engine measured in all packs together says which is best by the rule of
`convert/choice.py`; a choice is good if its first prediction is within 5 % of that one's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "scenarios"))

import machine
import sources

from glowplug.convert.choice import Figures, best

_CLOSE = 1.05


def packs(name: str, count: int) -> dict[str, Any]:
    chosen, figures = [], []
    for _ in range(count):
        with tempfile.TemporaryDirectory(prefix="glowplug-bench-") as folder:
            command = [
                sys.executable,
                "-m",
                "glowplug",
                "pack",
                sources.path_of(name),
                "-o",
                f"{folder}/m.glow",
                "--json",
            ]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        manifest = json.loads(done.stdout)["manifest"]
        chosen.append(manifest["engine"])
        figures.append(manifest.get("measured", {}).get("engines", {}))
    able = [one for one in figures if len(one) > 1 and not any("failed" in row for row in one.values())]
    if not able:
        return {"chosen": chosen, "figures": figures, "good": count, "best": chosen[0]}
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
    args = parser.parse_args()
    machine.prepare()
    results = {}
    for name in args.scenarios or ["dense", "resnet50", "mobilenet_v3", "lstm_text"]:
        results[name] = packs(name, args.packs)
        print(f"{name:<16} best {results[name]['best']}, {results[name]['good']} of {args.packs} good", flush=True)
    document = {"machine": machine.describe(), "packs": args.packs, "scenarios": results}
    machine.write_result("auto_choice", document, partial=bool(args.scenarios))


if __name__ == "__main__":
    main()
