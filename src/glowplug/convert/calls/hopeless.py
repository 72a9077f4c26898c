"""Models that no input can make answer: they are refused, whatever the engine, so that no bundle is dead on arrival."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from glowplug.convert.graph.editor import GraphEditor
from glowplug.convert.source.op_packages import packages_with
from glowplug.core.errors import TensorFlowError, UnanswerableModelError

if TYPE_CHECKING:
    from glowplug.convert.source.saved_model import SavedModel

_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
# What no input cures. A file that is not found is not among it: an input may name one that is.
_CODES = frozenset({"FAILED_PRECONDITION", "UNIMPLEMENTED"})
_TEXTS = re.compile(
    r"not registered|No registered|No OpKernel|Resource .* does not exist|Container .* does not exist"
    r"|only supports? .*NHWC"
)
_UNREGISTERED = re.compile(r"Op type not registered '([^']+)'")


def reached_ops(source: SavedModel, signature: str) -> frozenset[str]:
    """Return the operations that a call of the signature may run, those in functions included."""
    return frozenset(node.op for nodes in reached_nodes(source, signature) for node in nodes.values())


def reached_nodes(source: SavedModel, signature: str) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes that a call of the signature may run, by name: those of the graph, and those of each function."""
    graph = GraphEditor(source.meta_graph.graph_def)
    part = GraphEditor(source.meta_graph.graph_def)
    part.keep(graph.slice(port.tensor for port in source.signatures[signature].outputs.values()))
    yield part.nodes
    for name in part.reached_functions():
        yield {node.name: node for node in graph.library[name].node_def}


def refuse_python_code(source: SavedModel, signature: str) -> None:
    """Raise for a signature that calls back into the Python program that saved it."""
    found = sorted(reached_ops(source, signature) & _PYTHON_OPS)
    if found:
        raise UnanswerableModelError(
            "the model calls Python code of the program that saved it",
            seen=f"{found[0]} in signature {signature!r}",
            remedy="replace `tf.numpy_function` and `tf.py_function` by TensorFlow operations",
        )


def refuse_hopeless(source: SavedModel, signature: str, failures: Sequence[TensorFlowError]) -> None:
    """Raise if every call failed for a reason that no other input would change."""
    if not failures or not all(is_hopeless(failure) for failure in failures):
        return
    reason = first_line(failures[-1])
    index = source.directory / "variables" / "variables.index"
    remedy = "check it with `tf.saved_model.load`, and export it again"
    if not index.is_file():
        remedy = "its folder variables/ is empty or missing: copy the whole SavedModel"
    elif "OpKernel" in reason:
        remedy = "it needs a device or a library that is not here; give packages of operations with --op-library"
    raise UnanswerableModelError(
        "no call of this model can succeed", seen=f"signature {signature!r}: {reason}", remedy=remedy
    )


def unregistered_op(error: TensorFlowError) -> UnanswerableModelError | None:
    """Return what to raise for a model with an operation that TensorFlow does not have, or `None` for other errors."""
    found = _UNREGISTERED.search(str(error.seen))
    if found is None:
        return None
    packages = packages_with(found[1])
    remedy = "name the package that brings it with --op-library (op_libraries=[...] in Python)"
    if packages:
        remedy = f"pass --op-library {packages[0]} (op_libraries={packages[:1]} in Python)"
    return UnanswerableModelError(
        "the model uses an operation that TensorFlow does not have", seen=found[1], remedy=remedy
    )


def first_line(error: TensorFlowError) -> str:
    """Return the first line of TensorFlow's text, of a length that can be read."""
    lines = str(error.seen).splitlines()
    return lines[0][:300] if lines else error.code


def is_hopeless(failure: TensorFlowError) -> bool:
    """Say whether a call failed for a reason that no other input would change."""
    return failure.code in _CODES or _TEXTS.search(str(failure.seen)) is not None
