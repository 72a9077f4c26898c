"""Binds the variables of a SavedModel: those that Keras exports, in order, or any others by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from glowplug.core.errors import WeightsError

from . import checkpoint
from .entry import Entry, Plan
from .matching import by_name, by_order
from .variables import LoadableVariable, unique_names, without_counters

_EXPORTED = "variables"
_RANDOM = "seed_generator_state"


def bind(model: Any, targets: tuple[LoadableVariable, ...], path: Path) -> Plan:
    """Match what Keras exported by name or order, and anything else as the checkpoint that it is."""
    prefix = path / "variables" / "variables"
    if not prefix.with_suffix(".index").is_file():
        raise WeightsError("the SavedModel has no variables", seen=path, remedy="export it with its variables")
    entries, graph = checkpoint.read_entries(prefix)
    if graph is None:
        return checkpoint.bind(model, targets, prefix)
    named = _exported(graph, entries)
    if not named:
        return checkpoint.bind(model, targets, prefix)
    return by_exported_names(targets, named)


def by_exported_names(targets: tuple[LoadableVariable, ...], named: dict[str, Entry]) -> Plan:
    """Match the variables of an exported model, given in order: by full name, or by order where the names differ."""
    random = {name for name in named if name.partition("#")[0].endswith(_RANDOM)}
    plan = by_name(targets, named)
    if not set(plan.extra) - random and all(one.entry or not one.required for one in plan.bindings):
        return Plan(plan.bindings)
    # In a subclassed model a variable of TensorFlow has fewer scopes in its name than the variable of Keras around it.
    ordered = by_order(targets, named, list(named), random, place=_own_name)
    return ordered or Plan(plan.bindings, tuple(name for name in plan.extra if name not in random))


def _own_name(name: str) -> str:
    return without_counters(name).rpartition("/")[2]


def _exported(graph: Any, entries: dict[str, Entry]) -> dict[str, Entry]:
    """Return what `model.export` tracked as the model's variables, in order, by the variables' full names."""
    number = next((one.node_id for one in graph.nodes[0].children if one.local_name == _EXPORTED), None)
    if number is None:
        return {}
    listed = sorted(
        ((int(one.local_name), graph.nodes[one.node_id]) for one in graph.nodes[number].children),
        key=lambda one: one[0],
    )
    attributes = [one.attributes[0] for _, one in listed if one.attributes]
    names = unique_names([one.full_name for one in attributes])
    return {name: entries[one.checkpoint_key] for name, one in zip(names, attributes, strict=True)}
