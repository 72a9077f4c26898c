"""A SavedModel as stock TensorFlow loads it: its graph and signatures, its variables' values, its answers.

It is loaded the way TensorFlow Serving does, through the C API, so every form that TensorFlow reads works (TF1 and
TF2, binary, text and chunked), and the answers are the ones that users get today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from tensorflow.core.framework import graph_pb2, node_def_pb2, types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from glowplug.convert.calls.hopeless import unregistered_op
from glowplug.convert.graph.attributes import dtype_attr, shape_attr
from glowplug.convert.graph.editor import canonical
from glowplug.core.dtypes import BY_CODE
from glowplug.core.errors import NotAModelError, TensorFlowError, UnsupportedModelError
from glowplug.core.manifest import Port, TensorSpec
from glowplug.loader.engines.savedmodel import open_saved_model
from glowplug.runtime.config import SessionConfig
from glowplug.runtime.tensor import Tensor

_INITIALIZER = "__saved_model_init_op"
_INTERNAL = frozenset({_INITIALIZER, "__saved_model_train_op"})
_MAX_METHOD_CHARS = 200
_MAX_NAME_CHARS = 4096  # of a text in a manifest
_INT64 = 9  # DT_INT64
_FIRST_REF_TYPE = 100  # DT_FLOAT_REF and the like are the plain type plus 100


@dataclass(frozen=True, slots=True)
class SourceSignature:
    """A signature as the SavedModel declares it; its ports name tensors of the SavedModel's graph."""

    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    method: str = ""


