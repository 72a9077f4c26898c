"""Gives the variables that TensorFlow's loader leaves without a value the one that the checkpoint has for them.

Keras 3 variables wrap TensorFlow's. In a model that `tf.saved_model.save` wrote, the signatures read the inner ones and
the restore operation fills copies of them, so that the loader of TensorFlow Serving succeeds and every call fails.
The object graph knows which is which: it says, for each captured argument of a function, which object that is, and
the checkpoint has its value under that object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glowplug.bundle.graphscan import byte_fields
from glowplug.core.errors import GlowplugError
from glowplug.core.protobuf_wire import bytes_field, integer_field, read_varint
from glowplug.runtime.session import Session
from glowplug.runtime.tensor import Tensor

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = b"VARIABLE_VALUE"
_PREFIX = "glowplug_restore"
_STRING = 7  # DT_STRING

# Field numbers of TensorFlow's meta_graph.proto, graph.proto, saved_object_graph.proto, trackable_object_graph.proto
_GRAPH_DEF, _OBJECT_GRAPH_DEF = 2, 7
_NODE = 1
_NODE_NAME, _NODE_OP, _NODE_INPUT, _NODE_ATTRIBUTE = 1, 2, 3, 5
_TYPE_VALUE, _FUNCTION_VALUE = 6, 10
_CONCRETE_FUNCTIONS, _BOUND_INPUTS = 2, 2
_OBJECTS, _ATTRIBUTES, _ATTRIBUTE_NAME, _CHECKPOINT_KEY = 1, 2, 1, 3
_KEY, _ENTRY = 1, 2  # of the entries of a map


class _Handle(NamedTuple):
    """A variable that a graph reads: its node and its type."""

    node: str
    dtype: int


def restore_missing(session: Session, meta_graph: bytes, directory: Path) -> tuple[str, ...]:
    """Set the variables that have no value; return the nodes of those that were set.

    Whatever is unusual about the model leaves it as it is: a call then fails, and says on which variable.
    """
    if b"VarHandleOp" not in meta_graph or not (directory / "variables" / "variables.index").is_file():
        return ()
    try:
        handles, objects = _captured(meta_graph)
        missing = _without_value(session, [handle for handle in handles.values() if handle.node in objects])
        if not missing:
            return ()
        prefix = str(directory / "variables" / "variables")
        keys = _checkpoint_keys(session, prefix)
        found = {handle: keys[objects[handle.node]] for handle in missing if objects[handle.node] in keys}
        return _assign(session, prefix, found)
    except (GlowplugError, ValueError):
        return ()


def _captured(meta_graph: bytes) -> tuple[dict[str, _Handle], dict[str, int]]:
    """Return the variables of the main graph, and which object each is that some function captures."""
    handles: dict[str, _Handle] = {}
    calls: list[tuple[str, list[str]]] = []
    bound: dict[str, list[int]] = {}
    for number, start, end in byte_fields(meta_graph, 0, len(meta_graph)):
        if number == _GRAPH_DEF:
            for field, node_start, node_end in byte_fields(meta_graph, start, end):
                if field == _NODE:
                    _read_node(meta_graph, node_start, node_end, handles, calls)
        elif number == _OBJECT_GRAPH_DEF:
            bound.update(_bound_inputs(meta_graph, start, end))
    objects: dict[str, int] = {}
    for function, inputs in calls:
        captures = bound.get(function, [])
        if captures:  # the last arguments of a function are what it captured
            objects.update(zip(inputs[-len(captures) :], captures, strict=False))
    return handles, objects


def _read_node(
    data: bytes, start: int, end: int, handles: dict[str, _Handle], calls: list[tuple[str, list[str]]]
) -> None:
    name = op = function = ""
    inputs: list[str] = []
    dtype = 0
    for field, first, last in byte_fields(data, start, end):
        if field == _NODE_NAME:
            name = data[first:last].decode()
        elif field == _NODE_OP:
            op = data[first:last].decode()
        elif field == _NODE_INPUT:
            inputs.append(data[first:last].decode())
        elif field == _NODE_ATTRIBUTE and op in ("VarHandleOp", "StatefulPartitionedCall", "PartitionedCall"):
            key, value = _map_entry(data, first, last)
            if key == b"f":
                function = _function_name(value)
            elif key == b"dtype" and value[:1] == bytes([_TYPE_VALUE << 3]):
                dtype = read_varint(value, 1, len(value))[0]
    if op == "VarHandleOp":
        handles[name] = _Handle(name, dtype)
    elif function:
        calls.append((function, [one.removesuffix(":0") for one in inputs if not one.startswith("^")]))


def _map_entry(data: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    fields = {number: data[first:last] for number, first, last in byte_fields(data, start, end)}
    return fields.get(_KEY, b""), fields.get(_ENTRY, b"")


def _function_name(value: bytes) -> str:
    for number, start, end in byte_fields(value, 0, len(value)):
        if number == _FUNCTION_VALUE:
            return next((value[s:e].decode() for field, s, e in byte_fields(value, start, end) if field == 1), "")
    return ""


def _bound_inputs(data: bytes, start: int, end: int) -> Iterator[tuple[str, list[int]]]:
    """Yield each concrete function and the objects that it captured."""
    for number, entry_start, entry_end in byte_fields(data, start, end):
        if number != _CONCRETE_FUNCTIONS:
            continue
        name, function = _map_entry(data, entry_start, entry_end)
        for field, first, last in byte_fields(function, 0, len(function)):
            if field == _BOUND_INPUTS:
                captures, position = list[int](), first
                while position < last:
                    capture, position = read_varint(function, position, last)
                    captures.append(capture)
                yield name.decode(), captures


def _without_value(session: Session, handles: Sequence[_Handle]) -> list[_Handle]:
    """Ask the session which of the variables have no value."""
    if not handles:
        return []
    names = [f"{_PREFIX}/is_set/{place}" for place in range(len(handles))]
    nodes = [_node("VarIsInitializedOp", name, [handle.node]) for name, handle in zip(names, handles, strict=True)]
    session.graph.extend(b"".join(nodes), {handle.node: handle.node for handle in handles})
    answers = session.prepare((), names).run(())
    return [handle for handle, is_set in zip(handles, answers, strict=True) if not is_set]


def _checkpoint_keys(session: Session, prefix: str) -> dict[int, str]:
    """Return, for each object of the checkpoint that is a variable, the key of its value."""
    restore = f"{_PREFIX}/objects"
    _add_restore(session, restore, [_STRING])
    (graph,) = _run_restore(session, restore, prefix, [_OBJECT_GRAPH], [restore], ())
    data: bytes = graph.item()
    keys = {}
    objects = [(start, end) for number, start, end in byte_fields(data, 0, len(data)) if number == _OBJECTS]
    for place, (start, end) in enumerate(objects):
        for number, first, last in byte_fields(data, start, end):
            if number == _ATTRIBUTES:
                fields = {field: data[s:e] for field, s, e in byte_fields(data, first, last)}
                if fields.get(_ATTRIBUTE_NAME) == _VALUE and _CHECKPOINT_KEY in fields:
                    keys[place] = fields[_CHECKPOINT_KEY].decode()
    return keys


def _assign(session: Session, prefix: str, found: Mapping[_Handle, str]) -> tuple[str, ...]:
    """Restore the values and assign them, in one run, without passing through this process's arrays."""
    if not found:
        return ()
    handles = list(found)
    restore = f"{_PREFIX}/values"
    _add_restore(session, restore, [handle.dtype for handle in handles])
    targets = [f"{_PREFIX}/set/{place}" for place in range(len(handles))]
    links = {handle.node: handle.node for handle in handles}
    nodes = []
    for place, (target, handle) in enumerate(zip(targets, handles, strict=True)):
        value = f"{restore}:{place}"
        links[value] = value
        nodes.append(_node("AssignVariableOp", target, [handle.node, value], dtype=_type(handle.dtype)))
    session.graph.extend(b"".join(nodes), links)
    _run_restore(session, restore, prefix, list(found.values()), (), targets)
    return tuple(handle.node for handle in handles)


