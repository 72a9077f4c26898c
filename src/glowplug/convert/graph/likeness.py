"""Tells which signatures compute the same, from the graph: answers that agree on some inputs prove nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .editor import GraphEditor, canonical, is_control, node_of

if TYPE_CHECKING:
    from glowplug.convert.source.saved_model import SourceSignature


def computations(
    graph: GraphEditor,
    moved: Mapping[str, str],
    effects: Mapping[str, set[str]],
    signatures: Mapping[str, SourceSignature],
) -> dict[str, str]:
    """Return a digest of what each signature computes, by the names of its inputs and outputs and not of its nodes.

    The graph has its calls inlined; `moved` and `effects` are what `inline_calls` returned. Nodes on a loop of
    TensorFlow 1 count by their names, so that such signatures are never taken for the same.
    """
    order = {node.name: place for place, node in enumerate(graph.in_order())}
    return {name: _computation(graph, order, moved, effects, one) for name, one in signatures.items()}


def _computation(
    graph: GraphEditor,
    order: Mapping[str, int],
    moved: Mapping[str, str],
    effects: Mapping[str, set[str]],
    signature: SourceSignature,
) -> str:
    outputs = {key: moved.get(port.tensor, port.tensor) for key, port in signature.outputs.items()}
    calls = {node_of(port.tensor) for port in signature.outputs.values()}
    also = {name for call in calls for name in effects.get(call, ())}
    inputs = {node_of(canonical(port.tensor)): key for key, port in signature.inputs.items()}
    needed = graph.slice([*outputs.values(), *also])
    digests: dict[str, bytes] = {}
    for name in sorted(needed, key=order.__getitem__):
        node = graph.nodes[name]
        digests[name] = _digest(b"input", inputs[name].encode()) if name in inputs else _node_digest(node, digests)
    results = (part for key in sorted(outputs) for part in (key.encode(), _reference(outputs[key], digests)))
    return _digest(*results, *sorted(_reference(name, digests) for name in also)).hex()


def _node_digest(node: Any, digests: Mapping[str, bytes]) -> bytes:
    data = [_reference(one, digests) for one in node.input if not is_control(one)]
    control = sorted(_reference(one, digests) for one in node.input if is_control(one))
    attributes = (
        part
        for key in sorted(node.attr)
        if not key.startswith("_")  # hints
        for part in (key.encode(), node.attr[key].SerializeToString(deterministic=True))
    )
    return _digest(node.op.encode(), *attributes, b"inputs", *data, b"after", *control)


def _reference(reference: str, digests: Mapping[str, bytes]) -> bytes:
    name = node_of(reference)
    _, _, place = reference.partition(":")
    return digests.get(name, name.encode()) + place.encode()


def _digest(*parts: bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(b"%d:" % len(part))
        found.update(part)
    return found.digest()