class SavedModel:
    """A loaded SavedModel. Use it in a `with` block: it holds all weights in memory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._added = 0
        try:
            self._session, serialized = open_saved_model(directory, SessionConfig(optimize=True))
        except TensorFlowError as error:
            unregistered = unregistered_op(error)
            if unregistered is not None:
                raise unregistered from error
            raise NotAModelError(
                "TensorFlow cannot load this SavedModel",
                seen=f"{directory} ({str(error.seen).splitlines()[0][:300]})",
                remedy="export the model again with `tf.saved_model.save` or `model.export`",
            ) from error
        self.meta_graph: Any = meta_graph_pb2.MetaGraphDef.FromString(serialized)
        placeholders = {node.name: node for node in self.meta_graph.graph_def.node if node.op == "Placeholder"}
        self.signatures = {
            name: SourceSignature(
                _ports(declared.inputs, placeholders), _ports(declared.outputs, {}), _method(declared.method_name)
            )
            for name, declared in sorted(self.meta_graph.signature_def.items())
            if name not in _INTERNAL
        }
        for name in self.signatures:
            if not _can_be_kept(name):
                raise _unnamed(name)
        if not self.signatures:
            self._session.close()
            raise NotAModelError(
                "this SavedModel has no signature to call",
                seen=directory,
                remedy="save it with `signatures=...`, or export a built Keras model",
            )

    def __enter__(self) -> SavedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    @property
    def initializer(self) -> str | None:
        """The node that runs after the variables are restored."""
        if _INITIALIZER in self.meta_graph.signature_def:
            name: str = self.meta_graph.signature_def[_INITIALIZER].outputs[_INITIALIZER].name
            return canonical(name)
        for key in ("saved_model_main_op", "legacy_init_op"):
            if key in self.meta_graph.collection_def:
                return canonical(self.meta_graph.collection_def[key].node_list.value[0])
        return None

    def assets(self) -> dict[str, Path]:
        """Return the constant tensors that stand for file names, and the files."""
        declared = list(self.meta_graph.asset_file_def)
        if not declared and "saved_model_assets" in self.meta_graph.collection_def:
            for packed in self.meta_graph.collection_def["saved_model_assets"].any_list.value:
                entry = meta_graph_pb2.AssetFileDef()
                packed.Unpack(entry)
                declared.append(entry)
        folder = self.directory / "assets"
        return {canonical(entry.tensor_info.name): folder / entry.filename for entry in declared}

    def call(self, signature: str, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Answer a call as stock TensorFlow does."""
        declared = self.signatures[signature]
        feeds = [port.tensor for port in declared.inputs.values()]
        fetches = [port.tensor for port in declared.outputs.values()]
        tensors = [Tensor.from_array(inputs[name], port.spec.dtype) for name, port in declared.inputs.items()]
        try:
            results = self._session.prepare(feeds, fetches).run(tensors, copy=True)
        finally:
            for tensor in tensors:
                tensor.close()
        return dict(zip(declared.outputs, results, strict=True))

    def fetch(self, tensors: Sequence[str]) -> list[NDArray[Any]]:
        """Return the values of tensors that need no input."""
        return self._session.prepare((), tensors).run(())

    def read_variables(self, nodes: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the values of variables, given by the graph nodes that make them."""
        readers = [
            node_def_pb2.NodeDef(op="ReadVariableOp", input=[node.name], attr={"dtype": node.attr["dtype"]})
            for node in nodes
            if node.op == "VarHandleOp"
        ]
        added = iter(self._extend(readers))
        return self.fetch([next(added) if node.op == "VarHandleOp" else node.name for node in nodes])

    def export_table(self, handle: str, key_dtype: int, value_dtype: int) -> list[NDArray[Any]]:
        """Return the keys and values of a lookup table."""
        types = {"Tkeys": dtype_attr(key_dtype), "Tvalues": dtype_attr(value_dtype)}
        (name,) = self._extend([node_def_pb2.NodeDef(op="LookupTableExportV2", input=[handle], attr=types)])
        return self.fetch([f"{name}:0", f"{name}:1"])

    def _extend(self, nodes: Sequence[Any]) -> list[str]:
        """Add nodes that read resources of the graph; returns their names."""
        links = {reference: reference for node in nodes for reference in node.input}
        for node in nodes:
            self._added += 1
            node.name = f"glowplug_read/{self._added}"
        self._session.graph.extend(graph_pb2.GraphDef(node=nodes).SerializeToString(), links)
        return [node.name for node in nodes]


def _method(name: str) -> str:
    """Return a method's name if a manifest can keep it."""
    return name if name.isprintable() and len(name) <= _MAX_METHOD_CHARS else ""


def _can_be_kept(name: str) -> bool:
    """Say whether a manifest can hold a name: it ends up in messages and on terminals."""
    return 0 < len(name) <= _MAX_NAME_CHARS and name.isprintable()


def _unnamed(name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        "a signature, or an input or output of one, has an empty, overlong or unprintable name",
        seen=ascii(name[:_MAX_METHOD_CHARS]),
        remedy="export the model with other names for its signatures and their outputs",
    )


def _ports(declared: Any, placeholders: Mapping[str, Any]) -> dict[str, Port]:
    """Return the declared inputs or outputs.

    Older exporters declare wrong types, and no dimensions for shapes they do not know: the placeholder knows better.
    """
    ports: dict[str, Port] = {}
    for name, info in _components(declared):
        if not _can_be_kept(name):
            raise _unnamed(name)
        if name in ports:
            raise UnsupportedModelError("two parts of a signature have the same name", seen=name)
        tensor = canonical(info.name)
        placeholder = placeholders.get(tensor)
        code = placeholder.attr["dtype"].type if placeholder else info.dtype
        dtype = BY_CODE.get(code % _FIRST_REF_TYPE)
        if dtype is None:
            kind = types_pb2.DataType.Name(info.dtype)
            raise UnsupportedModelError(
                "a signature has a type that arrays cannot carry",
                seen=f"{name}: {kind}",
                remedy="let the signature answer with `tf.bitcast` to a type that numpy has, or with decoded numbers",
            )
        shape = info.tensor_shape
        if placeholder and not shape.dim and not shape.unknown_rank:
            shape = placeholder.attr["shape"].shape
        dims = None if shape.unknown_rank else tuple(d.size if d.size >= 0 else None for d in shape.dim)
        ports[name] = Port(TensorSpec(dtype.name, dims), tensor)
    return ports


def _components(declared: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a signature. The parts of a ragged or sparse one are `x`, `x_1` ..., as in functions."""
    for name, info in sorted(declared.items()):
        kind = info.WhichOneof("encoding")
        if kind == "composite_tensor":
            parts = list(info.composite_tensor.components)
        elif kind == "coo_sparse":
            sparse = info.coo_sparse
            names = (sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name)
            shapes = [[-1, -1], [-1], [-1]]
            parts = [
                meta_graph_pb2.TensorInfo(name=part, dtype=dtype, tensor_shape=shape_attr(shape).shape)
                for part, dtype, shape in zip(names, (_INT64, info.dtype, _INT64), shapes, strict=True)
            ]
        else:
            parts = [info]
        for place, part in enumerate(parts):
            yield f"{name}_{place}" if place else name, part
