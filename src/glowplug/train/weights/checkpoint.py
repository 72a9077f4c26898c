"""Binds a TensorFlow checkpoint: by the object graph of `tf.train.Checkpoint`, or by TF1's variable names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2
from tensorflow.python.checkpoint.graph_view import ObjectGraphView

from .entry import Binding, Entry, Plan
from .matching import by_name
from .regions import truncated
from .tensors import numpy_dtype
from .variables import LoadableVariable

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"
# What TF1 optimizers put beside the weights.
_TF1_STATE = re.compile(
    r"(^|/)(global_step|beta[12]_power|.+/(Adam|Adam_1|Momentum|Adagrad|Adadelta(_1)?|RMSProp(_1)?|Ftrl(_1)?"
    r"|ExponentialMovingAverage))$"
)


def prefix_of(path: Path) -> Path | None:
    """Return the checkpoint's prefix if `path` is one, or a folder whose `checkpoint` file names one."""
    if path.with_name(f"{path.name}.index").is_file():
        return path
    if path.suffix == ".index" and path.is_file():
        return path.with_suffix("")
    latest = tf.train.latest_checkpoint(str(path)) if path.is_dir() else None
    return Path(latest) if latest else None


def read_entries(prefix: Path) -> tuple[dict[str, Entry], Any | None]:
    """Return the tensors of a checkpoint by key, and its object graph if it has one."""
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        graph = None
        if OBJECT_GRAPH in shapes:
            graph = trackable_object_graph_pb2.TrackableObjectGraph()
            graph.ParseFromString(reader.get_tensor(OBJECT_GRAPH))
    except (tf.errors.OpError, LookupError, ValueError, RuntimeError) as error:
        raise truncated(prefix, error) from error
    found = {}
    for key, shape in shapes.items():
        if dtypes[key] != tf.string:
            found[key] = _entry(prefix, key, dtypes[key], tuple(shape))
    return found, graph


def _entry(prefix: Path, key: str, dtype: Any, shape: tuple[int, ...]) -> Entry:
    def fetch() -> Any:
        try:
            with tf.device("/CPU:0"):
                return tf.raw_ops.RestoreV2(
                    prefix=str(prefix), tensor_names=[key], shape_and_slices=[""], dtypes=[dtype]
                )[0]
        except tf.errors.OpError as error:
            raise truncated(prefix, error.message) from error

    nbytes = math.prod(shape) * int(numpy_dtype(dtype.name).itemsize)
    return Entry(key, dtype.name, shape, nbytes, fetch)


def bind(model: Any, targets: tuple[LoadableVariable, ...], prefix: Path) -> Plan:
    """Match by the objects that hold the variables, at whatever place of the checkpoint the model was."""
    entries, graph = read_entries(prefix)
    if graph is None:
        plan = by_name(targets, entries)
        return Plan(plan.bindings, tuple(name for name in plan.extra if not _TF1_STATE.search(name)))
    wanted = {id(one.variable) for one in targets if one.required}
    best: dict[int, str] = {}
    best_root, others = 0, frozenset[int]()
    for root in (0, *(child.node_id for child in graph.nodes[0].children)):
        keys, passed = _match(model, graph, root)
        if len(wanted & keys.keys()) > len(wanted & best.keys()):
            best, best_root, others = keys, root, passed
    bindings = tuple(
        Binding(one.variable, entries.get(best.get(id(one.variable), "")), one.required) for one in targets
    )
    return Plan(bindings, tuple(_unmatched(graph, best_root, others, set(best.values()))))


def _match(model: Any, graph: Any, root: int) -> tuple[dict[int, str], frozenset[int]]:
    """Walk the model and the stored graph side by side.

    Returns id(variable) -> key, and the stored nodes of the model's optimizers and metrics.
    """
    view = ObjectGraphView(model)
    keys: dict[int, str] = {}
    seen: dict[tuple[int, int], Any] = {}  # keeps what it has seen: wrappers of lists live no longer than we hold them
    others = set()
    pending = [(model, root)]
    while pending:
        live, number = pending.pop(0)
        if (id(live), number) in seen:
            continue
        seen[id(live), number] = live
        node = graph.nodes[number]
        stored = {one.name: one.checkpoint_key for one in node.attributes}
        if _VALUE in stored:
            keys.setdefault(id(live), stored[_VALUE])
        children = {child.local_name: child.node_id for child in node.children}
        if isinstance(live, (keras.Optimizer, keras.Metric)):
            others.add(number)
            continue
        pending += [(one.ref, children[one.name]) for one in view.list_children(live) if one.name in children]
    return keys, frozenset(others)


_NOT_WEIGHTS = frozenset({"optimizer", "_optimizer", "_loss_tracker", "_compile_metrics", "_metrics", "save_counter"})


def _unmatched(graph: Any, root: int, others: frozenset[int], used: set[str]) -> Iterator[str]:
    """Yield the keys below the model's place that no variable of the model took."""
    seen = set(others)
    pending = [root]
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        node = graph.nodes[number]
        for one in node.attributes:
            if one.name == _VALUE and one.checkpoint_key not in used and "seed_generator" not in one.full_name:
                yield one.checkpoint_key
        pending += [child.node_id for child in node.children if child.local_name not in _NOT_WEIGHTS]
