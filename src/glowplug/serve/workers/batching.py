"""The parameters of dynamic batching, as TensorFlow Serving's file gives them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.errors import UsageError
from glowplug.serve.wire.text_config import read_text

PER_MODEL_FILE = "batching_params.pbtxt"  # in a version's folder


@dataclass(frozen=True, slots=True)
class Batching:
    """How calls are joined. `timeout_s` is how long a batch that is not full waits for more."""

    enabled: bool = False
    max_batch_size: int = 1000
    timeout_s: float = 0.0
    max_enqueued_batches: int = 0
    allowed_sizes: tuple[int, ...] = ()

    def padded(self, rows: int) -> int:
        """Return the size that a batch of so many rows is padded to."""
        place = bisect_left(self.allowed_sizes, rows)
        return self.allowed_sizes[place] if place < len(self.allowed_sizes) else rows


def read_batching(path: Path | None) -> Batching:
    """Read `--batching_parameters_file`; without one, TensorFlow Serving's defaults."""
    if path is None:
        return Batching(enabled=True)
    given = read_text(path, "BatchingParameters")

    def number(name: str, default: int, lowest: int) -> int:
        value = int(getattr(given, name).value) if given.HasField(name) else default
        if value < lowest:
            raise UsageError("a batching parameter is out of range", seen=f"{name}: {value}")
        return value

    size = number("max_batch_size", 1000, 1)
    allowed = tuple(given.allowed_batch_sizes)
    if allowed and (list(allowed) != sorted(set(allowed)) or allowed[0] < 1 or allowed[-1] != size):
        raise UsageError(
            "allowed_batch_sizes must rise and end with max_batch_size", seen=f"{list(allowed)} and {size}"
        )
    if given.pad_variable_length_inputs:
        raise UsageError("pad_variable_length_inputs is not supported", remedy="pad on the client's side")
    return Batching(
        True, size, number("batch_timeout_micros", 0, 0) / 1e6, number("max_enqueued_batches", 0, 0), allowed
    )
