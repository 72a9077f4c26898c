"""The `native` engine: the bundle's graph in a TensorFlow session, its weights mapped and fed without a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from glowplug.bundle import allowlist
from glowplug.bundle.reader import Bundle
from glowplug.core.errors import ClosedError
from glowplug.core.manifest import InitStep, Manifest, Signature
from glowplug.runtime import library
from glowplug.runtime.config import SessionConfig

from .early import open_early
from .engine import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from glowplug.runtime.session import PreparedCall


_REF_VARIABLES = ("VariableV2", "Variable", "TemporaryVariable")


class NativeEngine:
    """A `native` bundle in memory."""

    def __init__(self, bundle: Bundle, options: Options) -> None:
        opening = open_early()  # read, check and map the bundle meanwhile
        try:
            self._map = bundle.map_weights()
            definition = bundle.graph_bytes()
            scanned = None if options.op_libraries else allowlist.check_graph(definition, bundle.manifest)
        finally:
            if opening is not None:
                opening.join()
        opened = library.open_library()

        from glowplug.runtime.fingerprint import fingerprint
        from glowplug.runtime.oplibrary import custom_ops

        extra = custom_ops(options.op_libraries)
        here, packed = fingerprint(opened.version), bundle.manifest.fingerprint
        self.notes: list[str] = []
        portable = here != packed
        if portable:
            definition = bundle.graph_bytes(portable=True)
            self.notes.append(f"packed for {_difference(packed, here)}: optimised again for this machine")
        if portable or scanned is None:
            scanned = allowlist.check_graph(definition, bundle.manifest, extra_ops=extra)
        self._copy_outputs = any(node.op in _REF_VARIABLES for node in scanned.nodes.values())
        self.signatures: Mapping[str, Signature] = bundle.manifest.signatures
        config = SessionConfig(options.intra_op_threads, options.inter_op_threads, optimize=portable)
        self._start(bundle, definition, config)

    def _start(self, bundle: Bundle, definition: bytes, config: SessionConfig) -> None:
        import numpy as np

        from glowplug.runtime.graph import Graph
        from glowplug.runtime.session import Session
        from glowplug.runtime.tensor import MappedMemory, Tensor

        manifest = bundle.manifest
        self._tensor = Tensor.from_array
        self._session: Session | None = Session(Graph(definition), config)
        self.memory = MappedMemory(np.frombuffer(self._map, np.uint8).ctypes.data, len(self._map), self._map)
        self.weights = [self.memory.tensor(t.offset, t.nbytes, t.dtype, t.shape) for t in manifest.tensors]
        try:
            for step in manifest.initializers:
                self._initialize(bundle, step)
            self._calls = {name: self._prepare(manifest, s) for name, s in manifest.signatures.items()}
        except BaseException:
            self.close()
            raise

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call; safe from many threads at once."""
        if self._session is None:
            raise ClosedError("the model is closed", remedy="load it again")
        call, dtypes = self._calls[signature]
        tensors = [self._tensor(array, dtype) for array, dtype in zip(inputs, dtypes, strict=True)]
        try:
            return call.run(tensors, self.memory, copy=self._copy_outputs)
        finally:
            for tensor in tensors:
                tensor.close()

    def close(self) -> None:
        """Close the session and give the weights back. The map goes when nothing points into it any more."""
        session, self._session = self._session, None
        if session is None:
            return
        session.close()
        for tensor in self.weights:
            tensor.close()
        if self.memory.released == self.memory.lent:
            self.memory.forget()

    def _prepare(self, manifest: Manifest, signature: Signature) -> tuple[PreparedCall, list[str]]:
        assert self._session is not None
        feeds = [port.tensor for port in signature.inputs.values()]
        feeds += [manifest.tensors[index].node for index in signature.weights]
        fetches = [port.tensor for port in signature.outputs.values()]
        constants = [self.weights[index] for index in signature.weights]
        call = self._session.prepare(feeds, fetches, signature.targets, constants)
        return call, [port.spec.dtype for port in signature.inputs.values()]

    def _initialize(self, bundle: Bundle, step: InitStep) -> None:
        import numpy as np

        from glowplug.runtime.tensor import Tensor

        assert self._session is not None
        manifest = bundle.manifest
        paths = [np.array(str(bundle.asset_path(asset)), object) for asset in manifest.assets]
        assets = [Tensor.from_array(path, "string") for path in paths]
        feeds = [asset.node for asset in manifest.assets] + [manifest.tensors[index].node for index in step.weights]
        constants = [*assets, *(self.weights[index] for index in step.weights)]
        try:
            self._session.prepare(feeds, (), step.targets, constants).run(())
        finally:
            for tensor in assets:
                tensor.close()


def _difference(packed: Any, here: Any) -> str:
    if packed is None:
        return "no machine in particular"
    if packed.tensorflow != here.tensorflow:
        return f"TensorFlow {packed.tensorflow} (this is {here.tensorflow})"
    if packed.cpu != here.cpu:
        return "another processor"
    return "other TensorFlow settings"
