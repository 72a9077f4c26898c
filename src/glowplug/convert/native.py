"""From a SavedModel to the graphs, weights and initialisers of a `native` bundle.

The steps: take the signatures' part of the graph, inline its functions, turn variables and large constants into
placeholders, optimise, compute what depends on weights alone, optimise for this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorflow.python.framework import op_def_registry

from glowplug.core.errors import TensorFlowError, UnsupportedModelError
from glowplug.core.manifest import Port
from glowplug.runtime.graph import Graph

from .graph.attributes import shape_attr
from .graph.editor import GraphEditor, canonical, node_of
from .graph.folding import fold_weights
from .graph.fusion import fuse_scales
from .graph.grappler import optimize
from .graph.groups import grouped_convolutions
from .graph.inline import inline_calls
from .graph.tables import TablePlan, plan_tables
from .graph.variables import bind_variables
from .graph.weights import Weights, extract_constants
from .source.saved_model import SavedModel
from .source.spool import Spool

# Stateful operations whose only effect is their result: nobody needs to run them for their own sake.
_READ_ONLY_PREFIXES = (
    "Anonymous",
    "HashTable",
    "Lookup",
    "Multinomial",
    "Mutable",
    "Parameterized",
    "Placeholder",
    "Random",
    "Read",
    "ResourceGather",
    "Truncated",
    "VarHandle",
    "VarIsInitialized",
    "VariableV2",
)
_EFFECTS_DESPITE_PREFIX = ("LookupTableInsert", "LookupTableRemove", "LookupTableImport")
_DROPPED_ATTRIBUTES = ("_class", "_output_shapes", "_has_manual_control_dependencies", "_XlaMustCompile")


@dataclass(frozen=True, slots=True)
class NativeSignature:
    """A signature over the converted graph."""

    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    targets: tuple[str, ...]
    method: str


@dataclass(frozen=True, slots=True)
class NativeModel:
    """The result: two graphs over the same weights."""

    portable: GraphEditor
    graph: GraphEditor
    signatures: Mapping[str, NativeSignature]
    weights: Weights
    initializers: tuple[tuple[str, ...], ...]
    assets: Mapping[str, Path]
    assets_by_name: bool  # they are found by the names that they have in the source


def convert(source: SavedModel, spool: Spool, *, fuse: bool = True, for_cpu: bool = True) -> NativeModel:
    """Convert a loaded SavedModel. Without `fuse`, the arithmetic stays in the order in which the source has it.

    Without `for_cpu`, the functions are called that the source names, where others do the same on the CPU.
    """
    graph, signatures, tables = _isolate(source, for_cpu=for_cpu)
    weights = Weights()
    variables = bind_variables(graph, source, weights, spool)
    extract_constants(graph, weights, spool)
    signatures = _share_inputs(graph, signatures)
    _hide_shapes(graph, signatures)
    steps = tuple(step for step in (tuple(variables), tuple(tables.initializers)) if step)
    loading = [*(node for step in steps for node in step), *tables.assets]
    portable = _optimize_portably(graph, [*_references(signatures), *loading], weights)
    if fuse:
        fuse_scales(portable, set(weights.values), {node_of(r) for r in (*_references(signatures), *loading)})
    fold_weights(portable, weights, spool)
    extract_constants(portable, weights, spool)
    signatures = _separate_outputs(portable, signatures)
    kept = [*_references(signatures), *loading]
    portable.keep(portable.slice(kept))
    weights.keep(portable)
    declared = {port.tensor: port.spec.shape for one in signatures.values() for port in one.inputs.values()}
    groups = grouped_convolutions(portable, declared)
    machine = optimize(portable, kept, weights.values, portable=False, alone=groups)
    _clean(machine)
    if not _is_accepted(machine):
        machine = GraphEditor(portable.to_graph_def())
    return NativeModel(portable, machine, signatures, weights, steps, tables.assets, tables.by_name)


def _isolate(source: SavedModel, *, for_cpu: bool) -> tuple[GraphEditor, dict[str, NativeSignature], TablePlan]:
    """Return the part of the source's graph that its signatures and their tables need, with all calls inlined."""
    graph = GraphEditor(source.meta_graph.graph_def)
    initial = source.initializer
    declared = source.signatures.values()
    calls = {name: graph.slice(p.tensor for p in s.outputs.values()) for name, s in source.signatures.items()}
    roots = [port.tensor for s in declared for port in (*s.inputs.values(), *s.outputs.values())]
    graph.keep(graph.slice([*roots, *([initial] if initial else []), *source.assets()]))
    moved, effects = inline_calls(graph, for_cpu=for_cpu)
    signatures = {name: _moved_signature(source, name, moved) for name in source.signatures}
    signatures = {name: replace(s, targets=_targets(graph, calls[name], effects)) for name, s in signatures.items()}
    used = graph.slice(_references(signatures))
    init_roots = [initial, *effects.get(initial, ())] if initial else []
    tables = plan_tables(graph, used, source, moved, graph.slice(init_roots))
    graph.keep(graph.slice([*_references(signatures), *tables.initializers, *tables.assets]))
    _clean(graph)
    return graph, signatures, tables


