"""Several processes each hold their own copy of one model's weights."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_BYTES, Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import bundle_name, pack_command, size
from glowplug.core.profile import Process, Remedy, Span

_MODELS = ("saved_model", "keras", "h5")

SYMPTOM = "Each worker holds its own copy of the same weights"

_CODE = """\
import glowplug
model = glowplug.load("model.glow")  # mapped read-only: every process on the host shares one copy"""


def find(view: View) -> Iterator[Match]:
    """Group loads by path and count the processes."""
    groups: dict[str, dict[int, Span]] = {}
    for span in view.outermost(view.of_kind("load")):
        groups.setdefault(str(span.attrs.get("path", span.name)), {}).setdefault(span.pid, span)
    alive = {process.pid: process for process in view.profile.processes}
    for path, by_pid in groups.items():
        together = _most_at_once([alive[pid] for pid in by_pid if pid in alive], by_pid)
        stored = max(
            int(span.attrs.get("stored_bytes", span.attrs.get("bytes", 0))) - int(span.attrs.get("duplicate_bytes", 0))
            for span in by_pid.values()
        )
        saves_bytes = (together - 1) * stored
        if together < 2 or saves_bytes < WORTH_BYTES:
            continue
        whole = any(span.attrs.get("format") in _MODELS for span in by_pid.values())
        yield Match(
            title=f"{together} processes at once each hold {size(stored)} of {path}",
            evidence={
                "path": path,
                "processes": len(by_pid),
                "at_once": together,
                "weights_bytes": stored,
                "private_bytes": [
                    alive[pid].attrs["private_bytes"]
                    for pid in by_pid
                    if pid in alive and "private_bytes" in alive[pid].attrs
                ],
            },
            saves_bytes=saves_bytes,
            remedy=Remedy(
                text=(
                    "Pack the model and map the bundle: processes on one host then share a single copy of the weights."
                    f" glowplug serve NAME={bundle_name(path)} --instances {together} does that behind one port."
                ),
                code=_CODE,
                command=pack_command(path) if whole else "",
            ),
            spans=ids(by_pid.values()),
        )


def _most_at_once(processes: list[Process], loads: dict[int, Span]) -> int:
    """Return how many of the processes held the model at the same moment."""
    edges = [(loads[process.pid].end_ns, 1) for process in processes]
    edges += [(process.end_ns, -1) for process in processes]
    held = most = 0
    for _, change in sorted(edges):
        held += change
        most = max(most, held)
    return most
