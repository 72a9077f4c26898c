"""Writes the tables of results under bench/results/ into README.md, each between its markers.

readme_table.py [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import machine

TITLES = {
    "dense": "small dense network",
    "resnet50": "ResNet50",
    "encoder": "BERT-base-sized encoder (110 M parameters)",
}


def first_prediction(document: dict[str, Any]) -> list[str]:
    lines = ["| process start to first prediction | stock TensorFlow | Glowplug | |", "| --- | --- | --- | --- |"]
    for kind, suffix in (("warm", ""), ("cold", ", page cache dropped")):
        for name, one in document.get(kind, {}).items():
            stock, fast = (one["median_ns"][side]["first_ns"] / 1e9 for side in ("stock", "glowplug"))
            lines.append(
                f"| {TITLES[name]}{suffix} | {stock:.2f} s | {fast:.2f} s | **{one['times_sooner']:.1f}x sooner** |"
            )
    where = described(document["machine"])
    return [
        *lines,
        "",
        f"Medians of {document['rounds']} fresh processes each, in turn, {where}; warm page cache unless said.",
    ]


def train_start(document: dict[str, Any]) -> list[str]:
    lines = [
        "| process start to the end of the first step of `fit` | stock Keras | first run | every run after it | |",
        "| --- | --- | --- | --- | --- |",
    ]
    models = document["models"]
    for name, one in models.items():
        stock, first, second = (one["median_ns"][side]["to_step1_ns"] / 1e9 for side in ("stock", "first", "second"))
        sooner = one["second_times_sooner"]
        lines.append(f"| {TITLES[name]} | {stock:.1f} s | {first:.1f} s | {second:.1f} s | **{sooner:.1f}x sooner** |")
    one = next(iter(models.values()))
    where = described(one["machine"])
    return [*lines, "", f"Medians of {len(one['rounds']['stock'])} fresh processes each, in turn, {where}."]


def described(where: dict[str, Any]) -> str:
    tensorflow = where["versions"].get("tensorflow-cpu") or where["versions"]["tensorflow"]
    return f"on {where['cpus']} CPUs with TensorFlow {tensorflow}"


TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "first_prediction": first_prediction,
    "train_start": train_start,
}


def main() -> int:
    readme = machine.ROOT / "README.md"
    text = wanted = readme.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin not in wanted or end not in wanted:
            sys.exit(f"{readme.name} lacks the markers {begin} and {end}")
        document = json.loads((machine.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        before, _, rest = wanted.partition(begin)
        wanted = "\n".join([before + begin, *make(document), end + rest.partition(end)[2]])
    if "--check" in sys.argv[1:]:
        if wanted != text:
            sys.exit("README.md does not show the results under bench/results: run `make docs`")
        return 0
    readme.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
