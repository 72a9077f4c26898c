"""A plain SavedModel directory behind the same face as a bundle: TensorFlow's own loader, through the C API.

The operator named the path, so it is trusted as a program is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from glowplug.core.dtypes import BY_CODE
from glowplug.core.errors import ClosedError, NotAModelError, TensorFlowError, UnsupportedModelError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.runtime.config import SessionConfig

from .messages import message

FILES = ("saved_model.pb", "saved_model.pbtxt", "saved_model.cpb")
_INTERNAL = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
_FIRST_REF_TYPE = 100  # DT_FLOAT_REF and the like are the plain type plus 100


class PlainModel:
    """A loaded SavedModel. Run it like any engine of the loader."""

    def __init__(self, directory: Path, config: SessionConfig) -> None:
        from glowplug.runtime.session import Session

        try:
            session, serialized = Session.from_saved_model(directory, config)
        except TensorFlowError as error:
            raise NotAModelError(
                "TensorFlow cannot load this SavedModel",
                seen=str(error.seen).splitlines()[0][:300].replace(str(directory), directory.name),
                remedy="export the model again",
            ) from error
        self.notes: list[str] = []
        self._session: Session | None = session
        graph = message("tensorflow.MetaGraphDef").FromString(serialized)
        placeholders = {node.name: node for node in graph.graph_def.node if node.op == "Placeholder"}
        found = dict[str, Signature]()
        for name, declared in sorted(graph.signature_def.items()):
            if name in _INTERNAL:
                continue
            try:
                found[name] = Signature(_ports(declared.inputs, placeholders), _ports(declared.outputs, {}))
            except UnsupportedModelError as error:
                self.notes.append(f"signature {name!r} is not served: {error}")
        self.signatures: Mapping[str, Signature] = found
        self._calls = {
            name: session.prepare([p.tensor for p in s.inputs.values()], [p.tensor for p in s.outputs.values()])
            for name, s in found.items()
        }
        if not found:
            self.close()
            raise NotAModelError("this SavedModel has no signature to call", seen=directory.name)

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call."""
        from glowplug.runtime.tensor import Tensor

        if self._session is None:
            raise ClosedError("the model is closed")
        ports = self.signatures[signature].inputs.values()
        tensors = [Tensor.from_array(array, port.spec.dtype) for array, port in zip(inputs, ports, strict=True)]
        try:
            return self._calls[signature].run(tensors, copy=True)
        finally:
            for tensor in tensors:
                tensor.close()

    def close(self) -> None:
        """Close the session. Closing twice is harmless."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


def is_saved_model(directory: Path) -> bool:
    """Say whether a directory holds a SavedModel."""
    return any((directory / name).is_file() for name in FILES)


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
