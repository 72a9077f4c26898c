"""After its import TensorFlow's process held many more threads than it has CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View
from glowplug.core.profile import Remedy

SYMPTOM = "Importing TensorFlow starts far more threads than there are CPUs"

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def find(view: View) -> Iterator[Match]:
    """Compare the threads right after the import with the CPUs that the process may use."""
    environment = view.profile.environment
    threads = int(environment.get("threads_after_import", 0))
    cpus = int(environment.get("cpu_count", 0))
    if not cpus or threads <= max(2 * cpus, cpus + 8):
        return
    started_with = environment.get("env") or {}
    yield Match(
        title=f"{threads} threads after the import, on {cpus} CPUs",
        evidence={
            "threads_after_import": threads,
            "cpu_count": cpus,
            "settings": {name: started_with.get(name) for name in _SETTINGS},
        },
        remedy=Remedy(
            text=(
                "Limit the thread pools of numpy's linear algebra before the process starts; they "
                "compete with TensorFlow's."
            ),
            code=f"export OPENBLAS_NUM_THREADS={cpus} OMP_NUM_THREADS={cpus}",
        ),
    )
