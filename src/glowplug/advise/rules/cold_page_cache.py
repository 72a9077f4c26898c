"""Importing TensorFlow waited for the disk: its files were not in the page cache."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import run_command, seconds, size
from glowplug.core.profile import Remedy

SYMPTOM = "The import waits for the disk, because the page cache is cold"

_LEAST_NS = 500_000_000
# Waiting alone does not prove it: on a busy machine a process also waits for a CPU.
_LEAST_FAULTS = 500
_LEAST_BYTES = 50 << 20


def find(view: View) -> Iterator[Match]:
    """Compare wall and CPU time of the import where the disk was read."""
    for span in view.imports_of("tensorflow"):
        if span.pid != view.profile.root_pid or "cpu_ns" not in span.attrs:
            continue
        waited_ns = span.duration_ns - int(span.attrs["cpu_ns"])
        faults = int(span.attrs.get("major_faults", 0))
        read_bytes = int(span.attrs.get("read_bytes", 0))
        if waited_ns < _LEAST_NS or (faults < _LEAST_FAULTS and read_bytes < _LEAST_BYTES):
            continue
        yield Match(
            title=(f"The import of TensorFlow waited {seconds(waited_ns)} for the disk ({size(read_bytes)} read)"),
            evidence={
                "import_ns": span.duration_ns,
                "cpu_ns": int(span.attrs["cpu_ns"]),
                "major_faults": faults,
                "read_bytes": read_bytes,
            },
            saves_ns=waited_ns,
            remedy=Remedy(
                text=(
                    "Read the files ahead in order, keep the environment on a local disk, or bake a "
                    "warmed image."
                    " glowplug run records what a start touches and reads it ahead at the next one."
                ),
                command=run_command(view.profile),
            ),
            spans=ids([span]),
        )
