"""The machine and the versions behind a result, and the file that keeps it."""

from __future__ import annotations

import compileall
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
# Models, bundles and what was converted, kept from run to run. Several checkouts may share one.
CACHE = Path(os.environ.get("GLOWPLUG_BENCH_CACHE") or ROOT / "bench" / ".cache").absolute()
# Environments of the peers, as `make peers` makes them.
ENVIRONMENTS = Path(os.environ.get("GLOWPLUG_BENCH_ENVIRONMENTS") or ROOT / ".venvs").absolute()


def prepare() -> None:
    """Compile the package, as an installation does: else each start of ours would compile it anew."""
    compileall.compile_dir(ROOT / "src", quiet=1)


def run_quietly(command: list[Any]) -> str:
    """Run a Python script with these arguments; return its last line, and show its stderr only if it fails.

    TensorFlow greets on stderr at every start.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stderr}{command[0]} failed with exit code {done.returncode}")
    return done.stdout.splitlines()[-1]


def describe() -> dict[str, Any]:
    """Return what a reader of a result must know about where it was measured."""
    return {
        "processor": _from("/proc/cpuinfo", "model name") or platform.processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": int((_from("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) * 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version for name in _PACKAGES if (version := _version(name)) is not None},
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": os.getloadavg(),
    }


def write_result(name: str, document: dict[str, Any], *, partial: bool) -> None:
    """Write bench/results/NAME.json, or a file below the cache where only some of the models were measured."""
    folder = CACHE / "results" if partial else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    text = json.dumps(document, indent=1).replace(
        f"{ROOT}/", ""
    )  # errors of others name the files that they could not read
    path.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {path}", file=sys.stderr)


_PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "numpy")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _from(path: str, key: str) -> str | None:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), None)
