"""Facts about the machine and the process that a profile carries beside its spans."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from glowplug.core.disclosure import disclosed_variables
from glowplug.core.profile import Span

from .events import OPS, Image
from .launch import Launched

_PREFIXES = ("TF_", "KERAS_", "XLA_", "OMP_", "OPENBLAS_", "MKL_", "MALLOC_", "PYTHON", "CUDA_VISIBLE_DEVICES")


def describe_environment(
    launched: Launched, images: Sequence[Image], spans: Sequence[Span], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the `environment` of a profile."""
    roots = [image for image in images if image.pid == launched.pid]
    described: dict[str, Any] = {
        "platform": platform.platform(),
        "cpu_count": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "env": disclosed_variables(
            {name: value for name, value in sorted(environment.items()) if name.startswith(_PREFIXES)}
        ),
        "major_faults": launched.major_faults,
        "minor_faults": launched.minor_faults,
        "read_bytes": max((value for _, value in launched.samples.series.get("read_bytes", ())), default=0),
        "cpu_ns": launched.cpu_ns,
        "peak_rss_bytes": launched.peak_rss_bytes,
    }
    for image in roots[-1:]:
        for key in ("python", "executable", "modules", "threads_after_import", "keras_backend"):
            value = image.fact(key)
            if value is not None:
                described[key] = value
    modules = [span for span in spans if span.kind == "module" and span.pid == launched.pid]
    by_id = {span.id: span for span in spans}
    described["versions"] = {span.name: span.attrs["version"] for span in modules if "version" in span.attrs}
    for name in ("tensorflow", "keras"):
        first = next((span for span in modules if span.name == name and "error" not in span.attrs), None)
        if first is not None:
            described[f"{name}_importer"] = _importer(first, by_id)
    added: Counter[str] = Counter()
    for image in roots:
        for event in image.events:
            if event[0] == OPS:
                added[event[2]] += event[3]
    described["graph_ops_added"] = dict(added.most_common(50))
    used = any(image.fact("runtime_started") for image in images)
    described["runtime_used"] = bool(used)
    return described


def _importer(span: Span, by_id: Mapping[int, Span]) -> dict[str, Any]:
    """Who asked for a module first: the module, the line, and the chain of imports from the program down to it."""
    chain = [span.name]
    parent = span.parent
    while parent is not None:
        above = by_id[parent]
        if above.kind == "module":
            chain.append(above.name)
        parent = above.parent
    importer = {"module": span.attrs.get("importer", "__main__"), "chain": chain[::-1]}
    if "site" in span.attrs:
        importer["site"] = span.attrs["site"]
    return importer
