"""What it costs that a function was traced again, by the reason TensorFlow had for it."""

from __future__ import annotations

from dataclasses import dataclass

from glowplug.core.profile import Span

from .steps import steady_costs
from .view import View, total_ns
from .wording import short


@dataclass(frozen=True, slots=True)
class Retraced:
    """A function that was traced again: the repeated traces, and the time that went into them."""

    function: str
    pid: int
    traces: tuple[Span, ...]
    cost_ns: int

    @property
    def place(self) -> str | None:
        """Where the function is defined, as `file:line`."""
        attrs = self.traces[0].attrs
        return f"{attrs['file']}:{attrs['line']}" if "file" in attrs and "line" in attrs else None

    @property
    def differences(self) -> list[str]:
        """What changed, for the first few traces."""
        return [str(span.attrs["differs"]) for span in self.traces if "differs" in span.attrs][:5]


def retraced(view: View, reason: str) -> list[Retraced]:
    """Return the functions that were traced again for a reason, the costliest first."""
    groups: dict[tuple[int, object], list[Span]] = {}
    for span in view.outermost(view.of_kind("trace")):
        if span.attrs.get("reason") == reason:
            groups.setdefault((span.pid, span.attrs.get("function_id")), []).append(span)
    found = [
        Retraced(short(spans[0].attrs.get("function", spans[0].name)), pid, tuple(spans), cost_ns(view, spans))
        for (pid, _), spans in groups.items()
    ]
    return sorted(found, key=lambda each: -each.cost_ns)


def cost_ns(view: View, traces: list[Span]) -> int:
    """Return what traces cost: the steps they happened in, less what those steps take without a trace.

    A trace is followed by placing, graph optimisation and perhaps compilation, all within the same step.
    Where a trace lies in no step, its own duration is all that is known.
    """
    steady = steady_costs(view)
    steps: dict[int, tuple[Span, list[Span]]] = {}
    cost = 0
    for trace in traces:
        step = view.enclosing(trace, "step")
        if step is None:
            cost += trace.duration_ns
        else:
            steps.setdefault(step.id, (step, []))[1].append(trace)
    for step, within in steps.values():
        without = steady.get((step.pid, step.attrs.get("function_id")), 0)
        cost += max(total_ns(within), step.duration_ns - without)
    return cost
