"""`TF_Session`: runs a graph. Creating one starts TensorFlow's thread pools: never fork afterwards."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from glowplug.core.disk.plain_paths import open_plainly
from glowplug.core.errors import ClosedError

from .config import SessionConfig
from .fork import check_not_forked, is_forked
from .graph import Graph
from .library import Library, open_library
from .status import checked
from .symbols import Buffer, Output
from .tensor import MappedMemory, Tensor, take_array


class Session:
    """One `TF_Session` and the graph it runs, both owned until `close()`. Safe to use from many threads at once."""

    directory: Path  # where TensorFlow finds the SavedModel, of a session that is made from one
    _folder: int | None = None  # a descriptor of the SavedModel's folder, where its path cannot be used

    def __init__(self, graph: Graph, config: SessionConfig) -> None:
        self._library = open_library()
        self.graph = graph
        with _options(config) as options, checked(self._library, "TensorFlow refused a session") as status:
            self._pointer: int | None = self._library.blocking.TF_NewSession(graph.pointer, options, status)

    @classmethod
    def from_saved_model(cls, directory: Path, config: SessionConfig, tags: Sequence[str]) -> tuple[Session, bytes]:
        """Load a SavedModel the way TensorFlow Serving does: variables restored, initialisers run.

        `tags` choose among its graphs. Returns the session and the serialized `MetaGraphDef`, with the signatures.
        """
        session = cls.__new__(cls)
        session._library = library = open_library()
        session.graph = Graph()
        session._pointer = None
        session.directory, session._folder = open_plainly(directory)
        path = str(session.directory).encode()
        chosen = (ctypes.c_char_p * len(tags))(*(tag.encode() for tag in tags))
        buffer = library.api.TF_NewBuffer()
        try:
            with (
                _options(config) as options,
                checked(library, "TensorFlow cannot load the SavedModel") as status,
            ):
                session._pointer = library.blocking.TF_LoadSessionFromSavedModel(
                    options, None, path, chosen, len(tags), session.graph.pointer, buffer, status
                )
            content = Buffer.from_address(buffer)
            return session, ctypes.string_at(content.data, content.length)
        except BaseException:
            session.graph.close()
            session._close_folder()
            raise
        finally:
            library.api.TF_DeleteBuffer(buffer)

    def prepare(
        self,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        constants: Sequence[Tensor] = (),
    ) -> PreparedCall:
        """Look up the names of a call once. The last feeds are `constants`, the same in every run."""
        return PreparedCall(self, feeds, fetches, targets, constants)

    @property
    def pointer(self) -> int:
        """The address of the `TF_Session`, for calls within this layer."""
        if self._pointer is None:
            raise ClosedError("the session is closed")
        return self._pointer

    def close(self) -> None:
        """Wait for running calls' resources, then delete session and graph. Closing twice is harmless."""
        pointer, self._pointer = self._pointer, None
        if pointer is None or is_forked():  # what the parent owns is the parent's to delete
            return
        library = self._library
        with checked(library, "TensorFlow cannot close the session") as status:
            library.blocking.TF_CloseSession(pointer, status)
        with checked(library, "TensorFlow cannot delete the session") as status:
            library.blocking.TF_DeleteSession(pointer, status)
        self.graph.close()
        self._close_folder()

    def _close_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            os.close(folder)


class PreparedCall:
    """What to feed and fetch, resolved once and run many times."""

    __slots__ = ("_constants", "_feeds", "_fetches", "_inputs", "_session", "_targets", "_values")

    def __init__(
        self,
        session: Session,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        constants: Sequence[Tensor],
    ) -> None:
        graph = session.graph
        self._session = session
        self._inputs = len(feeds) - len(constants)
        self._constants = tuple(constants)  # keeps them alive
        self._feeds = (Output * len(feeds))(*(graph.output(name) for name in feeds))
        self._fetches = (Output * len(fetches))(*(graph.output(name) for name in fetches))
        self._targets = (ctypes.c_void_p * len(targets))(*(graph.operation(name) for name in targets))
        blank = [None] * self._inputs
        self._values = (ctypes.c_void_p * len(feeds))(*blank, *(tensor.pointer for tensor in constants))

    def run(
        self, inputs: Sequence[Tensor], borrowed: MappedMemory | None = None, *, copy: bool = False
    ) -> list[NDArray[Any]]:
        """Run once and return the fetched arrays. Other threads run meanwhile, and may run the same call.

        Pass `copy` for graphs with variables of TensorFlow 1: fetching one gives its own memory, which changes later.
        """
        check_not_forked()
        library, session = self._session._library, self._session.pointer
        values = type(self._values).from_buffer_copy(self._values)
        for place, tensor in enumerate(inputs):
            values[place] = tensor.pointer
        results = (ctypes.c_void_p * len(self._fetches))()
        with checked(library, "TensorFlow refused the call") as status:
            library.blocking.TF_SessionRun(
                session,
                None,
                self._feeds,
                values,
                len(self._feeds),
                self._fetches,
                results,
                len(self._fetches),
                self._targets,
                len(self._targets),
                None,
                status,
            )
        arrays = _take_all(library, list(results), borrowed)
        return [array.copy() for array in arrays] if copy else arrays


def _take_all(library: Library, pointers: list[int], borrowed: MappedMemory | None) -> list[NDArray[Any]]:
    arrays = []
    try:
        while pointers:
            arrays.append(take_array(library, pointers.pop(0), borrowed))
    finally:
        for pointer in pointers:
            library.api.TF_DeleteTensor(pointer)
    return arrays


class _options:  # noqa: N801 - used like a function
    """`TF_SessionOptions` for the length of a block."""

    def __init__(self, config: SessionConfig) -> None:
        self._library, self._config = open_library(), config.to_bytes()

    def __enter__(self) -> int:
        api = self._library.api
        pointer: int = api.TF_NewSessionOptions()
        self._pointer = pointer
        with checked(self._library, "TensorFlow refused the session settings") as status:
            api.TF_SetConfig(pointer, self._config, len(self._config), status)
        return pointer

    def __exit__(self, *_: object) -> None:
        self._library.api.TF_DeleteSessionOptions(self._pointer)
