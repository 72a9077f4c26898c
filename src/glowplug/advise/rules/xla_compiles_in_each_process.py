"""XLA compiled the graph, and nothing keeps the result for the next process."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import run_command, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "XLA compiles the same program in every process"

_LEAST_NS = 1_000_000_000
_FLAG = "tf_xla_persistent_cache_directory"


def find(view: View) -> Iterator[Match]:
    """Report long compilations of a run without a persistent cache."""
    started_with = view.profile.environment.get("env") or {}
    if _FLAG in str(started_with.get("TF_XLA_FLAGS", "")):
        return
    spans = view.outermost(view.of_kind("xla_compile"))
    compile_ns = total_ns(spans)
    if compile_ns < _LEAST_NS:
        return
    yield Match(
        title=f"XLA compiled for {seconds(compile_ns)}, and the result is thrown away",
        evidence={
            "xla_compile_ns": compile_ns,
            "compilations": sum(int(span.attrs.get("compilations", 1)) for span in spans),
            "TF_XLA_FLAGS": started_with.get("TF_XLA_FLAGS"),
        },
        saves_ns=compile_ns,
        remedy=Remedy(
            text="Keep compiled programs on disk; tracing and lowering are still paid in each process.",
            code='export TF_XLA_FLAGS="--tf_xla_persistent_cache_directory=$HOME/.cache/tf-xla"',
            command=run_command(view.profile),
        ),
        spans=ids(spans),
    )
