"""Getting a model with its weights, stock Keras against Glowplug: train_weights.py [--rounds N] [MODEL ...]

Fresh processes, interleaved, page cache warm. Timed from after the imports to the model being there, and to every
weight having been read once. The sums of the weights must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine
import models

SCRIPT = Path(__file__).parent / "scripts" / "weights.py"
WAYS = (
    ("load_model", ".keras"),
    ("build", ".weights.h5"),
    ("glowplug", ".glow"),
    ("glowplug", ".safetensors"),
    ("glowplug", ".keras"),
    ("glowplug", ".weights.h5"),
)


def files(name: str) -> Path:
    """Return the stem of the files of a model, written in a process of its own where they are missing."""
    stem = models.CACHE / name
    if not all(stem.with_name(f"{name}{suffix}").exists() for _, suffix in WAYS):
        subprocess.run([sys.executable, __file__, "--write", name], check=True)
    return stem


def write(name: str) -> None:
    sys.path.insert(0, str(machine.ROOT / "src"))
    import keras

    import glowplug
    from glowplug import train

    models.CACHE.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(1)
    model = models.BUILDERS[name]()
    models.unsettle(model)
    train.save_weights(model, models.CACHE / f"{name}.safetensors", force=True)
    model.save_weights(models.CACHE / f"{name}.weights.h5", overwrite=True)
    model.save(models.CACHE / f"{name}.keras", overwrite=True)
    glowplug.pack(model, models.CACHE / f"{name}.glow", engine="native", keep_variables=True, force=True)
    os.sync()


def measure(name: str, rounds: int) -> dict[str, Any]:
    stem = files(name)
    runs: dict[str, list[dict[str, Any]]] = {f"{way} {suffix}": [] for way, suffix in WAYS}
    for number in range(rounds + 1):
        for way, suffix in WAYS:
            one = json.loads(machine.run_quietly([SCRIPT, name, way, stem.with_name(f"{name}{suffix}")]))
            if number:  # the first round warms the page cache
                runs[f"{way} {suffix}"].append(one)
    reference = runs["load_model .keras"][0]["sums"]
    for label, several in runs.items():
        for one in several:
            if one.pop("sums") != reference:
                sys.exit(f"{label} gave other weights")
    medians = {
        label: {key: statistics.median(one[key] for one in several) for key in several[0]}
        for label, several in runs.items()
    }
    return {"rounds": rounds, "medians": medians, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    if arguments.write:
        write(*arguments.models)
        return
    machine.prepare()
    results = {}
    for name in arguments.models or ["encoder"]:
        one = results[name] = measure(name, arguments.rounds)
        stock = one["medians"]["load_model .keras"]
        for label, median in one["medians"].items():
            print(
                f"{name}: {label}: {median['loaded_ns'] / 1e9:.2f} s loaded "
                f"({stock['loaded_ns'] / median['loaded_ns']:.1f}x), {median['touched_ns'] / 1e9:.2f} s read "
                f"({stock['touched_ns'] / median['touched_ns']:.1f}x), peak {median['max_rss_bytes'] / 1e6:.0f} MB"
            )
    result = {"machine": machine.describe(), "models": results}
    machine.write_result("train_weights", result, partial=bool(arguments.models))


if __name__ == "__main__":
    main()
