"""Hosts a model for its owner in another process. Runs in a child of a native standby, which imports it ahead of time.

It ends when its owner closes the connection or dies.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from glowplug.bundle import allowlist, layout, schema
from glowplug.core.digest import sha256
from glowplug.core.errors import GlowplugError
from glowplug.core.manifest import FileEntry, Manifest

# What a child would import first is imported here, before the fork.
from glowplug.runtime import config, fingerprint, graph, oplibrary, session, tensor  # noqa: F401
from glowplug.runtime.library import open_library
from glowplug.standby import wire

from . import native, savedmodel  # noqa: F401
from .channel import INPUTS, OUTPUTS, SOCKET, Arena, describe_error
from .model import Model
from .open import load

# A GraphDef: `y` is the convolution of two placeholders, images `x` and a filter `f`.
_FLOAT = b"\x12\x02\x30\x01"
_IMAGES = b"\n\x01x\x12\x0bPlaceholder\x2a\x0b\n\x05dtype" + _FLOAT
_STRIDES = b"\x2a\x13\n\x07strides\x12\x08\n\x06\x1a\x04\x01\x01\x01\x01"
_CONVOLUTION = b"\n\x01y\x12\x06Conv2D\x1a\x01x\x1a\x01f\x2a\x07\n\x01T" + _FLOAT + _STRIDES
_CONVOLUTION += b"\x2a\x11\n\x07padding\x12\x06\x12\x04SAME"
_NODES = (_IMAGES, _IMAGES.replace(b"\x01x", b"\x01f", 1), _CONVOLUTION)
_GRAPH = b"".join(b"\n" + bytes([len(node)]) + node for node in _NODES)
_IMAGE, _FILTER = (1, 16, 16, 16), (3, 3, 16, 16)


def exercise() -> None:
    """Do once what hosting any model begins with, so that what it takes is there when a model comes."""
    files = {layout.GRAPH: FileEntry(len(_GRAPH), sha256(_GRAPH))}
    allowlist.check_graph(_GRAPH, schema.parse(schema.dump(Manifest("native", {}, files))))
    fingerprint.fingerprint(open_library().version)
    one = session.Session(graph.Graph(_GRAPH), config.SessionConfig())
    fed = [tensor.Tensor.from_array(np.ones(shape, np.float32), "float32") for shape in (_IMAGE, _FILTER)]
    one.prepare(["x:0", "f:0"], ["y:0"]).run(fed)
    one.close()


def host(path: str, options: dict[str, Any]) -> int:
    """Load the bundle and answer calls until the owner is gone."""
    connection = wire.Socket(fileno=SOCKET)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        try:
            model = load(path, **options)
        except GlowplugError as error:
            wire.send(connection, describe_error(error))
            return 0
        wire.send(connection, {"notes": list(model.info.notes)})
        inputs, outputs = Arena(INPUTS), Arena(OUTPUTS)
        while (message := wire.receive(connection)[0]) is not None:
            wire.send(connection, _answer(model, message, inputs, outputs))
    return 0


def _answer(model: Model, message: dict[str, Any], inputs: Arena, outputs: Arena) -> dict[str, Any]:
    name = message["signature"]
    ports = model.signatures[name].outputs.values()
    try:
        results = model._engine.run(name, inputs.get(message["inputs"], copy=False))
        return {"outputs": outputs.put(results, [port.spec.dtype for port in ports])}
    except GlowplugError as error:
        return describe_error(error)
