"""Takes a model's variables back out of a bundle, where they are still in it.

`pack` folds and shares tensors: batch norms go into convolutions, reshapes into kernels, equal tensors are stored
once. A tensor keeps its variable's name then, but no longer its value. What `pack` left alone feeds the node of the
variable itself: only that is used.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from glowplug.bundle import layout
from glowplug.bundle.reader import open_bundle, open_file
from glowplug.core.errors import WeightsError
from glowplug.core.manifest import StoredTensor

from . import saved_model
from .entry import Entry, Plan
from .matching import by_name
from .regions import RegionFile
from .variables import Target

_GRAPH_COUNTER = re.compile(r"_\d+$")  # TensorFlow makes node names unique


def bind(model: Any, targets: tuple[Target, ...], path: Path, files: ExitStack, *, mapped: bool) -> Plan:
    """Match a bundle's tensors with variables by name; refuse a bundle that lacks some of the variables."""
    bundle = open_bundle(path)
    if bundle.manifest.engine == "savedmodel":
        return saved_model.bind(model, targets, bundle.root / "saved_model")
    tensors = [one for one in bundle.manifest.tensors if one.node == one.name]
    weights = bundle.root / layout.WEIGHTS
    if layout.WEIGHTS in bundle.manifest.files:
        open_file(bundle.root, layout.WEIGHTS).close()  # refuses a link out of the bundle
        file = files.enter_context(RegionFile(weights, mapped=mapped))
        found = _by_path(tensors, targets, file)
    else:
        found = {}
    plan = by_name(targets, found)
    absent = [one.variable.path for one in plan.bindings if one.required and one.entry is None]
    if absent:
        raise WeightsError(
            f"the bundle does not hold the variables it was packed from: {len(absent)} of "
            f"{sum(one.required for one in targets)} were folded, merged or have other names",
            seen=", ".join(absent[:4]),
            remedy="load the model's own file, or keep one from train.save_weights(model, 'x.safetensors')",
        )
    return Plan(plan.bindings)


def _by_path(tensors: list[StoredTensor], targets: tuple[Target, ...], file: RegionFile) -> dict[str, Entry]:
    """Find each variable's tensor: one of its own name, or the only one of its name with TensorFlow's counter."""
    exact = {one.name: one for one in tensors}
    counted: dict[str, list[StoredTensor]] = {}
    for one in tensors:
        counted.setdefault(_GRAPH_COUNTER.sub("", one.name), []).append(one)
    found = {}
    for target in targets:
        matches = [exact[target.name]] if target.name in exact else counted.get(target.name, [])
        if len(matches) == 1:
            one = matches[0]
            found[target.name] = file.entry(target.name, one.dtype, one.shape, one.offset)
    return found
