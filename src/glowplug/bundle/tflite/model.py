"""Decides whether a `.tflite` file may be given to LiteRT, and says what can be called in it.

LiteRT is C++ that trusts much of what it reads. So before it sees a file: every table, vector and index that it follows
is within bounds, constants have as many bytes as their type and shape say, nothing is read from other files, and every
operation is one of LiteRT's own, which compute on tensors in memory. What cannot be seen here can still be wrong:
whoever does not trust a file tries it in a process of its own first, as `pack` does.

Field numbers, from LiteRT's schema.fbs:
    Model         version 0, operator_codes 1, subgraphs 2, buffers 4, metadata 6, signature_defs 7,
                  external_buffer_groups 8, external_buffers 9
    OperatorCode  deprecated_builtin_code 0, custom_code 1, version 2, builtin_code 3
    SubGraph      tensors 0, inputs 1, outputs 2, operators 3
    Tensor        shape 0, type 1, buffer 2, name 3, is_variable 5, sparsity 6, shape_signature 7, external_buffer 10
    Operator      opcode_index 0, inputs 1, outputs 2, intermediates 8, large_custom_options_offset 9
    Buffer        data 0, offset 1, size 2
    SignatureDef  inputs 0, outputs 1, signature_key 2, subgraph_index 4;  TensorMap  name 0, tensor_index 1
    Metadata      name 0, buffer 1
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from io import FileIO
from typing import TYPE_CHECKING, Any

import numpy as np

from glowplug.core.errors import OpNotAllowedError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.core.records import Record

from .flatbuffer import FlatBuffer, Tables, refuse
from .options import Runs, check_options, check_tensor_parts, check_text, refuse_cycles
from .shapes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX = ".tflite"
MAGIC = b"TFL3"  # at byte 4
DEFAULT_SIGNATURE = "serving_default"

_SCHEMA = 3
_MAX_RANK = 32
_CUSTOM = 32
_LARGEST_BYTES = 1 << 36  # of one tensor
_STRING = 5
# LiteRT's own operations by number (BuiltinOperator), without: calls of others (CALL, CUSTOM), delegates, the mark for
# larger numbers, and those of StableHLO, whose options hold programs of their own. With DILATE and REDUCE_WINDOW.
_BUILTIN = frozenset((*range(162), 203, 205)) - {31, _CUSTOM, 51, 127}
# Operations that LiteRT brings under a name in place of a number.
_NAMED = frozenset({"TFLite_Detection_PostProcess", "Mfcc", "AudioSpectrogram"})
_LEGACY_SIGNATURES = "signature_defs_metadata"
_STATEFUL = frozenset({142, 143, 144})  # VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE

# By number (TensorType): the name of an element type, and its bytes; none where elements have no fixed bytes.
_TYPES: Mapping[int, tuple[str, float]] = {
    0: ("float32", 4),
    1: ("float16", 2),
    2: ("int32", 4),
    3: ("uint8", 1),
    4: ("int64", 8),
    5: ("string", 0),
    6: ("bool", 1),
    7: ("int16", 2),
    8: ("complex64", 8),
    9: ("int8", 1),
    10: ("float64", 8),
    11: ("complex128", 16),
    12: ("uint64", 8),
    13: ("", 0),  # a resource
    14: ("", 0),  # a variant
    15: ("uint32", 4),
    16: ("uint16", 2),
    17: ("", 0.5),  # four bits, packed
    18: ("bfloat16", 2),
    19: ("", 0.25),
    20: ("", 0.5),
    21: ("float8_e4m3fn", 1),
    22: ("float8_e5m2", 1),
}
_ELEMENT_BYTES = np.array([_TYPES[code][1] for code in sorted(_TYPES)])
ELEMENT_TYPES = tuple(_TYPES[code][0] for code in sorted(_TYPES))  # by number


class TfliteModel(Record):
    """What a checked file holds. Ports name tensors as `subgraph:tensor`.

    `declared` says whether the signatures are in the file; `legacy` are the bytes of an older form of them, which is
    not read here. `variables` are tensors that keep a value from call to call until they are reset, and `stateful` says
    that the model itself has state.
    """

    signatures: Mapping[str, Signature]
    declared: bool
    stateful: bool
    variables: bool
    graphs: tuple[Nodes, ...]
    legacy: bytes


def check_tflite(data: Any) -> TfliteModel:
    """Return what can be called in a file; raise `TfliteMalformedError` or `OpNotAllowedError` where it is refused."""
    if bytes(data[4:8]) != MAGIC:
        refuse("it does not begin like one", ascii(bytes(data[:8])))
    try:
        return _Scan(FlatBuffer(data)).model()
    except (IndexError, OverflowError) as error:
        refuse("a table is damaged", error)


def check_tflite_file(stream: FileIO) -> TfliteModel:
    """Do the same for an open file, which is mapped for it and not read."""
    if not os.fstat(stream.fileno()).st_size:
        refuse("it is empty", "0 bytes")
    return check_tflite(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))  # unmapped when nothing refers to it


class _Graph(Record):
    """One checked subgraph: its tensors, the numbers of their types, and which of them go in and come out."""

    tensors: Tables
    types: NDArray[np.int64]
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    nodes: Nodes


class _Scan:
    """One pass over a file."""

    def __init__(self, buffer: FlatBuffer) -> None:
        self._buffer = buffer
        self._root = buffer.root()

    def model(self) -> TfliteModel:
        read, root = self._buffer, self._root
        version = int(read.scalars(root, 0, 4)[0])
        if version != _SCHEMA:
            refuse("its version is unknown", version)
        if read.vectors(root, 8, 4).length[0] or read.vectors(root, 9, 4).length[0]:
            refuse("it reads other files", "external buffers")
        operations = self._operations()
        buffers = read.tables(root, 4)
        lengths = self._constant_lengths(buffers)
        found = read.tables(root, 2)
        if not len(found):
            refuse("it has no graph", "0 subgraphs")
        self._buffers, self._lengths, self._runs = buffers, lengths, list[Runs]()
        self._graphs = [self._graph(found.one(place), operations, len(found)) for place in range(len(found))]
        refuse_cycles(self._runs)
        signatures = self._signatures()
        return TfliteModel(
            signatures=signatures or {DEFAULT_SIGNATURE: self._main()},
            declared=bool(signatures),
            stateful=not _STATEFUL.isdisjoint(operations),
            variables=any(np.count_nonzero(read.scalars(graph.tensors, 5, 1)) for graph in self._graphs),
            graphs=tuple(graph.nodes for graph in self._graphs),
            legacy=self._metadata(buffers, _LEGACY_SIGNATURES),
        )

    def _operations(self) -> list[int]:
        codes = self._buffer.tables(self._root, 1)
        found = np.maximum(self._buffer.scalars(codes, 0, 1), self._buffer.scalars(codes, 3, 4))
        numbers: list[int] = found.tolist()
        for place, number in enumerate(numbers):
            if number not in _BUILTIN:
                name = self._buffer.text(codes.one(place), 1) if number == _CUSTOM else f"number {number}"
                if name not in _NAMED:
                    raise OpNotAllowedError(
                        "the model holds an operation that is none of LiteRT's own",
                        seen=ascii(name),
                        remedy="convert the model again with LiteRT's own operations alone",
                    )
        return numbers

    def _constant_lengths(self, buffers: Tables) -> NDArray[np.int64]:
        """Return how many bytes each constant has, inside the FlatBuffer or behind it."""
        read = self._buffer
        inside = read.vectors(buffers, 0, 1).length
        offset, size = read.scalars(buffers, 1, 8), read.scalars(buffers, 2, 8)
        behind = offset > 1
        if np.count_nonzero(((offset > read.size) | (size > read.size) | (offset + size > read.size))[behind]):
            refuse("a constant lies outside the file", f"{read.size} bytes")
        return np.where(behind, size, inside)

    def _graph(self, graph: Tables, operations: list[int], graphs: int) -> _Graph:
        read = self._buffer
        tensors = read.tables(graph, 0)
        types = read.scalars(tensors, 1, 1)
        if np.count_nonzero(types >= len(_ELEMENT_BYTES)):
            refuse("a tensor has an unknown type", int(types.max()))
        if np.count_nonzero(read.scalars(tensors, 10, 4)):
            refuse("it reads other files", "an external buffer")
        check_tensor_parts(read, tensors)
        constant, there = self._check_constants(tensors, types)
        (inputs, _), (outputs, _) = (self._indices(graph, field, len(tensors), 0) for field in (1, 2))
        nodes = self._nodes(graph, operations, constant, types, graphs)
        there |= read.scalars(tensors, 5, 1) > 0
        there[inputs] = True
        _check_order(nodes, there)
        return _Graph(tensors, types, inputs, outputs, nodes)

    def _nodes(
        self,
        graph: Tables,
        operations: list[int],
        constant: NDArray[np.bool_],
        types: NDArray[np.int64],
        graphs: int,
    ) -> Nodes:
        read = self._buffer
        nodes = read.tables(graph, 3)
        codes = read.scalars(nodes, 0, 4)
        if np.count_nonzero(codes >= len(operations)):
            refuse("a node names no operation", f"{len(operations)} operations")
        if np.count_nonzero(read.scalars(nodes, 9, 8)):
            refuse("it has options outside of it", "large custom options")
        self._indices(nodes, 8, len(constant), 0)
        numbers = np.array(operations, np.int64)[codes]
        self._runs.append(check_options(read, nodes, numbers, graphs))
        return Nodes(
            numbers,
            *self._indices(nodes, 1, len(constant), -1),  # which stands for an input that is left out
            *self._indices(nodes, 2, len(constant), 0),
            constant,
            types,
        )

    def _check_constants(
        self, tensors: Tables, types: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Check that constants are as large as they must be; return which tensors are constant, or without elements."""
        read, lengths = self._buffer, self._lengths
        constants = read.scalars(tensors, 2, 4)
        if np.count_nonzero(constants >= len(lengths)):
            refuse("a tensor names no buffer", int(constants.max()))
        shapes = read.vectors(tensors, 0, 4)
        if max(shapes.length.max(initial=0), read.vectors(tensors, 7, 4).length.max(initial=0)) > _MAX_RANK:
            refuse("a tensor has too many dimensions", f"more than {_MAX_RANK}")
        elements = np.ones(len(tensors))  # of floating point: the product of what a file claims may be anything
        for axis in range(int(shapes.length.max(initial=0))):
            there = shapes.length > axis
            sizes = read.integers(shapes.start[there] + 4 * axis)
            if np.count_nonzero(sizes < 0):
                refuse("a tensor has a negative size", int(sizes.min()))
            elements[there] *= sizes
        wanted = np.ceil(elements * _ELEMENT_BYTES[types])
        if np.count_nonzero(wanted > _LARGEST_BYTES):
            refuse("a tensor is larger than any memory", f"{wanted.max():.3g} bytes")
        constant = lengths[constants] > 0
        wrong = int((constant & (_ELEMENT_BYTES[types] > 0) & (wanted != lengths[constants])).sum())
        if wrong:
            refuse("constants have another size than their shape says", f"{wrong} tensors")
        for place in np.flatnonzero(constant & (types == _STRING)).tolist():
            self._check_text(int(constants[place]))
        return constant, constant | (elements == 0)

    def _check_text(self, constant: int) -> None:
        read, one = self._buffer, self._buffers.one(constant)
        vectors, size = read.vectors(one, 0, 1), int(self._lengths[constant])
        if not vectors.length[0]:
            refuse("a constant of texts cannot be checked", "it lies behind the tables")
        check_text(read.integers(int(vectors.start[0]) + 4 * np.arange(size // 4)), size)

    def _indices(
        self, owners: Tables, field: int, count: int, least: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tensors that all owners name in a field, in one row, and how many each names."""
        vectors = self._buffer.vectors(owners, field, 4)
        found = self._buffer.integers(self._buffer.flat(vectors))
        if np.count_nonzero((found < least) | (found >= count)):
            refuse("a node or a graph names no tensor", f"{count} tensors")
        return found, vectors.length

    def _signatures(self) -> dict[str, Signature]:
        read = self._buffer
        tables = read.tables(self._root, 7)
        found = {}
        for place in range(len(tables)):
            one = tables.one(place)
            graph = int(read.scalars(one, 4, 4)[0])
            if graph >= len(self._graphs):
                refuse("a signature names no graph", graph)
            name = read.text(one, 2)
            if name in found or not name.isprintable():
                refuse("a signature's name is taken or cannot be printed", ascii(name))
            found[name] = Signature(self._named(one, 0, graph), self._named(one, 1, graph))
        return found

    def _named(self, signature: Tables, field: int, graph: int) -> dict[str, Port]:
        read = self._buffer
        entries = read.tables(signature, field)
        places = read.scalars(entries, 1, 4).tolist()
        ports = {read.text(entries.one(i), 0): self._port(graph, place) for i, place in enumerate(places)}
        if len(ports) != len(places) or not all(name and name.isprintable() for name in ports):
            refuse("a signature's names are taken or cannot be printed", f"{len(places)} names")
        return dict(sorted(ports.items()))

    def _main(self) -> Signature:
        """Return what a file without signatures does: its inputs and outputs are called as its tensors are."""
        graph = self._graphs[0]

        def side(indices: NDArray[np.int64], kind: str) -> dict[str, Port]:
            places: list[int] = indices.tolist()
            names = [self._buffer.text(graph.tensors.one(place), 3) for place in places]
            if len(set(names)) != len(names) or not all(name and name.isprintable() for name in names):
                names = [f"{kind}_{number}" for number in range(len(places))]
            return {name: self._port(0, place) for name, place in zip(names, places, strict=True)}

        return Signature(side(graph.inputs, "input"), side(graph.outputs, "output"))

    def _port(self, graph: int, place: int) -> Port:
        read, tensors = self._buffer, self._graphs[graph].tensors
        if place >= len(tensors):
            refuse("a signature names no tensor", place)
        dtype = _TYPES[int(self._graphs[graph].types[place])][0]
        if not dtype:
            refuse("an input or output has a type that arrays cannot carry", f"tensor {place}")
        one = tensors.one(place)
        dims = read.vectors(one, 7, 4)  # as declared, -1 where any size will do
        if not dims.length[0]:
            dims = read.vectors(one, 0, 4)
        sizes: list[int] = read.integers(read.flat(dims)).tolist()
        return Port(TensorSpec(dtype, tuple(None if size < 0 else size for size in sizes)), f"{graph}:{place}")

    def _metadata(self, buffers: Tables, name: str) -> bytes:
        entries = self._buffer.tables(self._root, 6)
        for place in range(len(entries)):
            one = entries.one(place)
            if self._buffer.text(one, 0) == name:
                index = int(self._buffer.scalars(one, 1, 4)[0])
                if index >= len(buffers):
                    refuse("metadata name no buffer", index)
                return self._buffer.content(buffers.one(index), 0)
        return b""


def _check_order(nodes: Nodes, there: NDArray[np.bool_]) -> None:
    """Check that nodes read what is there by then, and write no constants: LiteRT runs them in their order."""
    count = len(nodes.operations)
    writers, readers = (np.repeat(np.arange(count), many) for many in (nodes.output_counts, nodes.input_counts))
    if np.count_nonzero(nodes.constant[nodes.outputs]):
        refuse("a node writes a constant", f"{count} nodes")
    made = np.full(len(there), count)
    np.minimum.at(made, nodes.outputs, writers)
    made[there] = -1
    read = nodes.inputs >= 0
    if np.count_nonzero(made[nodes.inputs[read]] >= readers[read]):
        refuse("a node reads what no node before it makes", f"{count} nodes")
