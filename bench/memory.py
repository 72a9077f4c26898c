"""Memory of processes that hold a model: memory.py [MODEL ...]

One process alone, then two at once, from /proc/PID/smaps_rollup and, for the mapped weights, /proc/PID/smaps. What
only one process maps counts as its own even if it is a clean page of a file, so the private memory of a plain process
is read while a second one runs; private dirty memory is the same either way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bundles
import machine
import models

HOLD = Path(__file__).parent / "scripts" / "hold.py"


class Holder:
    """A process that holds a model; leaving the block ends it."""

    def __init__(self, name: str) -> None:
        shape, dtype = models.INPUTS[name]
        command = [sys.executable, HOLD, bundles.bundle(name), ",".join(map(str, shape)), dtype]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Holder:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            sys.exit("the process that holds the model failed")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def memory(self) -> dict[str, int]:
        folder = Path("/proc", str(self._process.pid))
        whole = add_up((folder / "smaps_rollup").read_text())
        weights = add_up(*of_file((folder / "smaps").read_text(), "weights.bin"))
        return {
            "rss_bytes": whole["Rss"],
            "pss_bytes": whole["Pss"],
            "private_bytes": whole["Private_Clean"] + whole["Private_Dirty"],
            "private_dirty_bytes": whole["Private_Dirty"],
            "weights_rss_bytes": weights.get("Rss", 0),
            "weights_pss_bytes": weights.get("Pss", 0),
        }


def add_up(*texts: str) -> dict[str, int]:
    """Return the sum of each field, in bytes."""
    total: dict[str, int] = {}
    for text in texts:
        for line in text.splitlines():
            key, _, value = line.partition(":")
            if value.endswith(" kB"):
                total[key] = total.get(key, 0) + int(value.split()[0]) * 1024
    return total


def of_file(smaps: str, name: str) -> list[str]:
    """Return the mappings of files of that name."""
    mappings: list[list[str]] = []
    for line in smaps.splitlines():
        if not line.split()[0].endswith(":"):
            mappings.append([])
        mappings[-1].append(line)
    return ["\n".join(mapping) for mapping in mappings if mapping[0].endswith(f"/{name}")]


def main() -> None:
    machine.prepare()
    results: dict[str, Any] = {}
    for name in sys.argv[1:] or ["resnet50"]:
        bundles.bundle(name)
        os.sync()  # pages of a file just written count as dirty until they are on disk
        with Holder(name) as first:
            alone = first.memory()
            with Holder(name) as second:
                results[name] = {"alone": alone, "two": [first.memory(), second.memory()]}
        two = results[name]["two"][1]
        print(
            f"{name}: {two['private_bytes'] / 1e6:.0f} MB private to a process; weights "
            f"{two['weights_rss_bytes'] / 1e6:.0f} MB, of which {two['weights_pss_bytes'] / 1e6:.0f} MB are its share"
        )
    machine.write_result("memory", {"machine": machine.describe(), "models": results}, partial=len(sys.argv) > 1)


if __name__ == "__main__":
    main()
