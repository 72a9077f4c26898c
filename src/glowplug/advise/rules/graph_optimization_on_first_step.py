"""Grappler took a noticeable part of the first step: it optimises the same graph again in every process."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import Match
from glowplug.advise.view import View, ids, total_ns
from glowplug.advise.wording import pack_command, run_command, seconds
from glowplug.core.profile import Remedy, Span

SYMPTOM = "The first step waits for graph optimisation that every process repeats"

_LEAST_NS = 500_000_000
_TRAINING = "train"

_TRAIN_CODE = """\
from glowplug import train
train.enable()  # keeps the optimised graph on disk
# For a run of few steps only; later steps may become slower:
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})"""
_PREDICT_CODE = """\
import glowplug
model = glowplug.load("model.glow")  # packed once: the graph is stored as Grappler left it"""


def find(view: View) -> Iterator[Match]:
    """Add up the graph optimisation inside first steps, by process."""
    for pid, by_step in _first_steps(view).items():
        steps = [step for step, _ in by_step]
        spans = [span for _, within in by_step for span in within]
        cost_ns = total_ns(spans)
        if cost_ns < _LEAST_NS:
            continue
        training = any(step.attrs.get("mode") == _TRAINING for step in steps)
        loaded = next((str(s.attrs["path"]) for s in view.of_kind("load") if s.pid == pid and "path" in s.attrs), None)
        packable = not training and loaded is not None
        passes: dict[str, int] = {}
        for span in spans:
            for each in view.inside(span, "pass"):
                name = str(each.attrs.get("pass", each.name))
                passes[name] = passes.get(name, 0) + each.duration_ns
        yield Match(
            title=f"{seconds(cost_ns)} of the first step is graph optimisation",
            evidence={
                "graph_optimization_ns": cost_ns,
                "first_step_ns": total_ns(steps),
                "runs": sum(int(span.attrs.get("runs", 1)) for span in spans),
                "slowest_passes_ns": dict(sorted(passes.items(), key=lambda item: -item[1])[:5]),
            },
            saves_ns=cost_ns,
            remedy=Remedy(
                text=(
                    "Optimise once and keep the result: pack a model that only predicts, or keep the "
                    "traced and "
                    "optimised training step in the trace cache."
                ),
                code=_PREDICT_CODE if packable else _TRAIN_CODE,
                command=pack_command(loaded) if packable and loaded else run_command(view.profile),
            ),
            spans=ids(spans),
        )


def _first_steps(view: View) -> dict[int, list[tuple[Span, list[Span]]]]:
    """Return first steps by process with the optimisation in them: the costliest for each line and mode.

    A line that runs many first steps has another trouble, a session or a model for each round.
    """
    costliest: dict[tuple[int, object, object], tuple[Span, list[Span]]] = {}
    for step in view.of_kind("step"):
        if step.attrs.get("index") == 1:
            within = view.outermost(view.inside(step, "graph_optimization"))
            key = (step.pid, step.attrs.get("mode"), step.attrs.get("site"))
            if within and (key not in costliest or total_ns(within) > total_ns(costliest[key][1])):
                costliest[key] = (step, within)
    groups: dict[int, list[tuple[Span, list[Span]]]] = {}
    for (pid, _, _), found in costliest.items():
        groups.setdefault(pid, []).append(found)
    return groups
