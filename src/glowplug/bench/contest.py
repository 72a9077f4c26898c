"""One benchmark of one model, from its source to all rows."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from glowplug.core.benchmark import Benchmark, Row
from glowplug.core.version import VERSION

from .contestant import Contestant, Question
from .peers import GLOWPLUG, PEERS, STOCK
from .preparation import Preparation, Source, disk_bytes, installed
from .rounds import Plan, Progress, measure


def run(
    source: Source,
    question: Question,
    *,
    names: Sequence[str],
    plan: Plan,
    scratch: Path,
    environments: Path,
    progress: Progress,
) -> Benchmark:
    """Prepare the model for each of the named peers, measure those that can answer, and return all rows in order."""
    peers = [peer for peer in PEERS if peer.name in names]
    preparation = Preparation(source, scratch, environments, limit_s=plan.limit_s)
    if any(peer.name.startswith(GLOWPLUG) for peer in peers):
        progress("pack, the engine chosen by measurement")
        preparation.choose()
    prepared: dict[str, Contestant | Row] = {}
    for peer in peers:
        progress(f"prepare for {peer.title}")
        prepared[peer.name] = preparation.contestant(peer)
    contestants = [one for one in prepared.values() if isinstance(one, Contestant)]
    measured = {row.name: row for row in measure(contestants, question, plan, progress, reference=STOCK)}
    progress("look at what is installed")
    rows = []
    for name, one in prepared.items():
        if isinstance(one, Row):
            rows.append(one)
            continue
        size, versions = installed(one.python, one.distributions)
        rows.append(replace(measured[name], disk_bytes=disk_bytes(one.model), install_bytes=size, versions=versions))
    return Benchmark(
        model=source.path.name,
        rows=tuple(rows),
        repeats=plan.repeats,
        machine=describe_machine(),
        chosen=preparation.chosen if preparation.chosen in prepared else "",
        signature=question.signature,
        inputs={one["name"]: f"{one['dtype']}{one['shape']}" for one in question.inputs},
    )


def describe_machine() -> dict[str, Any]:
    """Return what a reader of the figures must know about where they come from."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "glowplug": VERSION,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": list(os.getloadavg()),
    }


def _field(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in found if name.strip() == key), "")
