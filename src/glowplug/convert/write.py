"""Writes converted models into bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.bundle import allowlist, layout
from glowplug.bundle.warmup import Request
from glowplug.bundle.writer import BundleWriter
from glowplug.core.dtypes import BY_CODE
from glowplug.core.manifest import Asset, InitStep, Port, Signature
from glowplug.runtime.fingerprint import fingerprint
from glowplug.runtime.library import open_library
from glowplug.runtime.oplibrary import custom_ops

from .contents import add_warmup, provenance
from .native import NativeModel
from .source.kept_variables import read_variables
from .source.saved_model import SourceSignature
from .source.sources import Located


def write_native(
    directory: Path,
    model: NativeModel,
    source: Located,
    requests: Sequence[Request],
    op_libraries: Sequence[str],
    *,
    keep_variables: bool,
) -> None:
    """Write a `native` bundle, each distinct tensor once, and where its source's variables are among them."""
    with BundleWriter(directory) as writer:
        places, doubles = _store_weights(writer, model)
        for one in read_variables(source.directory):
            writer.add_variable(one.name, one.dtype, one.value.shape, _bytes(one.value), keep=keep_variables)
        for graph in (model.portable, model.graph):
            graph.merge(doubles)
        writer.add_file(layout.PORTABLE_GRAPH, model.portable.to_graph_def().SerializeToString(deterministic=True))
        writer.add_file(layout.GRAPH, model.graph.to_graph_def().SerializeToString(deterministic=True))
        assets = []
        for place, (node, path) in enumerate(sorted(model.assets.items())):
            relative = layout.ASSETS + (path.name if model.assets_by_name else f"{place:02}-{path.name}")
            writer.add_file(relative, path)
            assets.append(Asset(node, relative))
        signatures = {
            name: Signature(
                inputs=_ports(signature.inputs),
                outputs=_ports(signature.outputs),
                weights=_needed(model, [p.tensor for p in signature.outputs.values()] + [*signature.targets], places),
                targets=signature.targets,
                method=signature.method,
            )
            for name, signature in model.signatures.items()
        }
        steps = [InitStep(step, _needed(model, list(step), places)) for step in model.initializers]
        add_warmup(writer, requests, signatures)
        manifest = writer.finish(
            engine="native",
            signatures=signatures,
            assets=assets,
            initializers=steps,
            op_libraries=op_libraries,
            fingerprint=fingerprint(open_library().version),
            provenance=provenance(source, tensorflow=open_library().version),
        )
    extra = custom_ops(op_libraries)
    for name in (layout.PORTABLE_GRAPH, layout.GRAPH):
        allowlist.check_graph((directory / name).read_bytes(), manifest, extra_ops=extra)


def write_savedmodel(
    directory: Path,
    signatures: Mapping[str, SourceSignature],
    source: Located,
    requests: Sequence[Request],
    op_libraries: Sequence[str],
) -> None:
    """Write a `savedmodel` bundle: the SavedModel as it is."""
    declared = {name: Signature(_ports(s.inputs), _ports(s.outputs), method=s.method) for name, s in signatures.items()}
    with BundleWriter(directory) as writer:
        writer.copy_tree(layout.SAVED_MODEL, source.directory)
        add_warmup(writer, requests, declared)
        writer.finish(
            engine="savedmodel",
            signatures=declared,
            op_libraries=op_libraries,
            fingerprint=fingerprint(open_library().version),
            provenance=provenance(source, tensorflow=open_library().version),
        )


def _store_weights(writer: BundleWriter, model: NativeModel) -> tuple[dict[str, int], dict[str, str]]:
    """Write the weights. Returns the index of each node's tensor, and the nodes that repeat another one."""
    places: dict[str, int] = {}
    doubles: dict[str, str] = {}
    for node, value in model.weights.values.items():
        array = value()
        dtype = BY_CODE[model.portable.nodes[node].attr["dtype"].type].name
        index = writer.add_tensor(node, model.weights.names[node], dtype, array.shape, _bytes(array))
        stored = writer.node_of(index)
        places[stored] = index
        if stored != node:
            doubles[node] = stored
    return places, doubles


def _bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _needed(model: NativeModel, references: list[str], places: Mapping[str, int]) -> tuple[int, ...]:
    """Return the weights that the given tensors and nodes depend on, in either graph."""
    reached = model.graph.slice(references) | model.portable.slice(references)
    return tuple(sorted(places[name] for name in reached if name in places))


def _ports(ports: Mapping[str, Port]) -> dict[str, Port]:
    return {name: replace(p, tensor=p.tensor if ":" in p.tensor else f"{p.tensor}:0") for name, p in ports.items()}
