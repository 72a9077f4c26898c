"""Whether a model fits into memory, asked before it is loaded."""

from __future__ import annotations

from pathlib import Path

from glowplug.core.clock import human_bytes
from glowplug.core.errors import ModelError

from .sources import Source

_PRIVATE_BYTES = 75 << 20  # what one worker needs beside the weights
_SAVED_MODEL_FACTOR = 3  # TensorFlow's own loader holds variables, graph and optimised graph


def check_memory(source: Source, instances: int) -> None:
    """Raise `ModelError` when the workers of a model would not fit into what is free."""
    available = available_bytes()
    if available is None:
        return
    size = sum(path.stat().st_size for path in source.path.rglob("*") if path.is_file())
    shared = size if source.kind == "bundle" else size * _SAVED_MODEL_FACTOR * instances
    needed = shared + instances * _PRIVATE_BYTES
    if needed > available:
        raise ModelError(
            "there is not enough memory for this model",
            seen=f"{human_bytes(available)} free, about {human_bytes(needed)} needed",
            remedy="fewer --instances, or a machine with more memory",
        )


def available_bytes() -> int | None:
    """Return what the kernel says can still be used, or `None` where it does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
