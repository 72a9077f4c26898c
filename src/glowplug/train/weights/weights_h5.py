"""Binds a Keras 3 `.weights.h5` file, also the one inside a `.keras` file, by places in the model's structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .entry import Binding, Entry, Plan
from .structure import places
from .variables import LoadableVariable

_OLDER = "_layer_checkpoint_dependencies"  # what Keras 2.13 called `layers`
_NOT_WEIGHTS = ("optimizer/", "_optimizer/", "_metrics/", "_loss_tracker/", "_compile_metrics/", "_compile_loss/")


def bind(model: Any, targets: tuple[LoadableVariable, ...], entries: Mapping[str, Entry]) -> Plan:
    """Match datasets with variables. The state of optimizers and metrics is left alone."""
    older = any(name.startswith(f"{_OLDER}/") for name in entries)
    found, others = places(model)
    homes = {id(one.variable): _older(one.path) if older else one.path for one in found}
    bindings = []
    for one in targets:
        home = homes.get(id(one.variable))
        bindings.append(Binding(one.variable, entries.get(home) if home else None, one.required))
    used = {one.entry.name for one in bindings if one.entry}
    extra = (name for name in entries if name not in used and not name.startswith(_NOT_WEIGHTS + others))
    return Plan(tuple(bindings), tuple(extra))


def _older(path: str) -> str:
    return path.replace("layers", _OLDER)
