"""Lookup tables and other resources: how each one that a signature uses is prepared when the bundle loads.

A table that the model's own initialiser fills keeps that initialiser, with its vocabulary file as an asset. One that
came from the checkpoint is filled from what it holds now. Any other resource (a forest, whose operations a package
brings) keeps the operations with which the initialiser prepares it; whether those may run the allow-list decides.
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
    """The nodes to run at load, and the placeholders that take file names.

    With `by_name`, files are found beside each other by their names, which they must keep.
    """

    initializers: list[str] = field(default_factory=list)
    assets: dict[str, Path] = field(default_factory=dict)
    by_name: bool = False


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
    prepared = _other_preparations(graph, used, init_slice)
    plan.initializers += prepared
    handles = {node_of(target): call for call, target in moved.items()}
    for name in sorted(used - filled):
        if graph.nodes[name].op in _TABLES:
            _fill_from_contents(graph, graph.nodes[name], source, handles.get(name, name), plan)
    needed = graph.slice(plan.initializers)
    assets = {node_of(tensor): path for tensor, path in source.assets().items()}
    plan.by_name = any(name in graph.slice(prepared) for name in assets)
    for name, path in assets.items():
        if name in needed or (plan.by_name and name in graph.nodes):
            _feed_asset(graph.nodes[name])
            plan.assets[name] = path
        if name in used:
            raise UnsupportedModelError("the model reads a file while it answers", seen=path.name)
    return plan


def _other_preparations(graph: GraphEditor, used: set[str], init_slice: set[str]) -> list[str]:
    """Return the nodes of the initialiser that prepare something which is used and is no table or variable.

    Without them the converted model would run, and answer from a resource that is empty.
    """
    found = []
    for name in sorted(init_slice):
        node = graph.nodes[name]
        if node.op in _FILLS | _FILLS_V1 or not _is_stateful(node.op):
            continue
        makers = [graph.nodes.get(_table_of(graph, reference)) for reference in node.input]
        if any(one is not None and one.name != name and one.name in used and _is_other(one.op) for one in makers):
            found.append(name)
    return found


def _is_other(op: str) -> bool:
    return _makes_resource(op) and op not in _TABLES and op != "VarHandleOp"


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
