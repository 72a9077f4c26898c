"""TensorFlow's own part of a start: imports that `glowplug run` and a standby make short, and a bundle does without."""

from __future__ import annotations

from glowplug.core.profile import Span

from .view import View

FAMILY = ("tensorflow", "keras", "tf_keras")

# What is left of such imports, from bench/results/run_start.json: where stock Python takes 2.10 s, `glowplug run` takes
# 0.94 s and a standby 0.10 s.
RUN_SHARE = 0.5
STANDBY_SHARE = 0.05


def family_imports(view: View, pid: int) -> list[Span]:
    """Return the outermost imports of TensorFlow and Keras in a process; what they bring in lies within them."""
    found = [span for span in view.of_kind("module") if span.pid == pid and span.name in FAMILY]
    return [
        span
        for span in found
        if "error" not in span.attrs
        and not any(above.kind == "module" and above.name in FAMILY for above in view.ancestors(span))
    ]


def start_ns(view: View, pid: int) -> int:
    """Return how long a process took to the end of its first step; where it made none, to the end of its program."""
    steps = [span for span in view.of_kind("step") if span.pid == pid and span.attrs.get("index") == 1]
    if steps:
        return steps[0].end_ns
    exits = [span.start_ns for span in view.of_kind("exit") if span.pid == pid]
    return min(exits, default=view.profile.wall_ns)
