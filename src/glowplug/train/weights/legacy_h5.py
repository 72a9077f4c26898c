"""Binds a legacy `.h5` file, as keras.applications has them: layers in order, and the weights of each in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import h5py

from glowplug.core.errors import WeightsError

from .entry import Binding, Entry, Plan
from .variables import LoadableVariable

_WHOLE_MODEL = "model_weights"
_TOP = "top_level_model_weights"


def is_legacy(root: h5py.File) -> bool:
    """Whether the file names its layers in attributes."""
    return _WHOLE_MODEL in root or any(name.startswith("layer_names") for name in root.attrs)


def bind(model: Any, targets: tuple[LoadableVariable, ...], root: h5py.File, entries: Mapping[str, Entry]) -> Plan:
    """Match in order: the layers that have weights, and in each the trainable weights before the others."""
    prefix = f"{_WHOLE_MODEL}/" if _WHOLE_MODEL in root else ""
    group = root[_WHOLE_MODEL] if prefix else root
    stored = [(name, _strings(group[name], "weight_names")) for name in _strings(group, "layer_names") if name in group]
    stored = [(name, names) for name, names in stored if names]
    layers = [layer for layer in model.layers if layer.weights]
    if len(stored) != len(layers):
        raise WeightsError(
            "the file and the model have different numbers of layers with weights",
            seen=f"{len(stored)} stored, {len(layers)} in {model.name}",
            remedy="build the model they were saved from; the model was not changed",
        )
    pairs: dict[int, Entry | None] = {}
    extra: list[str] = []
    groups = [
        (name, names, layer.trainable_weights + layer.non_trainable_weights)
        for (name, names), layer in zip(stored, layers, strict=True)
    ]
    if _TOP in group:
        own = [one for one in model._trainable_variables + model._non_trainable_variables if _among(one, model.weights)]
        groups.append((_TOP, _strings(group[_TOP], "weight_names"), own))
    for name, names, variables in groups:
        paths = [f"{prefix}{name}/{one}" for one in names]
        extra += paths[len(variables) :]
        for variable, path in zip(variables, paths, strict=False):
            pairs[id(variable)] = entries.get(path)
    bindings = tuple(Binding(one.variable, pairs.get(id(one.variable)), one.required) for one in targets)
    return Plan(bindings, tuple(extra))


def _among(variable: Any, variables: list[Any]) -> bool:
    return any(one is variable for one in variables)


def _strings(group: Any, name: str) -> list[str]:
    """Read a list of names. HDF5 bounds the size of an attribute, so a long list is split over several."""
    if name in group.attrs:
        parts = [name]
    else:
        parts = sorted((one for one in group.attrs if _is_part(one, name)), key=lambda one: int(one[len(name) :]))
    return [one.decode() if isinstance(one, bytes) else str(one) for part in parts for one in group.attrs[part]]


def _is_part(attribute: str, name: str) -> bool:
    return attribute.startswith(name) and attribute[len(name) :].isdigit()
