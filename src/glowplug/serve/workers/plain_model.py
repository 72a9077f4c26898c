"""A plain SavedModel directory behind the same face as a bundle: TensorFlow's own loader, through the C API.

The operator named the path, so it is trusted as a program is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from glowplug.core.dtypes import BY_CODE
from glowplug.core.errors import NotAModelError, TensorFlowError, UnsupportedModelError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.loader.engines.savedmodel import SERVE, SavedModelCalls, open_saved_model
from glowplug.runtime.config import SessionConfig
from glowplug.serve.wire.messages import message

_INTERNAL = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
_FIRST_REF_TYPE = 100  # DT_FLOAT_REF and the like are the plain type plus 100


class PlainModel(SavedModelCalls):
    """A loaded SavedModel. Run it like any engine of the loader."""

    def __init__(self, directory: Path, config: SessionConfig, tags: Sequence[str] = SERVE) -> None:
        try:
            session, serialized = open_saved_model(directory, config, tags)
        except TensorFlowError as error:
            raise NotAModelError(
                "TensorFlow cannot load this SavedModel",
                seen=str(error.seen).splitlines()[0][:300].replace(str(directory), directory.name),
                remedy="export the model again",
            ) from error
        notes: list[str] = []
        graph = message("tensorflow.MetaGraphDef").FromString(serialized)
        placeholders = {node.name: node for node in graph.graph_def.node if node.op == "Placeholder"}
        found = dict[str, Signature]()
        for name, declared in sorted(graph.signature_def.items()):
            if name in _INTERNAL:
                continue
            try:
                ports = (_ports(declared.inputs, placeholders), _ports(declared.outputs, {}))
                found[name] = Signature(*ports, method=declared.method_name)
            except UnsupportedModelError as error:
                notes.append(f"signature {name!r} is not served: {error}")
        if not found:
            session.close()
            raise NotAModelError("this SavedModel has no signature to call", seen=directory.name)
        super().__init__(session, found)
        self.notes += notes


def _ports(declared: Any, placeholders: Mapping[str, Any]) -> dict[str, Port]:
    """Return the declared inputs or outputs; where an exporter declared a wrong type, the placeholder knows better."""
    ports = {}
    for name, info in sorted(declared.items()):
        if info.WhichOneof("encoding") not in ("name", None):
            raise UnsupportedModelError("it uses sparse or composite tensors", seen=name)
        node, _, index = info.name.partition(":")
        placeholder = placeholders.get(node) if index in ("", "0") else None
        code = placeholder.attr["dtype"].type if placeholder else info.dtype
        dtype = BY_CODE.get(code % _FIRST_REF_TYPE)
        if dtype is None:
            raise UnsupportedModelError("it has a type that arrays cannot carry", seen=f"{name}: {info.dtype}")
        shape = info.tensor_shape
        if placeholder and not shape.dim and not shape.unknown_rank:
            shape = placeholder.attr["shape"].shape
        dims = None if shape.unknown_rank else tuple(d.size if d.size >= 0 else None for d in shape.dim)
        ports[name] = Port(TensorSpec(dtype.name, dims), info.name)
    return ports
