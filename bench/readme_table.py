"""Writes the table of bench/results/first_prediction.json into README.md, between its markers.

readme_table.py [--check]
"""

from __future__ import annotations

import json
import sys
from typing import Any

import machine

TITLES = {
    "dense": "small dense network",
    "resnet50": "ResNet50",
    "encoder": "BERT-base-sized encoder (110 M parameters)",
}
BEGIN, END = "<!-- first-prediction:begin -->", "<!-- first-prediction:end -->"


def table(document: dict[str, Any]) -> str:
    where, versions = document["machine"], document["machine"]["versions"]
    tensorflow = versions.get("tensorflow-cpu") or versions["tensorflow"]
    lines = [
        "| process start to first prediction | stock TensorFlow | Glowplug | |",
        "| --- | --- | --- | --- |",
    ]
    for kind, suffix in (("warm", ""), ("cold", ", page cache dropped")):
        for name, one in document.get(kind, {}).items():
            stock, fast = (one["median_ns"][side]["first_ns"] / 1e9 for side in ("stock", "glowplug"))
            lines.append(
                f"| {TITLES[name]}{suffix} | {stock:.2f} s | {fast:.2f} s | **{one['times_sooner']:.1f}x sooner** |"
            )
    lines += [
        "",
        f"Medians of {document['rounds']} fresh processes each, in turn, on {where['cpus']} CPUs with TensorFlow "
        f"{tensorflow}; warm page cache unless said. Made by `make bench`.",
    ]
    return "\n".join(lines)


def main() -> int:
    readme = machine.ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{readme.name} lacks the markers {BEGIN} and {END}")
    document = json.loads((machine.RESULTS / "first_prediction.json").read_text(encoding="utf-8"))
    wanted = f"{before}{BEGIN}\n{table(document)}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if wanted != text:
            sys.exit("README.md does not show bench/results/first_prediction.json: run `make docs`")
        return 0
    readme.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
