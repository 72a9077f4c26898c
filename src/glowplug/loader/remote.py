"""`RemoteModel`: a model that lives in a child of a native standby, called like any other.

A model cannot be forked into its caller, so the caller's arrays travel to it through shared memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from glowplug.bundle import layout
from glowplug.bundle.reader import Bundle, open_bundle
from glowplug.core.errors import ClosedError, StandbyError
from glowplug.core.manifest import Signature
from glowplug.standby import wire
from glowplug.standby.client.request import Begun, Declined, begin

from .channel import INPUTS, OUTPUTS, SOCKET, Arena, rebuild_error
from .model import Model

PRELOAD = ("numpy", "glowplug.loader.hosting")


class RemoteEngine:
    """The owner's end of a model that is loaded elsewhere: `wait` for it. Calls are answered one at a time."""

    def __init__(self, path: str, options: Mapping[str, Any], *, start: bool) -> None:
        self.signatures: Mapping[str, Signature] = {}
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._connection, theirs = wire.socket_pair()
        self._inputs = Arena(os.memfd_create("glowplug-inputs", os.MFD_CLOEXEC))
        self._outputs = Arena(os.memfd_create("glowplug-outputs", os.MFD_CLOEXEC))
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        given = {0: nothing, 1: 2, 2: 2, SOCKET: theirs.fileno()}
        given |= {INPUTS: self._inputs.descriptor, OUTPUTS: self._outputs.descriptor}
        try:
            begun = begin(
                "glowplug.loader.hosting:host",
                [path, dict(options)],
                start=start,
                kind="native",
                preload=PRELOAD,
                descriptors=given,
                rehearsed=not (options["intra_op_threads"] or options["inter_op_threads"]),
            )
        finally:
            theirs.close()
            os.close(nothing)
        if isinstance(begun, Declined):
            self._release()
            raise StandbyError("no standby hosts the model", seen=begun.reason)
        self._begun: Begun | None = begun
        self.pid = begun.pid

    def wait(self, signatures: Mapping[str, Signature]) -> None:
        """Return once the model, which has these signatures, can be called."""
        self.signatures = signatures
        self.notes = list(self._receive()["notes"])

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call; safe from many threads, which take turns."""
        dtypes = [port.spec.dtype for port in self.signatures[signature].inputs.values()]
        with self._lock:
            if self._begun is None:
                raise ClosedError("the model is closed", remedy="load it again")
            rows = self._inputs.put(inputs, dtypes)
            try:
                wire.send(self._connection, {"signature": signature, "inputs": rows})
            except BrokenPipeError:
                raise self._gone() from None
            return self._outputs.get(self._receive()["outputs"], copy=True)

    def close(self) -> None:
        """Let the hosting process go. Closing twice is harmless."""
        with self._lock:
            begun, self._begun = self._begun, None
            if begun is not None:
                self._release()
                begun.close()

    def _receive(self) -> dict[str, Any]:
        try:
            message, _ = wire.receive(self._connection)
        except ConnectionResetError:
            message = None
        if message is None:
            raise self._gone()
        if "error" in message:
            raise rebuild_error(message)
        return message

    def _gone(self) -> StandbyError:
        return StandbyError("the process that hosts the model is gone", seen=self.pid, remedy="load the model again")

    def _release(self) -> None:
        self._connection.close()
        self._inputs.close()
        self._outputs.close()


class RemoteModel(Model):
    """A model hosted by a child of a standby. `pid` is that child; it ends when this model is closed."""

    def __init__(self, engine: RemoteEngine, bundle: Bundle) -> None:
        super().__init__(engine, bundle)
        self.pid = engine.pid


def load_remotely(path: str | Path, options: Mapping[str, Any], *, start: bool = True) -> RemoteModel:
    """Have a native standby host the bundle, and start one where none runs."""
    directory = Path(path).absolute()
    if not (directory / layout.MANIFEST).is_file():
        open_bundle(directory)  # says what is wrong, without starting anything
    engine = RemoteEngine(str(directory), options, start=start)
    try:
        bundle = open_bundle(directory)  # while the other process loads it
        engine.wait(bundle.manifest.signatures)
    except BaseException:
        engine.close()
        raise
    engine.notes.append(f"hosted by process {engine.pid} of a standby")
    return RemoteModel(engine, bundle)
