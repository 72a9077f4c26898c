"""Several short-lived processes each imported TensorFlow from the start."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.family import RUN_SHARE
from glowplug.advise.match import Match
from glowplug.advise.view import View, covered_ns, ids, total_ns
from glowplug.advise.wording import run_command, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "Each short-lived worker imports TensorFlow anew"

_LEAST_WORKERS = 2
_LEAST_NS = 1_000_000_000
_LEAST_SHARE = 0.2  # of a worker's life; a long-lived worker pays once and that is fine

_CODE = """\
import glowplug
with context.Pool(workers) as pool:      # long-lived workers: one import each, many tasks
    results = pool.map(task, items)
# or let a standby import it once and fork:
glowplug.spawn("package.module:task", item).wait()"""


def find(view: View) -> Iterator[Match]:
    """Report imports in child processes that lived little longer than their import."""
    profile = view.profile
    life_ns = {process.pid: process.end_ns - process.start_ns for process in profile.processes[1:]}
    imports = [
        span
        for span in view.imports_of("tensorflow")
        if span.pid in life_ns and span.duration_ns >= _LEAST_SHARE * life_ns[span.pid]
    ]
    if len(imports) < _LEAST_WORKERS:
        return
    spent_ns = covered_ns(imports)
    saves_ns = spent_ns * (len(imports) - 1) // len(imports)  # one import remains
    if saves_ns < _LEAST_NS:
        return
    run_ns = round(spent_ns * (1 - RUN_SHARE))
    yield Match(
        title=f"{len(imports)} short-lived processes each imported TensorFlow: {seconds(spent_ns)}",
        evidence={
            "workers": len(imports),
            "import_ns": total_ns(imports),
            "wall_ns": spent_ns,
            "with_run_saves_ns": run_ns,
            "median_life_ns": sorted(life_ns[span.pid] for span in imports)[len(imports) // 2],
        },
        saves_ns=saves_ns,
        remedy=Remedy(
            text=(
                "Keep workers alive for many tasks, or fork them from a standby that has imported TensorFlow already"
                " (glowplug.spawn). Without an edit, glowplug run makes the import in each worker about half as long:"
                f" {seconds(run_ns)} less here. A spawned worker is a new interpreter, so it has one."
            ),
            code=_CODE,
            command=run_command(profile) or "glowplug standby start",
        ),
        spans=ids(imports),
    )
