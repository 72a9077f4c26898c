"""Lists the operations of a serialized GraphDef without protobuf: names, ops and inputs of every node.

It reads the wire format strictly. Where protobuf's own parser is lenient (a field set twice, a number written
longer than needed, a known field of another type), the scan refuses, so that what was scanned is what
TensorFlow will see. Attributes are stepped over.

Field numbers, from TensorFlow's graph.proto, function.proto, op_def.proto and node_def.proto:
    GraphDef            node 1, library 2, version 3, versions 4, debug_info 5
    FunctionDefLibrary  function 1, gradient 2, registered_gradients 3
    FunctionDef         signature 1 (an OpDef: name 1), node_def 3, ret 4, control_ret 6, ...
    NodeDef             name 1, op 2, input 3, device 4, attr 5, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from glowplug.core.errors import GraphMalformedError
from glowplug.core.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, read_varint

MAX_GRAPH_BYTES = 2**31 - 1  # protobuf's own limit for one message


class Node(NamedTuple):  # a tuple, since thousands are made and a frozen dataclass takes three times as long
    """One node: `inputs` are as written, `name`, `name:1` or `^name`."""

    name: str
    op: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the graph's library."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class GraphScan:
    """The nodes of the main graph by name, and the library's functions by name."""

    nodes: dict[str, Node]
    functions: dict[str, Function]


def scan(data: bytes) -> GraphScan:
    """Return what the graph in `data` consists of, or raise `GraphMalformedError`."""
    if len(data) > MAX_GRAPH_BYTES:
        _refuse("it is larger than 2 GiB", len(data))
    try:
        return _graph(data)
    except UnicodeDecodeError as error:
        _refuse("a name is not UTF-8", error)
    except IndexError:
        _refuse("it is cut off", f"{len(data)} bytes")


def byte_fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of those fields of any message that hold bytes: messages, strings, packed numbers."""
    return _messages(data, start, end, set(), set())


def _graph(data: bytes) -> GraphScan:
    nodes: dict[str, Node] = {}
    functions: dict[str, Function] = {}
    for number, start, end in _messages(data, 0, len(data), {1, 2, 4, 5}, {3}):
        if number == 1:
            node = _node(data, start, end)
            if node.name in nodes:
                _refuse("two nodes have the same name", node.name)
            nodes[node.name] = node
        elif number == 2:
            for field, inner_start, inner_end in _messages(data, start, end, {1, 2, 3}, set()):
                if field == 1:
                    function = _function(data, inner_start, inner_end)
                    if function.name in functions:
                        _refuse("two functions have the same name", function.name)
                    functions[function.name] = function
    return GraphScan(nodes, functions)


def _function(data: bytes, start: int, end: int) -> Function:
    names: list[str] = []
    nodes: list[Node] = []
    signatures = 0
    for number, inner_start, inner_end in _messages(data, start, end, set(range(1, 9)), set()):
        if number == 1:
            signatures += 1
            names += [
                data[s:e].decode()
                for field, s, e in _messages(
                    data, inner_start, inner_end, {1, 2, 3, 4, 5, 6, 8, 20}, {16, 17, 18, 19, 21}
                )
                if field == 1
            ]
        elif number == 3:
            nodes.append(_node(data, inner_start, inner_end))
    if signatures != 1 or len(names) != 1:
        _refuse("a function does not have exactly one name", names)
    return Function(names[0], tuple(nodes))


def _node(data: bytes, position: int, end: int) -> Node:
    """Read one NodeDef. Nearly all fields of a graph are here, so the path of the common ones is short."""
    name = op = None
    inputs: list[str] = []
    while position < end:
        tag = data[position]
        length = data[position + 1]
        start = position + 2
        if tag not in _NODE_TAGS or length > 127:
            tag, length, start = _node_field(data, position, end)
        position = start + length
        if position > end:
            _refuse("a field reaches past its message", f"byte {start}")
        if tag == _NODE_INPUT:
            inputs.append(data[start:position].decode())
        elif tag == _NODE_NAME:
            if name is not None:
                _refuse("a node has two names", name)
            name = data[start:position].decode()
        elif tag == _NODE_OP:
            if op is not None:
                _refuse("a node has two ops", op)
            op = data[start:position].decode()
    if not name or not op:
        _refuse("a node has no name or no op", name or op)
    return Node(name, op, tuple(inputs))


_NODE_NAME, _NODE_OP, _NODE_INPUT = (number << 3 | BYTES for number in (1, 2, 3))
_NODE_TAGS = frozenset(number << 3 | BYTES for number in range(1, 8))


def _node_field(data: bytes, position: int, end: int) -> tuple[int, int, int]:
    """Return tag, length and start of a field of a node that is long or rare."""
    number, wire, start = _tag(data, position, end)
    tag = number << 3 | wire
    if wire == BYTES:
        return tag, *_varint(data, start, end)
    if number <= 7:
        _refuse("a field of a node has the wrong type", number)
    return tag, 0, _skip(data, wire, start, end)


def _messages(
    data: bytes, position: int, end: int, messages: set[int], varints: set[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of a message's fields of type bytes; check the types of the known ones."""
    while position < end:
        number, wire, position = _tag(data, position, end)
        if (number in messages and wire != BYTES) or (number in varints and wire != VARINT):
            _refuse("a field has the wrong type", f"field {number} at byte {position}")
        if wire != BYTES:
            position = _skip(data, wire, position, end)
            continue
        length, start = _varint(data, position, end)
        position = start + length
        if position > end:
            _refuse("a field reaches past its message", f"byte {start}")
        yield number, start, position


def _tag(data: bytes, position: int, end: int) -> tuple[int, int, int]:
    tag, position = _varint(data, position, end)
    if not 8 <= tag < 2**32:
        _refuse("a field has no valid number", tag)
    return tag >> 3, tag & 7, position


def _skip(data: bytes, wire: int, position: int, end: int) -> int:
    if wire == VARINT:
        return _varint(data, position, end)[1]
    if wire not in (FIXED64, FIXED32):
        _refuse("a field has a type that no graph uses", wire)
    position += 8 if wire == FIXED64 else 4
    if position > end:
        _refuse("a number is cut off", f"byte {position}")
    return position


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a number in its shortest form: a longer one could mean something else to another parser."""
    try:
        value, after = read_varint(data, position, end)
    except ValueError as error:
        _refuse("a number is cut off", error)
    if data[after - 1] == 0 and after - position > 1:
        _refuse("a number is longer than it need be", f"byte {position}")
    return value, after


def _refuse(what: str, seen: object) -> NoReturn:
    raise GraphMalformedError(
        f"the graph is malformed: {what}", seen=ascii(seen), remedy="fetch or pack the bundle again"
    )
