"""Writes small graphs by hand, as the bytes of a `GraphDef`: for what Glowplug runs to find out about a machine."""

from __future__ import annotations

from glowplug.core.protobuf_wire import bytes_field

FLOAT32, BFLOAT16 = b"\x30\x01", b"\x30\x0e"  # values of attributes that are types


def graph(*nodes: bytes) -> bytes:
    """Return the graph of these nodes."""
    return b"".join(bytes_field(1, node) for node in nodes)


def node(name: str, op: str, *inputs: str, **attributes: bytes) -> bytes:
    """Return a node; the values of its attributes are encoded as `AttrValue`s."""
    texts = [bytes_field(1, name.encode()), bytes_field(2, op.encode())]
    texts += [bytes_field(3, each.encode()) for each in inputs]
    entries = [bytes_field(1, key.encode()) + bytes_field(2, value) for key, value in attributes.items()]
    return b"".join(texts) + b"".join(bytes_field(5, one) for one in entries)
