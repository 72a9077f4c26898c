"""The `savedmodel` engine: TensorFlow's own loader through the C API, still without `import tensorflow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glowplug.bundle import layout
from glowplug.bundle.reader import Bundle
from glowplug.bundle.seal import distrust
from glowplug.core.errors import ClosedError, UntrustedBundleError
from glowplug.core.manifest import Signature
from glowplug.runtime.config import SessionConfig

from .engine import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from glowplug.runtime.session import PreparedCall, Session


SERVE = ("serve",)  # the tag of the graph that is there to be called
FILES = ("saved_model.pb", "saved_model.pbtxt", "saved_model.cpb")


def is_saved_model(directory: Path) -> bool:
    """Say whether a directory holds a SavedModel."""
    return any((directory / name).is_file() for name in FILES)


def open_saved_model(directory: Path, config: SessionConfig, tags: Sequence[str] = SERVE) -> tuple[Session, bytes]:
    """Load a SavedModel and return its session and its serialized `MetaGraphDef`, every variable set that can be."""
    from glowplug.runtime.session import Session

    from .unrestored import restore_missing

    session, meta_graph = Session.from_saved_model(directory, config, tags)
    restore_missing(session, meta_graph, session.directory)
    return session, meta_graph


class SavedModelCalls:
    """The signatures of an open SavedModel, ready to be called. Owns the session."""

    def __init__(self, session: Session, signatures: Mapping[str, Signature]) -> None:
        self.signatures = signatures
        self.notes: list[str] = []
        self._session: Session | None = session
        try:
            self._calls = {name: _prepare(session, one) for name, one in signatures.items()}
        except BaseException:
            self.close()
            raise

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call; safe from many threads at once."""
        from glowplug.runtime.tensor import Tensor

        if self._session is None:
            raise ClosedError("the model is closed", remedy="load it again")
        ports = self.signatures[signature].inputs.values()
        tensors = [Tensor.from_array(array, port.spec.dtype) for array, port in zip(inputs, ports, strict=True)]
        try:
            call: PreparedCall = self._calls[signature]
            return call.run(tensors, copy=True)
        finally:
            for tensor in tensors:
                tensor.close()

    def close(self) -> None:
        """Close the session. Closing twice is harmless."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


class SavedModelEngine(SavedModelCalls):
    """A `savedmodel` bundle in memory. It runs whatever TensorFlow runs, so the bundle must be trusted."""

    def __init__(self, bundle: Bundle, options: Options) -> None:
        self._folder = bundle.open_folder(layout.SAVED_MODEL)  # TensorFlow reads by name, some of it later
        reason = "" if options.trust else distrust(bundle, self._folder)
        if reason:
            raise UntrustedBundleError(
                f"a bundle with the savedmodel engine can run any TensorFlow program, and {reason}",
                seen=bundle.root.name,
                remedy="pass trust=True (or --trust) if you trust where it came from, as you would a program",
            )
        for path in bundle.manifest.files:
            if path.startswith(f"{layout.SAVED_MODEL}saved_model"):
                bundle.check_file(path, self._folder, path.removeprefix(layout.SAVED_MODEL))
        from glowplug.runtime.oplibrary import load_op_library

        for name in options.op_libraries:
            load_op_library(name)
        config = SessionConfig(options.intra_op_threads, options.inter_op_threads, optimize=True)
        session, _ = open_saved_model(Path(self._folder.path), config)
        super().__init__(session, bundle.manifest.signatures)


def _prepare(session: Session, signature: Signature) -> PreparedCall:
    feeds = [port.tensor for port in signature.inputs.values()]
    fetches = [port.tensor for port in signature.outputs.values()]
    return session.prepare(feeds, fetches, signature.targets)
