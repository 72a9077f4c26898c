"""Lookup tables: how each one that a signature uses is filled when the bundle loads.

A table that the model's own initialiser fills keeps that initialiser, with its vocabulary file as an asset. One that
came from the checkpoint is filled from what it holds now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorflow.python.framework import op_def_registry

from glowplug.convert.source.saved_model import SavedModel
from glowplug.core.errors import UnsupportedModelError

from .attributes import constant, dtype_attr
from .editor import GraphEditor, node_of

_RESOURCE = 20  # DT_RESOURCE
_FILLS = frozenset({"LookupTableImportV2", "InitializeTableV2", "InitializeTableFromTextFileV2"})
_FILLS_V1 = frozenset({"LookupTableImport", "InitializeTable", "InitializeTableFromTextFile"})
_TABLES = frozenset(
    {
        "HashTableV2",
        "MutableHashTableV2",
        "MutableHashTableOfTensorsV2",
        "MutableDenseHashTableV2",
        "HashTable",
        "MutableHashTable",
    }
)


@dataclass(slots=True)
class TablePlan:
    """The nodes to run at load, and the placeholders that take file names."""

    initializers: list[str] = field(default_factory=list)
    assets: dict[str, Path] = field(default_factory=dict)


def plan_tables(
    graph: GraphEditor, used: set[str], source: SavedModel, moved: Mapping[str, str], init_slice: set[str]
) -> TablePlan:
    """Find what fills the tables among the `used` nodes; `init_slice` are the nodes of the model's initialiser."""
    plan = TablePlan()
    _read_assets_directly(graph, [node_of(tensor) for tensor in source.assets()])
    filled: set[str] = set()
    for name in sorted(init_slice):
        node = graph.nodes[name]
        if node.op in _FILLS | _FILLS_V1 and (table := _table_of(graph, node.input[0])) in used:
            filled.add(table)
            plan.initializers.append(name)
    _refuse_other_resources(graph, used, init_slice)
    handles = {node_of(target): call for call, target in moved.items()}
    for name in sorted(used - filled):
        if graph.nodes[name].op in _TABLES:
            _fill_from_contents(graph, graph.nodes[name], source, handles.get(name, name), plan)
    needed = graph.slice(plan.initializers)
    for tensor, path in source.assets().items():
        if node_of(tensor) in needed:
            _feed_asset(graph.nodes[node_of(tensor)])
            plan.assets[node_of(tensor)] = path
        if node_of(tensor) in used:
            raise UnsupportedModelError("the model reads a file while it answers", seen=path.name)
    return plan


def _refuse_other_resources(graph: GraphEditor, used: set[str], init_slice: set[str]) -> None:
    """Raise if the model's initialiser prepares something that its signatures use and that is no table or variable.

    Without that step the converted model would run, and answer from a resource that is empty.
    """
    for name in sorted(init_slice):
        node = graph.nodes[name]
        if node.op in _FILLS | _FILLS_V1 or not _is_stateful(node.op):
            continue
        for reference in node.input:
            made_by = graph.nodes.get(_table_of(graph, reference))
            if made_by is None or made_by.name not in used or made_by.name == name:
                continue
            if _makes_resource(made_by.op) and made_by.op not in _TABLES and made_by.op != "VarHandleOp":
                raise UnsupportedModelError(
                    "the model prepares a resource in a way that only its own initialiser knows", seen=node.op
                )


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is not None and bool(definition.is_stateful)


def _makes_resource(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is not None and any(output.type == _RESOURCE for output in definition.output_arg)


def _read_assets_directly(graph: GraphEditor, assets: list[str]) -> None:
    """Cut out the variables that only carry a file name from an asset to the table that reads the file."""
    carriers = {
        node_of(node.input[0]): (node.name, node_of(node.input[1]))
        for node in graph.nodes.values()
        if node.op == "AssignVariableOp" and node_of(node.input[1]) in assets
    }
    reads = {
        node.name: carriers[node_of(node.input[0])][1]
        for node in graph.nodes.values()
        if node.op == "ReadVariableOp" and node_of(node.input[0]) in carriers
    }
    graph.redirect(reads)
    graph.drop_control_edges({*reads, *(assign for assign, _ in carriers.values())})


def _table_of(graph: GraphEditor, reference: str) -> str:
    """Follow a handle back to the node that makes the table."""
    name = node_of(reference)
    while name in graph.nodes and graph.nodes[name].op == "Identity":
        name = node_of(graph.nodes[name].input[0])
    return name


def _fill_from_contents(graph: GraphEditor, table: Any, source: SavedModel, handle: str, plan: TablePlan) -> None:
    keys, values = table.attr["key_dtype"].type, table.attr["value_dtype"].type
    key_array, value_array = source.export_table(handle, keys, values)
    if not key_array.size:
        return
    inputs = [
        table.name,
        constant(graph, f"{table.name}/keys", key_array),
        constant(graph, f"{table.name}/values", value_array),
    ]
    types = {"Tin": dtype_attr(keys), "Tout": dtype_attr(values)}
    plan.initializers.append(graph.create("LookupTableImportV2", f"{table.name}/fill", inputs, **types).name)


def _feed_asset(node: Any) -> None:
    dtype = node.attr["dtype"].type
    node.op = "Placeholder"
    node.attr.clear()
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.SetInParent()
