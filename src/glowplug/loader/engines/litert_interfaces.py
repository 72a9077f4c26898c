"""LiteRT's two interfaces in Python, each with a model in it, through the public API of the package ai-edge-litert.

`CompiledModel` can keep packed weights in a file, so it loads in milliseconds and shares them with other processes. It
cannot take every type, no empty arrays, and where the shape of an output is only known once the graph has run, it
writes past the end of a buffer. `Interpreter` takes all of that, packs weights at each load, and is imported in a third
of the time. Neither may be called twice at once. What both say on stderr about themselves is held back.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from glowplug.bundle.tflite.model import TfliteModel
from glowplug.core.dtypes import numpy_dtype
from glowplug.core.errors import LibraryNotFoundError, UnknownNodeError, UnsupportedModelError
from glowplug.core.manifest import Port, Signature
from glowplug.core.notices import LITERT, held_back
from glowplug.core.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_PLUGINS = "/nonexistent"  # libraries for other devices, which LiteRT would look for and open
_EMPTY_OUTPUT = "Invalid tensor size."  # what `Interpreter` says of an output without elements


class Caller(Protocol):
    """One of LiteRT's interfaces with the model in it. Calls do not overlap."""

    def run(self, name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer a call of a signature."""


class Entry(Record):
    """A signature as LiteRT knows it: its key in the file, none where the main graph is meant, and the tensors."""

    key: str | None
    inputs: list[int]
    outputs: list[int]
    ports: Signature


def installed_release() -> str:
    """Return the release of LiteRT that is installed; raise `LibraryNotFoundError` where none is."""
    try:
        import ai_edge_litert
    except ImportError as error:
        raise LibraryNotFoundError(
            "LiteRT is not installed for this interpreter", seen=error, remedy="run `pip install 'glowplug[litert]'`"
        ) from None
    release: str = ai_edge_litert.__version__
    return release


def preload() -> bool:
    """Load LiteRT's libraries where they are installed, for processes that are forked later; say whether they are.

    This starts no thread; models do.
    """
    try:
        from ai_edge_litert import compiled_model, interpreter  # noqa: F401
    except ImportError:
        return False
    return True


def pack_weights(model: str, packed: str) -> None:
    """Have LiteRT write the packed weights of a model. Nothing else may write or read the file meanwhile."""
    with held_back(LITERT):
        _compile(model, 1, packed)  # and freed at once: nothing is written any more


def find_entry(model: TfliteModel, name: str, named: Signature) -> Entry:
    """Return the signature of the file that has these tensors, of these types; several names may stand for one."""

    def tensors(ports: Mapping[str, Port]) -> set[tuple[str, str]]:
        return {(port.tensor, port.spec.dtype) for port in ports.values()}

    for key, found in model.signatures.items():
        if tensors(named.inputs) == tensors(found.inputs) and tensors(named.outputs) <= tensors(found.outputs):
            inputs, outputs = ([_index(one) for one in side.values()] for side in (named.inputs, named.outputs))
            return Entry(key if model.declared else None, inputs, outputs, named)
    ports = (*named.inputs.values(), *named.outputs.values())
    raise UnknownNodeError(
        "the manifest names tensors that the model does not have",
        seen=f"signature {name!r}: {', '.join(port.tensor for port in ports)}",
        remedy="do not use this bundle; pack the model again",
    )


def _index(port: Port) -> int:
    return int(port.tensor.rpartition(":")[2])


def _graph(port: Port) -> int:
    return int(port.tensor.rpartition(":")[0])


def _compile(model: str, threads: int, packed: str | None) -> Any:
    from ai_edge_litert.compiled_model import CompiledModel, Environment, EnvironmentOptions
    from ai_edge_litert.compiled_model import Options as LiteRTOptions

    options = LiteRTOptions.create()
    options.cpu_options.num_threads = threads
    if packed is not None:
        options.cpu_options.xnnpack_weight_cache_path = packed
    with held_back(LITERT):
        try:
            environment = Environment.create(
                options=EnvironmentOptions(compiler_plugin_path=_NO_PLUGINS, dispatch_library_path=_NO_PLUGINS)
            )
            return CompiledModel.from_file(model, environment=environment, options=options)
        except RuntimeError as error:
            raise _unloadable(error) from error


@functools.cache
def _end_quietly() -> None:
    """Close stderr when the C library takes the process apart, just before LiteRT does so with what buffers made.

    It would write two lines then, after everything else has ended. Handlers run in the opposite order of their making.
    """
    import ctypes

    process = ctypes.CDLL(None)
    register = getattr(process, "__cxa_atexit", None)
    if register is not None and os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "0":
        register(ctypes.cast(process.close, ctypes.c_void_p), ctypes.c_void_p(2), None)


def _unloadable(error: Exception) -> UnsupportedModelError:
    return UnsupportedModelError(
        "LiteRT cannot load this model",
        seen=" ".join(str(error).split())[:300],
        remedy="convert it again, or pack its source with another engine",
    )


class Compiled:
    """A `CompiledModel`."""

    def __init__(self, model: str, entries: Mapping[str, Entry], threads: int, packed: str | None) -> None:
        compiled = _compile(model, threads, packed)
        stand_in = next(iter(compiled.get_signature_list()))  # the name of a main graph without a signature
        by_key = {key: _CompiledSignature(compiled, key or stand_in) for key in {one.key for one in entries.values()}}
        self._calls = {name: (by_key[entry.key], entry) for name, entry in entries.items()}

    def run(self, name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer a call of a signature."""
        signature, entry = self._calls[name]
        return signature.run(entry, arrays)


class _CompiledSignature:
    """One signature of a `CompiledModel`. Its buffers are made anew when a call has other shapes than the last."""

    def __init__(self, model: Any, key: str) -> None:
        self._model, self._key = model, key
        self._number = model.get_signature_index(key)
        names = model.get_signature_list()[key]
        inputs, outputs = model.get_input_tensor_details(key), model.get_output_tensor_details(key)
        self._input_places = {inputs[name]["index"]: place for place, name in enumerate(names["inputs"])}
        self._output_places = {outputs[name]["index"]: place for place, name in enumerate(names["outputs"])}
        self._shapes = {inputs[name]["index"]: tuple(inputs[name]["shape"]) for name in names["inputs"]}
        self._make_buffers()

    def run(self, entry: Entry, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        shapes = {index: array.shape for index, array in zip(entry.inputs, arrays, strict=True)}
        if shapes != self._shapes:
            self._resize(shapes)
        for index, array in zip(entry.inputs, arrays, strict=True):
            self._inputs[self._input_places[index]].write(array)
        self._model.run_by_index(self._number, self._inputs, self._outputs)
        return [self._read(index) for index in entry.outputs]

    def _resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        before, self._shapes = self._shapes, {}  # unknown until all of this has worked
        for index, shape in shapes.items():
            if shape != before.get(index):
                self._model.resize_input_tensor(self._input_places[index], shape, self._number)
        self._make_buffers()
        self._shapes = shapes

    def _make_buffers(self) -> None:
        with held_back(LITERT):
            self._inputs = self._model.create_input_buffers(self._number)
            self._outputs = self._model.create_output_buffers(self._number)
            details = self._model.get_output_tensor_details(self._key)
            for buffer in self._outputs[:1]:
                buffer.get_tensor_details()  # the first use of a buffer has much to say on stderr
        _end_quietly()
        self._results = {one["index"]: (tuple(one["shape"]), numpy_dtype(one["dtype"])) for one in details.values()}

    def _read(self, index: int) -> NDArray[Any]:
        shape, dtype = self._results[index]
        found: NDArray[Any] = self._outputs[self._output_places[index]].read(math.prod(shape), dtype).reshape(shape)
        return found


class Interpreted:
    """An `Interpreter`, which takes every type and shape that LiteRT does.

    With `resets`, tensors that keep a value from call to call are set back first. Converted models have them where
    their source has none: the state of an LSTM lives and dies with a call there.
    """

    def __init__(self, model: str, entries: Mapping[str, Entry], threads: int, *, resets: bool) -> None:
        from ai_edge_litert.interpreter import Interpreter

        with held_back(LITERT):
            try:
                self._interpreter = Interpreter(model, num_threads=threads)
            except (RuntimeError, ValueError) as error:
                raise _unloadable(error) from error
        self._entries = entries
        self._resets = resets
        self._is_used = False
        self._shapes: dict[int, tuple[int, ...]] = {}  # of the inputs of the main graph, once memory is allocated
        keys = {entry.key for entry in entries.values() if entry.key is not None}
        self._runners = {key: self._interpreter.get_signature_runner(key) for key in keys}
        self._names = {key: _tensor_names(runner) for key, runner in self._runners.items()}

    def run(self, name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Answer a call of a signature."""
        entry = self._entries[name]
        if not self._is_used:
            self._is_used = True
            with held_back(LITERT):  # XNNPACK says once that it is there
                return self._run(entry, arrays)
        if self._resets:
            self._interpreter.reset_all_variables()
        return self._run(entry, arrays)

    def _run(self, entry: Entry, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        if entry.key is None:
            return self._run_main(entry, arrays)
        inputs, outputs = self._names[entry.key]
        given = {inputs[index]: array for index, array in zip(entry.inputs, arrays, strict=True)}
        runner = self._runners[entry.key]
        try:
            results = runner(**given)
        except ValueError as error:
            if str(error) != _EMPTY_OUTPUT:
                raise
            return self._read(entry, runner.get_output_details().values())
        return [results[outputs[index]] for index in entry.outputs]

    def _run_main(self, entry: Entry, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        interpreter = self._interpreter
        given = dict(zip(entry.inputs, arrays, strict=True))
        shapes = {index: array.shape for index, array in given.items()}
        if shapes != self._shapes:
            self._shapes = {}  # unknown until all of this has worked
            for index, shape in shapes.items():
                interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
            self._shapes = shapes
        for index, array in given.items():
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return self._read(entry, interpreter.get_output_details())

    def _read(self, entry: Entry, details: Iterable[Mapping[str, Any]]) -> list[NDArray[Any]]:
        """Return the outputs of a call. LiteRT refuses to hand out arrays without elements."""
        import numpy as np

        shapes = {one["index"]: tuple(one["shape"]) for one in details}
        return [
            np.empty(shapes[index], numpy_dtype(port.spec.dtype))
            if 0 in shapes[index]
            else self._interpreter.get_tensor(index, _graph(port))
            for index, port in zip(entry.outputs, entry.ports.outputs.values(), strict=True)
        ]


def _tensor_names(runner: Any) -> tuple[dict[int, str], dict[int, str]]:
    """Return what LiteRT calls the inputs and outputs of a signature, by their tensors."""
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    return {one["index"]: key for key, one in inputs.items()}, {one["index"]: key for key, one in outputs.items()}
