"""Writes the tables of results under bench/results/ into README.md, each between its markers.

readme_table.py [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import machine

TITLES = {
    "dense": "small dense network",
    "resnet50": "ResNet50",
    "encoder": "BERT-base-sized encoder (110 M parameters)",
    "efficientnet_b0": "EfficientNetB0",
    "mobilenet_v3": "MobileNetV3",
    "lstm_text": "LSTM with a vocabulary",
    "jpeg_image": "MobileNetV3 that decodes JPEG",
    "refused": "the encoder, with a step that must be traced",
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


PEERS = ("tensorflow", "keras", "litert", "onnxruntime", "openvino")


def scenarios(document: dict[str, Any]) -> list[str]:
    """The same from the scenarios, with a column for each peer, whoever wins: the soonest is in bold."""
    titles = [next(row["title"] for row in _rows(document) if row["name"] == name) for name in PEERS]
    lines = [
        f"| process start to first prediction | {' | '.join(titles)} | Glowplug | than TensorFlow |",
        f"| --- | {'--- | ' * len(titles)}--- | --- |",
    ]
    for key, suffix in (("first_ns", ""), ("cold_first_ns", ", page cache dropped")):
        for name, one in document["scenarios"].items():
            rows = {row["name"]: row for row in one["rows"]}
            if suffix and not any(row[key] for row in rows.values()):
                continue
            if any(who not in rows or not rows[who][key] for who in ("tensorflow", one["chosen"])):
                sys.exit(f"stock TensorFlow or Glowplug did not answer in scenario {name}: look into its rows")
            lines.append(_scenario(TITLES[name] + suffix, rows, one["chosen"], key))
    by_reason: dict[str, dict[str, None]] = {}
    for row in _rows(document):
        if row["name"] in PEERS and row["outcome"] != "measured":
            by_reason.setdefault(_why(row), {})[row["title"]] = None
    reasons = [f"{_joined(list(titles))} {reason}." for reason, titles in by_reason.items()]
    where = described(document["machine"])
    text = f"Medians of {document['rounds']} fresh processes each, in turn, {where}; warm page cache unless said."
    engines = "In brackets is the engine that `glowplug pack` chose."
    return [*lines, "", " ".join([text, engines, *reasons])]


def _joined(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _scenario(title: str, rows: dict[str, dict[str, Any]], chosen: str, key: str) -> str:
    """Return one line. Who answers something else is not in the race."""
    seconds = {
        name: median(rows[name][key]) / 1e9
        for name in (*PEERS, chosen)
        if rows[name][key] and rows[name]["outcome"] == "measured"
    }
    soonest = min(seconds.values())

    def cell(name: str) -> str:
        if name not in seconds:
            return _NO_FIGURE[rows[name]["outcome"]]
        text = f"{seconds[name]:.2f} s"
        return f"**{text}**" if seconds[name] == soonest else text

    cells = " | ".join(map(cell, PEERS))
    factor = seconds["tensorflow"] / seconds[chosen]
    return f"| {title} | {cells} | {cell(chosen)} ({chosen.removeprefix('glowplug-')}) | **{factor:.1f}x sooner** |"


_NO_FIGURE = {"differs": "other answers", "absent": "not installed", "failed": "fails", "measured": "not measured"}


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for one in document["scenarios"].values() for row in one["rows"]]


def _why(row: dict[str, Any]) -> str:
    return {
        "differs": "answers something else for some of them",
        "absent": "was not installed",
        "failed": "cannot run some of them",
    }[row["outcome"]]


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


def run_start(document: dict[str, Any]) -> list[str]:
    layer = read("standby_start")["first_lines"]
    lines = [
        "| process start to | stock Python | `glowplug run` | from a standby |",
        "| --- | --- | --- | --- |",
        _program("a first Keras layer called", document["import"], layer["standby_ns"], layer["times_sooner"]),
    ]
    for name in ("encoder", "resnet50"):
        warm = read(f"standby_train_{name}")
        title = f"the end of the first step of `fit`, {TITLES[name]}, second run"
        lines.append(_program(title, document[name], warm["standby_s"] * 1e9, warm["times_sooner"]))
    where = described(document["import"]["machine"])
    return [*lines, "", f"Medians of fresh processes, {where}. Each factor is against stock in turns in the same run."]


def _program(title: str, one: dict[str, Any], standby_ns: float, standby_sooner: float) -> str:
    stock, fast = (one["median_ns"][side] / 1e9 for side in ("stock", "glowplug"))
    digits = 1 if stock > 10 else 2
    return (
        f"| {title} | {stock:.{digits}f} s | {fast:.{digits}f} s, **{one['times_sooner']:.1f}x sooner** "
        f"| {standby_ns / 1e9:.{digits}f} s, **{standby_sooner:.1f}x sooner** |"
    )


def serve_ready(document: dict[str, Any]) -> list[str]:
    ours, theirs, load = document["median"]["glowplug"], document["median"]["fastapi_keras"], read("serve_throughput")
    rest, grpc, batched, peer = (load["median"][side] for side in ("rest", "grpc", "grpc_batching", "fastapi_keras"))
    where = described(document["machine"])
    return [
        "| | FastAPI + Keras | `glowplug serve` |",
        "| --- | --- | --- |",
        f"| {document['instances']} workers with {TITLES[document['model']]}: until all are warm | "
        f"{theirs['ready_s']:.1f} s | {ours['ready_s']:.1f} s |",
        f"| their memory | {theirs['pss_bytes'] / 1e6:,.0f} MB | {ours['pss_bytes'] / 1e6:,.0f} MB |",
        f"| {TITLES[load['model']]}, {load['workers']} workers, REST: requests a second, p99 | "
        f"{_rate(peer)} | {_rate(rest)} |",
        f"| gRPC | | {_rate(grpc)} |",
        f"| gRPC with batching | | {_rate(batched)} |",
        "",
        f"Medians, in turns, {where}, which the servers share with the load.",
    ]


def serve_peers(document: dict[str, Any]) -> list[str]:
    what = f"{TITLES[document['model']]}, {document['workers']} workers, REST"
    lines = [f"| {what} | until ready | memory | requests a second, p99 |", "| --- | --- | --- | --- |"]
    for side, title in SERVERS.items():
        one = document["median"].get(side)
        if one is not None:
            memory = f"{one['pss_bytes'] / 1e6:,.0f} MB"
            lines.append(f"| {title} | {one['ready_s']:.1f} s | {memory} | {_rate(one)} |")
    where = described(document["machine"])
    return [
        *lines,
        "",
        f"Medians of {document['rounds']} rounds, in turns, {where}, which the servers share with the load.",
    ]


def _rate(one: dict[str, Any]) -> str:
    return f"{one['per_second']:,.0f}, {one['p99_ms']:.0f} ms"


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((machine.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return document


def described(where: dict[str, Any]) -> str:
    tensorflow = where["versions"].get("tensorflow-cpu") or where["versions"]["tensorflow"]
    return f"on {where['cpus']} CPUs with TensorFlow {tensorflow}"


SERVERS = {
    "glowplug": "`glowplug serve`",
    "fastapi_litert": "FastAPI with LiteRT",
    "fastapi_keras": "FastAPI with Keras",
    "bentoml_keras": "BentoML with Keras",
    "ray_keras": "Ray Serve with Keras",
}

TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "first_prediction": first_prediction,
    "run_start": run_start,
    "serve_ready": serve_ready,
    "serve_peers": serve_peers,
    "train_start": train_start,
}


def main() -> int:
    readme = machine.ROOT / "README.md"
    text = wanted = readme.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin not in wanted or end not in wanted:
            sys.exit(f"{readme.name} lacks the markers {begin} and {end}")
        before, _, rest = wanted.partition(begin)
        if name == "first_prediction" and (machine.RESULTS / "scenarios.json").exists():
            body = scenarios(read("scenarios"))
        else:
            body = make(read(name))
        wanted = "\n".join([before + begin, *body, end + rest.partition(end)[2]])
    if "--check" in sys.argv[1:]:
        if wanted != text:
            sys.exit("README.md does not show the results under bench/results: run `make docs`")
        return 0
    readme.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
