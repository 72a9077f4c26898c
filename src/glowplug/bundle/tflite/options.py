"""Checks the parts of a LiteRT model that belong to single nodes and tensors: options, quantisation, texts.

LiteRT follows them without a look at the end of the file. Only tables that are known here are let through: for each
kind of options, which of its fields are vectors; the rest are numbers. A graph that a node runs must be another one,
and none may run itself in the end.

Field numbers, from LiteRT's schema.fbs:
    Operator                builtin_options_type 3, builtin_options 4, custom_options 5, mutating_variable_inputs 7,
                            builtin_options_2_type 11, builtin_options_2 12
    Tensor                  quantization 4, sparsity 6, variant_tensors 9
    QuantizationParameters  min 0, max 1, scale 2, zero_point 3, details_type 4
    IfOptions               then_subgraph_index 0, else_subgraph_index 1
    WhileOptions            cond_subgraph_index 0, body_subgraph_index 1;  CallOnceOptions  init_subgraph_index 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .flatbuffer import FlatBuffer, Tables, refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

# By number (BuiltinOptions): fields that are vectors, and the bytes of an element.
_VECTORS: Mapping[int, Mapping[int, int]] = {
    3: {1: 4, 2: 4},  # ConcatEmbeddingsOptions
    8: {5: 1},  # FullyConnectedOptions
    17: {0: 4},  # ReshapeOptions
    30: {0: 4},  # SqueezeOptions
    111: {0: 1, 1: 1},  # VarHandleOptions
    115: {0: 4},  # BucketizeOptions
}
_OPTIONS = 127  # kinds
_OPTIONS_2 = (0, 18, 20)  # none, DilateOptions, ReduceWindowOptions: numbers alone
_QUANTIZATION: Mapping[int, int] = {0: 4, 1: 4, 2: 4, 3: 8}  # vectors, as above

# By number (BuiltinOperator): operations that run other graphs, their kind of options, and the fields that name them.
_RUNNERS: Mapping[int, tuple[int, tuple[int, ...]]] = {118: (92, (0, 1)), 119: (93, (0, 1)), 129: (103, (0,))}

Runs = set[int]  # the graphs that the nodes of one graph run


def check_options(read: FlatBuffer, nodes: Tables, operations: NDArray[np.int64], graphs: int) -> Runs:
    """Check the options of all nodes of a graph; return which graphs they run."""
    kinds, second = read.scalars(nodes, 3, 1), read.scalars(nodes, 11, 1)
    if np.count_nonzero(kinds >= _OPTIONS) or not np.isin(second, _OPTIONS_2).all():
        refuse("a node has unknown options", f"kinds {int(kinds.max())} and {int(second.max())}")
    read.vectors(nodes, 5, 1)
    read.vectors(nodes, 7, 1)
    options, there = read.linked(nodes, 4)
    read.check_fields(options)
    if np.count_nonzero(second):
        read.check_fields(read.linked(nodes, 12)[0])
    kinds_there, operations_there = kinds[there], operations[there]
    for kind in _VECTORS.keys() & set(kinds_there.tolist()):
        mine = options.some(kinds_there == kind)
        for field, width in _VECTORS[kind].items():
            read.vectors(mine, field, width)
    runs: Runs = set()
    for operation in _RUNNERS.keys() & set(operations.tolist()):
        kind, fields = _RUNNERS[operation]
        mine = options.some((operations_there == operation) & (kinds_there == kind))
        if len(mine) != int((operations == operation).sum()):
            refuse("a node does not say which graphs it runs", f"operation {operation}")
        for field in fields:
            runs.update(read.scalars(mine, field, 4).tolist())
    if max(runs, default=0) >= graphs:
        refuse("a node runs a graph that is not there", max(runs))
    return runs


def refuse_cycles(runs: Sequence[Runs]) -> None:
    """Refuse graphs that run themselves in the end: LiteRT would not come back."""
    done: set[int] = set()
    while len(done) < len(runs):
        ready = {place for place, mine in enumerate(runs) if place not in done and mine <= done}
        if not ready:
            refuse("a graph runs itself", f"{len(runs) - len(done)} subgraphs")
        done |= ready


def check_tensor_parts(read: FlatBuffer, tensors: Tables) -> None:
    """Check what tensors have beside type and shape."""
    if np.count_nonzero(read.present(tensors, 6)) or np.count_nonzero(read.vectors(tensors, 9, 4).length):
        refuse("it has tensors that cannot be checked", "sparse ones or variants")
    quantization, _ = read.linked(tensors, 4)
    read.check_fields(quantization)
    if np.count_nonzero(read.scalars(quantization, 4, 1)):
        refuse("it has tensors that cannot be checked", "quantised otherwise than by axis")
    for field, width in _QUANTIZATION.items():
        read.vectors(quantization, field, width)


def check_text(words: NDArray[np.int64], size: int) -> None:
    """Check a constant of texts: how many there are, where each begins and where the last one ends, then the bytes."""
    count = int(words[0]) if len(words) else -1
    if not 0 <= count <= len(words) - 2:
        refuse("a constant of texts is damaged", f"{count} texts in {size} bytes")
    offsets = words[1 : count + 2]
    if offsets[0] < 4 * (count + 2) or offsets[-1] > size or np.count_nonzero(np.diff(offsets) < 0):
        refuse("a constant of texts is damaged", f"{count} texts in {size} bytes")
