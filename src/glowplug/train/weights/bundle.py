"""Takes a model's variables back out of a bundle, where they are still in it.

`pack` folds tensors: batch norms go into convolutions. What it only reshaped or shared is listed in the manifest's
`variables`, and with `keep_variables` so is the rest.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from glowplug.bundle import layout
from glowplug.bundle.reader import open_bundle
from glowplug.core.errors import WeightsError
from glowplug.core.manifest import Manifest

from . import saved_model
from .entry import Entry, Plan
from .regions import RegionFile
from .variables import LoadableVariable, unique_names


def bind(model: Any, targets: tuple[LoadableVariable, ...], path: Path, files: ExitStack, *, mapped: bool) -> Plan:
    """Match a bundle's variables with the model's; refuse a bundle that lacks some of them."""
    bundle = open_bundle(path)
    if bundle.manifest.engine == "savedmodel":
        return saved_model.bind(model, targets, bundle.root / "saved_model")
    named: dict[str, Entry] = {}
    if bundle.manifest.variables:
        bundle.open_file(layout.WEIGHTS).close()  # refuses a link out of the bundle
        file = files.enter_context(RegionFile(Path(bundle.folder.path, layout.WEIGHTS), mapped=mapped))
        named = _named(bundle.manifest, file)
    plan = saved_model.by_exported_names(targets, named)
    absent = [one.variable.path for one in plan.bindings if one.required and one.entry is None]
    if absent:
        raise WeightsError(
            f"the bundle does not hold the variables it was packed from: {len(absent)} of "
            f"{sum(one.required for one in targets)} were folded into others or have other names",
            seen=", ".join(absent[:4]),
            remedy="pack it with --engine native --keep-variables, or load the model's own file",
        )
    return plan


def _named(manifest: Manifest, file: RegionFile) -> dict[str, Entry]:
    names = unique_names([one.name for one in manifest.variables])
    found = {}
    for name, one in zip(names, manifest.variables, strict=True):
        tensor = manifest.tensors[one.tensor]
        found[name] = file.entry(name, tensor.dtype, one.shape, tensor.offset)
    return found
