"""Whether a model fits into memory, asked before it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from glowplug.core.clock import human_bytes
from glowplug.core.errors import ModelError

from .sources import Source

_PRIVATE_BYTES = 75 << 20  # what one worker needs beside the weights
# TensorFlow's own loader holds variables, graph and optimised graph; LiteRT the weights as they are and arranged
_PRIVATE_FACTORS = {"saved_model": 3, "tflite": 2}


def check_memory(source: Source, instances: int) -> None:
    """Raise `ModelError` when the workers of a model would not fit into what is free."""
    available = available_bytes()
    if available is None:
        return
    size = sum(path.stat().st_size for path in source.path.rglob("*") if path.is_file())
    factor = _PRIVATE_FACTORS.get(source.kind)
    shared = size if factor is None else size * factor * instances
    needed = shared + instances * _PRIVATE_BYTES
    if needed > available:
        raise ModelError(
            "there is not enough memory for this model",
            seen=f"{human_bytes(available)} free, about {human_bytes(needed)} needed",
            remedy="fewer --instances, or a machine with more memory",
        )


def available_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return what can still be used of the machine's memory and of the container's; `None` where nobody says."""
    found = [_of_machine(meminfo)]
    for (limit, used), folder, cache in (
        (("memory.max", "memory.current"), cgroup, "inactive_file"),
        (("memory.limit_in_bytes", "memory.usage_in_bytes"), cgroup / "memory", "total_inactive_file"),
    ):
        found.append(_of_group(folder / limit, folder / used, folder / "memory.stat", cache))
    return min((one for one in found if one is not None), default=None)


def _of_machine(meminfo: Path) -> int | None:
    for name, value in _pairs(meminfo):
        if name == "MemAvailable:":
            return value * 1024
    return None


def _of_group(limit: Path, used: Path, stat: Path, cache: str) -> int | None:
    """Return a control group's limit less what it uses; pages of files that nobody needs now count as free."""
    try:
        whole, taken = int(limit.read_text()), int(used.read_text())
    except (OSError, ValueError):  # there is no such group, or it has no limit
        return None
    return max(0, whole - taken + dict(_pairs(stat)).get(cache, 0))


def _pairs(path: Path) -> Iterator[tuple[str, int]]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        name, value, *_ = [*line.split(), "", ""]
        if value.isdigit():
            yield name, int(value)