def _moved_signature(source: SavedModel, name: str, moved: Mapping[str, str]) -> NativeSignature:
    declared = source.signatures[name]
    outputs = {key: replace(port, tensor=moved.get(port.tensor, port.tensor)) for key, port in declared.outputs.items()}
    return NativeSignature(declared.inputs, outputs, (), declared.method)


def _targets(graph: GraphEditor, calls: set[str], effects: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Return the nodes with side effects that a call of the signature runs."""
    roots = [node for call in calls for node in effects.get(call, ())]
    return tuple(sorted(name for name in graph.slice(roots) if _has_effect(graph.nodes[name])))


def _has_effect(node: Any) -> bool:
    if node.op.startswith(_EFFECTS_DESPITE_PREFIX):
        return True
    definition = op_def_registry.get(node.op)
    return definition is not None and definition.is_stateful and not node.op.startswith(_READ_ONLY_PREFIXES)


def _references(signatures: Mapping[str, NativeSignature]) -> list[str]:
    """Return the tensors and nodes that the signatures name."""
    found: list[str] = []
    for signature in signatures.values():
        found += [port.tensor for port in (*signature.inputs.values(), *signature.outputs.values())]
        found += signature.targets
    return list(dict.fromkeys(found))


def _clean(graph: GraphEditor) -> None:
    """Drop devices and attributes that only the tracer or the placer of the source cared about."""
    nodes = [*graph.nodes.values(), *(n for f in graph.library.values() for n in f.node_def)]
    for node in nodes:
        node.device = ""
        for key in _DROPPED_ATTRIBUTES:
            if key in node.attr:
                del node.attr[key]
        node.ClearField("experimental_debug_info")


def _share_inputs(graph: GraphEditor, signatures: Mapping[str, NativeSignature]) -> dict[str, NativeSignature]:
    """Let signatures with the same input use one placeholder, so that what they compute alike is there once."""
    first: dict[tuple[str, str], str] = {}
    moved: dict[str, str] = {}
    for signature in signatures.values():
        for key, port in signature.inputs.items():
            node = graph.nodes.get(node_of(port.tensor))
            if node is None or node.op != "Placeholder":
                continue
            shared = first.setdefault((key, str(port.spec)), port.tensor)
            if shared != port.tensor:
                moved[port.tensor] = shared
    graph.merge({node_of(name): shared for name, shared in moved.items()})

    def ports(declared: Mapping[str, Port]) -> dict[str, Port]:
        return {key: replace(port, tensor=moved.get(port.tensor, port.tensor)) for key, port in declared.items()}

    return {n: replace(s, inputs=ports(s.inputs), outputs=ports(s.outputs)) for n, s in signatures.items()}


def _hide_shapes(graph: GraphEditor, signatures: Mapping[str, NativeSignature]) -> None:
    """Keep the declared shapes of the inputs from the optimiser.

    Stock TensorFlow takes inputs of other shapes than the declared ones and answers them rightly. A graph that was
    optimised for the declared shapes would answer them wrongly.
    """
    for signature in signatures.values():
        for port in signature.inputs.values():
            node = graph.nodes.get(node_of(port.tensor))
            if node is not None and node.op == "Placeholder":
                node.attr["shape"].CopyFrom(shape_attr(None))


def _optimize_portably(graph: GraphEditor, kept: list[str], weights: Weights) -> GraphEditor:
    """Optimise, unless that brings in operations that another TensorFlow may not have."""
    optimized = optimize(graph, kept, weights.values, portable=True)
    _clean(optimized)  # it has inlined functions, and wants their nodes beside others that are gone by now
    if any(node.op.startswith("_") for node in optimized.nodes.values()):
        return graph
    return optimized


def _is_accepted(graph: GraphEditor) -> bool:
    """Say whether TensorFlow takes the graph. Its optimiser makes fused nodes that its own checks refuse at times."""
    try:
        Graph(graph.to_graph_def().SerializeToString()).close()
    except TensorFlowError:
        return False
    return True


def _separate_outputs(graph: GraphEditor, signatures: Mapping[str, NativeSignature]) -> dict[str, NativeSignature]:
    """A tensor cannot be fed and fetched in one run: give outputs that are placeholders a node of their own."""
    result = {}
    for name, signature in signatures.items():
        outputs = {}
        for key, port in signature.outputs.items():
            node = graph.nodes.get(node_of(port.tensor))
            if node is None:
                raise UnsupportedModelError("an output is not in the graph", seen=f"{name}: {key}")
            outputs[key] = port
            if node.op == "Placeholder":
                copy = graph.create("Identity", f"{node.name}/output", [port.tensor], T=node.attr["dtype"])
                outputs[key] = replace(port, tensor=canonical(copy.name))
        result[name] = replace(signature, outputs=outputs)
    return result
