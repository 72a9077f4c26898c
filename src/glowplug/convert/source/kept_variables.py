"""The variables of a SavedModel as its checkpoint has them: what training goes on from, before anything is folded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.core.protobuf import trackable_object_graph_pb2

from glowplug.core.disk.plain_paths import open_plainly
from glowplug.core.dtypes import BY_NAME

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"
_EXPORTED = "variables"  # what `keras.Model.export` calls the list of the model's variables


@dataclass(frozen=True, slots=True)
class SourceVariable:
    """One variable under its full name."""

    name: str
    dtype: str
    value: NDArray[Any]


def read_variables(saved_model: Path) -> Iterator[SourceVariable]:
    """Yield the variables, one in memory at a time: in the model's own order where Keras exported it."""
    if not (saved_model / "variables" / "variables.index").is_file():
        return
    folder, descriptor = open_plainly(saved_model)
    try:
        yield from _read(tf.train.load_checkpoint(str(folder / "variables" / "variables")))
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _read(reader: Any) -> Iterator[SourceVariable]:
    dtypes = reader.get_variable_to_dtype_map()
    for name, key in _named_keys(reader, dtypes):
        dtype = BY_NAME.get(dtypes[key].name)
        if name and dtype is not None and dtype.itemsize:
            yield SourceVariable(name, dtype.name, reader.get_tensor(key))


def _named_keys(reader: Any, keys: Any) -> list[tuple[str, str]]:
    if _OBJECT_GRAPH not in keys:
        return [(key, key) for key in sorted(keys)]
    graph: Any = trackable_object_graph_pb2.TrackableObjectGraph()
    graph.ParseFromString(reader.get_tensor(_OBJECT_GRAPH))
    nodes = list(graph.nodes)
    listed = next((child.node_id for child in nodes[0].children if child.local_name == _EXPORTED), None)
    if listed is not None:
        items = [child for child in nodes[listed].children if child.local_name.isdecimal()]
        nodes = [graph.nodes[child.node_id] for child in sorted(items, key=lambda child: int(child.local_name))]
    attributes = [one for node in nodes for one in node.attributes if one.name == _VALUE]
    return [(one.full_name, one.checkpoint_key) for one in attributes if one.checkpoint_key in keys]