def _add_restore(session: Session, name: str, dtypes: Sequence[int]) -> None:
    feeds = [f"{name}/{part}" for part in ("prefix", "keys", "slices")]
    nodes = [_node("Placeholder", feed, [], dtype=_type(_STRING)) for feed in feeds]
    packed = bytes_field(_TYPE_VALUE, b"".join(bytes([dtype]) for dtype in dtypes))
    nodes.append(_node("RestoreV2", name, feeds, dtypes=bytes_field(1, packed)))
    session.graph.extend(b"".join(nodes))


def _run_restore(
    session: Session, name: str, prefix: str, keys: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> list[NDArray[Any]]:
    values = [np.array(prefix, object), np.array(keys, object), np.array([""] * len(keys), object)]
    tensors = [Tensor.from_array(value, "string") for value in values]
    try:
        feeds = [f"{name}/{part}" for part in ("prefix", "keys", "slices")]
        return session.prepare(feeds, fetches, targets).run(tensors, copy=True)
    finally:
        for tensor in tensors:
            tensor.close()


def _node(op: str, name: str, inputs: Sequence[str], **attributes: bytes) -> bytes:
    """Return a graph's field that holds one node."""
    fields = bytes_field(_NODE_NAME, name.encode()) + bytes_field(_NODE_OP, op.encode())
    fields += b"".join(bytes_field(_NODE_INPUT, one.encode()) for one in inputs)
    for key, value in attributes.items():
        fields += bytes_field(_NODE_ATTRIBUTE, bytes_field(_KEY, key.encode()) + bytes_field(_ENTRY, value))
    return bytes_field(_NODE, fields)


def _type(code: int) -> bytes:
    return integer_field(_TYPE_VALUE, code)
