"""Steps of one function: what the first cost, and what one costs once it runs steadily."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from glowplug.core.profile import Span

from .view import View


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of one `tf.function`, Keras function or session within one process."""

    pid: int
    function: str
    mode: str
    first: Span | None
    later: tuple[Span, ...]
    steady_ns: int | None
    count: int

    @property
    def later_ns(self) -> int:
        """Return the time of all steps but the first."""
        return sum(int(span.attrs.get("busy_ns", span.duration_ns)) for span in self.later)


def steps_by_function(view: View) -> list[Steps]:
    """Group the steps of a profile by the function they ran."""
    groups: dict[tuple[int, object, object], list[Span]] = {}
    for span in view.of_kind("step", "steps"):
        groups.setdefault((span.pid, span.attrs.get("function_id"), span.attrs.get("mode")), []).append(span)
    return [_summarise(view, spans) for spans in groups.values()]


def steady_costs(view: View) -> dict[tuple[int, object], int]:
    """Return what a steady step costs, by process and function, for those that ran steadily."""
    groups: dict[tuple[int, object], list[Span]] = {}
    for span in view.of_kind("step", "steps"):
        groups.setdefault((span.pid, span.attrs.get("function_id")), []).append(span)
    summed = {key: _summarise(view, spans).steady_ns for key, spans in groups.items()}
    return {key: steady_ns for key, steady_ns in summed.items() if steady_ns is not None}


def _summarise(view: View, spans: list[Span]) -> Steps:
    first = next((span for span in spans if span.kind == "step" and span.attrs.get("index") == 1), None)
    later = [span for span in spans if span is not first]
    each: list[float] = []
    for span in later:
        count = int(span.attrs.get("count", 1)) if span.kind == "steps" else 1
        if count and not view.inside(span, "trace"):
            each += [int(span.attrs.get("busy_ns", span.duration_ns)) / count] * min(count, 1000)
    count = sum(int(span.attrs.get("count", 1)) if span.kind == "steps" else 1 for span in spans)
    attrs = spans[0].attrs
    return Steps(
        pid=spans[0].pid,
        function=str(attrs.get("function", spans[0].name)),
        mode=str(attrs.get("mode", "")),
        first=first,
        later=tuple(later),
        steady_ns=round(median(each)) if each else None,
        count=count,
    )
