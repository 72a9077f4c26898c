"""The `litert` engine: `model.tflite` in LiteRT. No TensorFlow is needed.

Which of LiteRT's interfaces (`litert_interfaces`) is used for what is in the manifest: `pack` has tried it, in a
process of its own. What would do harm is refused again here, since a manifest may say anything. A model is one object
with buffers of its own, and one of the interfaces keeps the interpreter lock while it runs: calls take turns, each with
all threads.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import weakref
from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from io import FileIO
from typing import TYPE_CHECKING, Any

from glowplug.bundle import layout
from glowplug.bundle.reader import Bundle, check_digest
from glowplug.bundle.tflite.model import TfliteModel, check_tflite_file
from glowplug.bundle.tflite.shapes import DecidedBy, shapes_decided_by
from glowplug.core.errors import BundleError, ClosedError, InputError, UnsupportedModelError
from glowplug.core.manifest import Interface, LiteRTSettings, PackedWeights, Port, Signature
from glowplug.core.notices import LITERT, held_back
from glowplug.runtime import fork

from .engine import Options
from .litert_interfaces import Caller, Compiled, Interpreted, find_entry, installed_release
from .tiny_numbers import TinyIsZero

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMPILED_TYPES = frozenset({"float32", "float16", "int32", "int8", "uint8", "bool"})  # that its buffers can have

_open_models: weakref.WeakSet[LiteRTCalls] = weakref.WeakSet()


class LiteRTCalls:
    """The signatures of an open model, ready to be called. Owns the file."""

    def __init__(
        self,
        file: FileIO,
        model: TfliteModel,
        signatures: Mapping[str, Signature],
        settings: LiteRTSettings,
        threads: int,
        packed: str | None = None,
    ) -> None:
        if not is_possible(settings.interface, model, signatures):
            raise UnsupportedModelError(
                "LiteRT cannot run this model as the bundle says",
                seen=settings.interface,
                remedy="do not use this bundle; pack the model again",
            )
        fork.note_start()
        self.signatures = signatures
        self._stateful = model.stateful
        self._resets = model.variables and not settings.any_shape
        self._entries = {name: find_entry(model, name, one) for name, one in signatures.items()}
        self.notes: list[str] = []
        self._settings = settings
        self._file: FileIO | None = file
        self._threads = threads or len(os.sched_getaffinity(0))
        self._lock = allocate_lock()
        # Entered with the lock only. What a `.tflite` file answers is what LiteRT makes of it.
        self._arithmetic = contextlib.nullcontext() if settings.any_shape else TinyIsZero()
        self._interpreted: Interpreted | None = None
        self._compiled: Compiled | None = None
        _open_models.add(self)
        _close_all_at_exit()
        with self._arithmetic:  # LiteRT's threads may begin here
            if settings.interface == "interpreter":
                self._interpreter()
            else:
                self._compiled = Compiled(_path(file), self._entries, self._threads, packed)

    def run(self, signature: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer one call; safe from many threads, which take turns."""
        self._check_shapes(signature, inputs)
        self._check_numbers(signature, inputs)
        fork.check_not_forked()  # before the lock, which a thread that is not here any more may hold
        with self._lock:
            if self._file is None:
                raise ClosedError("the model is closed", remedy="load it again")
            try:
                with self._arithmetic:
                    if self._is_batch_of_none(signature, inputs):
                        return self._run_without_rows(signature, inputs)
                    return self._caller(signature, inputs).run(signature, inputs)
            except (RuntimeError, ValueError) as error:
                raise InputError(
                    f"LiteRT refused the inputs of signature {signature!r}",
                    seen=" ".join(str(error).split())[:300],
                    remedy=f"it is {self.signatures[signature]}",
                ) from error

    def close(self) -> None:
        """Free everything. Closing twice is harmless, and so is closing in a fork, which has nothing to free."""
        if fork.is_forked():  # the lock may be held by a thread, and LiteRT wait for some, that are not here
            return
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                with held_back(LITERT):
                    self._compiled = self._interpreted = None
                file.close()

    def _is_batch_of_none(self, name: str, inputs: Sequence[NDArray[Any]]) -> bool:
        """Say whether a call has no rows, and every answer has as many as the call."""
        signature = self.signatures[name]
        rows = {
            array.shape[:1] for array, port in zip(inputs, signature.inputs.values(), strict=True) if _is_open(port)
        }
        if self._stateful or self._settings.any_shape:  # a row of our own would change the state
            return False
        return rows == {(0,)} and all(map(_is_open, signature.outputs.values()))

    def _run_without_rows(self, name: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer for one row and leave it out: most of LiteRT's kernels fail without any."""
        import numpy as np

        ports = self.signatures[name].inputs.values()
        made = [
            np.full((1, *array.shape[1:]), b"" if port.spec.dtype == "string" else 0, array.dtype)
            if _is_open(port)
            else array
            for array, port in zip(inputs, ports, strict=True)
        ]
        return [result[:0] for result in self._caller(name, made).run(name, made)]

    def _caller(self, name: str, inputs: Sequence[NDArray[Any]]) -> Caller:
        if self._compiled is None:
            return self._interpreter()
        pairs = list(zip(inputs, self.signatures[name].inputs.values(), strict=True))
        if self._settings.interface == "compiled":
            suits = all(array.size and _fits(port.spec.shape or (), array.shape) for array, port in pairs)
        else:
            suits = all(array.shape == smallest_shape(port) for array, port in pairs)
        return self._compiled if suits else self._interpreter()

    def _interpreter(self) -> Interpreted:
        """Make the interpreter when it is first needed: it packs weights of its own."""
        if self._interpreted is None:
            assert self._file is not None
            self._interpreted = Interpreted(_path(self._file), self._entries, self._threads, resets=self._resets)
        return self._interpreted

    def _check_shapes(self, name: str, inputs: Sequence[NDArray[Any]]) -> None:
        """Refuse shapes that the model was not converted for: LiteRT would resize it, and might answer wrongly."""
        if self._settings.any_shape:
            return
        signature = self.signatures[name]
        for (key, port), array in zip(signature.inputs.items(), inputs, strict=True):
            declared = port.spec.shape or ()
            if len(declared) != array.ndim or any(
                d not in (None, s) for d, s in zip(declared, array.shape, strict=True)
            ):
                raise InputError(
                    f"LiteRT cannot take the inputs of signature {name!r}",
                    seen=f"input {key!r} must be {port.spec}, not {port.spec.dtype}{list(array.shape)}",
                    remedy=f"it is {signature}",
                )
            if any(size == 0 and d is None for d, size in zip(declared[1:], array.shape[1:], strict=True)):
                # The first of nothing would be what lies in memory, and kernels for other sizes would be given up.
                raise InputError(
                    f"LiteRT cannot take the inputs of signature {name!r}",
                    seen=f"input {key!r} has no elements, {port.spec.dtype}{list(array.shape)}",
                    remedy="leave such inputs out, or pack the model with --engine native",
                )

    def _check_numbers(self, name: str, inputs: Sequence[NDArray[Any]]) -> None:
        """Refuse numbers to which LiteRT's kernels are known to answer otherwise than TensorFlow's."""
        largest = self._settings.largest
        if largest is None:
            return
        for key, array in zip(self.signatures[name].inputs, inputs, strict=True):
            # What is no number is neither above nor below another.
            if array.dtype.kind == "f" and array.size and not (-largest <= array.min() and array.max() <= largest):
                raise InputError(
                    f"LiteRT cannot take the inputs of signature {name!r}",
                    seen=f"input {key!r} has numbers beyond {largest:g} or NaN, which LiteRT answers otherwise than "
                    "the model it was made from",
                    remedy="clean the input, or pack the model with --engine native",
                )


class LiteRTEngine(LiteRTCalls):
    """A `litert` bundle in memory."""

    def __init__(self, bundle: Bundle, options: Options) -> None:
        manifest = bundle.manifest
        settings = manifest.litert
        assert settings is not None  # the manifest's parser sees to it
        release = installed_release()
        file = bundle.open_sized(layout.TFLITE)
        try:
            found = check_tflite_file(file)
            packed, note = None, ""
            if settings.interface != "interpreter":
                packed, note = _find_packed(bundle, settings.packed, release, file)
            super().__init__(file, found, manifest.signatures, settings, options.intra_op_threads, packed)
        except BaseException:
            file.close()
            raise
        if note:
            self.notes.append(f"weights are not shared between processes: {note}")


def is_possible(interface: Interface, model: TfliteModel, signatures: Mapping[str, Signature]) -> bool:
    """Say whether an interface can be used for a model without harm; `pack` tries whether it answers rightly."""
    if interface == "interpreter":
        return True
    ports = [port for one in signatures.values() for port in (*one.inputs.values(), *one.outputs.values())]
    if model.stateful or model.variables or any(port.spec.dtype not in COMPILED_TYPES for port in ports):
        return False
    most = DecidedBy.CONSTANTS if interface == "compiled" else DecidedBy.SHAPES
    return shapes_decided_by(model.graphs) <= most


def _find_packed(bundle: Bundle, named: PackedWeights | None, release: str, file: FileIO) -> tuple[str | None, str]:
    """Return packed weights for this machine: those of the bundle, or of the user's cache, where they may be made.

    What is kept in the cache stands for a model by its digest, so the digest is checked before: another bundle with the
    same model trusts it.
    """
    from . import packed_weights  # here: small models have none

    entry = bundle.manifest.files[layout.TFLITE]
    key = packed_weights.machine_key(entry.sha256, release)
    if named is not None and named.machine == key:
        path = f"{bundle.folder.path}/{layout.PACKED}"
        try:
            with bundle.open_file(layout.PACKED) as stream:
                size = os.fstat(stream.fileno()).st_size
        except BundleError:
            size = -1
        if size == named.size and packed_weights.is_whole(path):
            return path, ""

    def make(target: str) -> None:
        from glowplug.core.disk.digest import sha256_file

        from .packing import pack_weights_apart

        check_digest(layout.TFLITE, sha256_file(_path(file)), entry)
        pack_weights_apart(file.fileno(), target)

    return packed_weights.cached(key, make)


def _path(file: FileIO) -> str:
    """Return a path to an open file, whatever its name stands for by now."""
    return f"/proc/self/fd/{file.fileno()}"


def smallest_shape(port: Port) -> tuple[int, ...]:
    """Return the shape that stands in the file for a declared one: LiteRT writes one where any size will do."""
    return tuple(1 if size is None else size for size in port.spec.shape or ())


def _is_open(port: Port) -> bool:
    """Say whether the first dimension may have any size."""
    return (port.spec.shape or (0,))[0] is None


def _fits(declared: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(declared) == len(shape) and all(d in (None, s) for d, s in zip(declared, shape, strict=True))


@functools.cache
def _close_all_at_exit() -> None:
    """Have what is open at the end of the process closed: LiteRT would write on stderr what it takes apart."""

    def close_all() -> None:
        if not fork.is_forked():
            for model in list(_open_models):
                model.close()

    atexit.register(close_all)
