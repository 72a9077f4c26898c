"""Decides whether the graph of a `native` bundle may run: a graph is code, and only known-harmless ops pass.

`allowed_ops.txt` names the ops: functions of tensors in memory, and state that lives and dies with the
session. What it leaves out touches files, the network, other processes or devices, runs Python, hides a graph
in a string, or can block for ever. It is an allow-list because TensorFlow's own marks do not help:
`ImmutableConst` reads any file and is not even marked stateful.

Attributes are not looked at. Those of the listed ops only choose how to compute; `shared_name` and
`container` share state within one session, and a model's session is private to it. Ops whose attributes name
a file (`FixedUnigramCandidateSampler.vocab_file`, `PrintV2.output_stream`) are not listed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NoReturn

from glowplug.core.errors import OpNotAllowedError, UnknownNodeError
from glowplug.core.manifest import Manifest

from .graphscan import GraphScan, Node, scan

OPS_FILE = Path(__file__).with_name("allowed_ops.txt")

# The ops that read a file, which their second input names.
_FILE_OPS = frozenset({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"})
_FILE_INPUT = 1

# Calling a function by its name is allowed, so no function may have the name of an op. Every registered op
# has a name of this form (CamelCase, no underscore inside); a function that tf.function, tf.cond or Grappler
# made never has.
OP_NAME = re.compile(r"_*[A-Z][A-Za-z0-9>]*")


@functools.cache
def allowed_ops() -> frozenset[str]:
    """Return the names in `allowed_ops.txt`."""
    lines = OPS_FILE.read_text("ascii").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def check_graph(graph: bytes, manifest: Manifest, *, extra_ops: Collection[str] = ()) -> GraphScan:
    """Return what the graph consists of if it may run and has every node the manifest names; raise otherwise.

    `extra_ops` are the ops of the custom-op libraries that the caller chose to load; a bundle cannot add to
    them.
    """
    found = scan(graph)
    check_ops(found, extra_ops=extra_ops)
    check_nodes(found, manifest)
    check_file_reads(found, manifest)
    return found


def check_ops(found: GraphScan, *, extra_ops: Collection[str] = ()) -> None:
    """Raise `OpNotAllowedError` for an op, in the graph or in a library function, that is not on the list."""
    for name in found.functions:
        if OP_NAME.fullmatch(name) or name in extra_ops:
            _refuse("a function of the graph has a name like an op's", name)
    allowed = allowed_ops().union(found.functions, extra_ops)
    if not {node.op for node in found.nodes.values()} <= allowed:
        _refuse_first(found.nodes.values(), allowed, "the graph")
    for function in found.functions.values():
        if not {node.op for node in function.nodes} <= allowed:
            _refuse_first(function.nodes, allowed, f"function {function.name}")


def check_nodes(found: GraphScan, manifest: Manifest) -> None:
    """Raise `UnknownNodeError` for a node of the manifest that the graph lacks or that cannot be fed."""
    for node, where in _named_nodes(manifest):
        if node not in found.nodes:
            raise UnknownNodeError(
                f"the manifest names a node that the graph does not have ({where})", seen=node, remedy=_REMEDY
            )
    for node, where in _fed_nodes(manifest):
        if found.nodes[node].op != "Placeholder":
            raise UnknownNodeError(
                f"the node of {where} is not a Placeholder",
                seen=f"{node} ({found.nodes[node].op})",
                remedy=_REMEDY,
            )


def check_file_reads(found: GraphScan, manifest: Manifest) -> None:
    """Raise `OpNotAllowedError` unless every file the graph reads is an asset of the bundle.

    The file name must come straight from a placeholder that only the loader feeds, with the path of an asset:
    not from an input of a signature, and not inside a function, whose arguments can come from anywhere.
    """
    assets = {asset.node for asset in manifest.assets}
    for name, signature in manifest.signatures.items():
        for port in signature.inputs.values():
            if port.tensor.rpartition(":")[0] in assets:
                _refuse(f"an input of signature {name} is the file name of an asset", port.tensor)
    for node in found.nodes.values():
        if node.op in _FILE_OPS and _file_name_source(node) not in assets:
            _refuse("a table reads a file that is not an asset of the bundle", node.name)
    for function in found.functions.values():
        for node in function.nodes:
            if node.op in _FILE_OPS:
                _refuse(f"a table reads a file inside function {function.name}", node.name)


def _file_name_source(node: Node) -> str:
    if len(node.inputs) <= _FILE_INPUT:
        return ""
    return node.inputs[_FILE_INPUT].removesuffix(":0")  # `^name`, a control input, is no node's name


def _named_nodes(manifest: Manifest) -> Iterator[tuple[str, str]]:
    yield from _fed_nodes(manifest)
    for name, signature in manifest.signatures.items():
        for ports in (signature.inputs, signature.outputs):
            for port in ports.values():
                yield port.tensor.rpartition(":")[0], f"signature {name}"
        for target in signature.targets:
            yield target, f"a target of signature {name}"
    for step in manifest.initializers:
        for target in step.targets:
            yield target, "a target of an initializer"


def _fed_nodes(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for tensor in manifest.tensors:
        if tensor.node:
            yield tensor.node, f"tensor {tensor.name}"
    for asset in manifest.assets:
        yield asset.node, f"asset {asset.path}"


def _refuse_first(nodes: Collection[Node], allowed: Collection[str], where: str) -> NoReturn:
    node = next(node for node in nodes if node.op not in allowed)
    _refuse(f"{where} holds an op that is not allowed, {node.op}", node.name)


_REMEDY = "do not use this bundle; pack the model again"


def _refuse(what: str, seen: str) -> NoReturn:
    raise OpNotAllowedError(
        what,
        seen=ascii(seen),
        remedy="if you trust where the model comes from, pack it with `--engine savedmodel`",
    )
