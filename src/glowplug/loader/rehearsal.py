"""Does once what hosting any model begins with, so that what it takes is there when a model comes.

TensorFlow starts its threads, oneDNN makes its first convolution, and what Python runs on the way is in memory. Runs in
a child of a native standby.
"""

from __future__ import annotations

import numpy as np

from glowplug.bundle import allowlist, layout, schema
from glowplug.core.disk.digest import sha256
from glowplug.core.manifest import FileEntry, Manifest
from glowplug.core.protobuf_wire import bytes_field
from glowplug.runtime import graphdef
from glowplug.runtime.config import SessionConfig
from glowplug.runtime.fingerprint import fingerprint
from glowplug.runtime.graph import Graph
from glowplug.runtime.library import is_installed, open_library
from glowplug.runtime.session import Session
from glowplug.runtime.tensor import Tensor

_IMAGE, _FILTER = (1, 16, 16, 16), (3, 3, 16, 16)


def exercise() -> None:
    """Parse, check and run a graph of one convolution, where there is a TensorFlow to run it."""
    if not is_installed():
        return
    definition = _convolution()
    files = {layout.GRAPH: FileEntry(len(definition), sha256(definition))}
    allowlist.check_graph(definition, schema.parse(schema.dump(Manifest("native", {}, files))))
    fingerprint(open_library().version)
    session = Session(Graph(definition), SessionConfig())
    fed = [Tensor.from_array(np.ones(shape, np.float32), "float32") for shape in (_IMAGE, _FILTER)]
    session.prepare(["image:0", "filter:0"], ["result:0"]).run(fed)
    session.close()
    for tensor in fed:
        tensor.close()


def _convolution() -> bytes:
    """Return a GraphDef. Values of attributes are: a type, a list of integers, a string."""
    ones, same = bytes_field(1, bytes_field(3, b"\x01\x01\x01\x01")), bytes_field(2, b"SAME")
    return graphdef.graph(
        graphdef.node("image", "Placeholder", dtype=graphdef.FLOAT32),
        graphdef.node("filter", "Placeholder", dtype=graphdef.FLOAT32),
        graphdef.node("result", "Conv2D", "image", "filter", T=graphdef.FLOAT32, strides=ones, padding=same),
    )
