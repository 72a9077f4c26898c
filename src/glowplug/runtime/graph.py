"""`TF_Graph`: imports a GraphDef and finds its tensors. Creating one starts a thread: never fork afterwards."""

from __future__ import annotations

from collections.abc import Mapping

from glowplug.core.errors import ClosedError, UnknownNodeError

from .fork import is_forked, note_start
from .library import Library, open_library
from .status import checked
from .symbols import Output


class Graph:
    """One `TF_Graph`, owned until `close()`."""

    def __init__(self, definition: bytes | None = None) -> None:
        note_start()
        self._library: Library = open_library()
        self._pointer: int | None = self._library.blocking.TF_NewGraph()
        if definition is not None:
            try:
                self.extend(definition)
            except BaseException:
                self.close()
                raise

    @property
    def pointer(self) -> int:
        """The address of the `TF_Graph`, for calls within this layer."""
        if self._pointer is None:
            raise ClosedError("the graph is closed")
        return self._pointer

    def extend(self, definition: bytes, links: Mapping[str, str] | None = None) -> None:
        """Import more nodes. `links` names tensors of this graph that the new nodes read: `there -> here`.

        The nodes of a running session's graph become known to it with its next run.
        """
        api = self._library.api
        buffer = api.TF_NewBufferFromString(definition, len(definition))
        options = api.TF_NewImportGraphDefOptions()
        try:
            for there, here in (links or {}).items():
                node, _, index = there.partition(":")
                api.TF_ImportGraphDefOptionsAddInputMapping(options, node.encode(), int(index or 0), self.output(here))
            with checked(self._library, "TensorFlow refused the graph") as status:
                self._library.blocking.TF_GraphImportGraphDef(self.pointer, buffer, options, status)
        finally:
            api.TF_DeleteImportGraphDefOptions(options)
            api.TF_DeleteBuffer(buffer)

    def output(self, tensor: str) -> Output:
        """Return the output that `node:index` names."""
        node, _, index = tensor.partition(":")
        operation = self.operation(node)
        number = int(index or 0)
        if not 0 <= number < self._library.api.TF_OperationNumOutputs(operation):
            raise UnknownNodeError("the graph has no such tensor", seen=tensor)
        return Output(operation, number)

    def operation(self, node: str) -> int:
        """Return the address of the `TF_Operation` of that name."""
        operation: int | None = self._library.api.TF_GraphOperationByName(self.pointer, node.encode())
        if operation is None:
            raise UnknownNodeError("the graph has no such node", seen=node)
        return operation

    def close(self) -> None:
        """Delete the graph. Closing twice is harmless."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None and not is_forked():
            self._library.blocking.TF_DeleteGraph(pointer)
