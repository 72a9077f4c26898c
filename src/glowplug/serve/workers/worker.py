"""A worker: one process with one model, which answers the calls that come over its socket, one after the other.

Runs in a child that the supervisor forked before any TensorFlow thread existed. It ends when its socket closes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.clock import now_ns
from glowplug.core.errors import GlowplugError, ModelError, RequestError, TensorFlowError
from glowplug.core.manifest import Signature
from glowplug.loader.engines.engine import Engine, Options
from glowplug.serve.processes import priority
from glowplug.serve.wire.limits import Limits

from . import packets, warmup
from .heap import Heap
from .op_packages import BUILT_IN, OPERATIONS_OF, could_help, installed
from .spec import WorkerSpec, signatures_to_json

_CALLERS_FAULT = ("INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "UNIMPLEMENTED", "NOT_FOUND")
_RECEIVE_BYTES = 1 << 16  # for larger buffers, malloc asks the kernel for pages at every call
LOAD_FAILED = 3

Call = tuple[str, list[str]]  # the signature's name, and the outputs that are wanted
Inputs = Mapping[str, NDArray[Any]]


def main(channel: socket.socket, spec: WorkerSpec) -> int:
    """Load, warm up, say so, then answer until the socket closes. Returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever started us says when to stop, by closing the socket
        signal.signal(number, signal.SIG_IGN)
    channel.setblocking(True)
    try:
        if spec.background:
            spec = _with_threads(spec)
        with priority.lowered() if spec.background else contextlib.nullcontext():
            engine = _load_and_warm(channel, spec)
    except GlowplugError as error:
        return _give_up(channel, str(error))
    except Exception as error:  # the process boundary
        traceback.print_exc()
        return _give_up(channel, f"unexpected {type(error).__name__}")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        _serve(channel, engine)
    return 0


def _with_threads(spec: WorkerSpec) -> WorkerSpec:
    """Say how many threads an engine would choose, which while it loads in the background sees fewer processors."""
    count = len(os.sched_getaffinity(0))
    return replace(
        spec, intra_op_threads=spec.intra_op_threads or count, inter_op_threads=spec.inter_op_threads or count
    )


def _give_up(channel: socket.socket, reason: str) -> int:
    with contextlib.suppress(OSError):
        _send(channel, packets.pack(packets.FAILURE, 0, {"error": reason}))
    return LOAD_FAILED


def _load_and_warm(channel: socket.socket, spec: WorkerSpec) -> Engine:
    began = now_ns()
    engine, packed = _open(spec)
    loaded = now_ns()
    calls = list(warmup.run(engine, _planned(engine, spec, packed), brief=spec.brief))
    reason = warmup.why_dead(calls)
    if reason:
        raise ModelError("the model does not answer", seen=reason)
    document = {
        "signatures": signatures_to_json(engine.signatures),
        "notes": engine.notes,
        "load_ns": loaded - began,
        "warmup_ns": now_ns() - loaded,
        "warmup": [asdict(call) for call in calls],
    }
    _send(channel, packets.pack(packets.READY, 0, document))
    return engine


def _open(spec: WorkerSpec) -> tuple[Engine, list[warmup.Planned]]:
    path = Path(spec.path)
    if spec.kind == "parser":
        from .parser import Parser

        return Parser(), []
    if spec.kind == "tflite":
        from glowplug.bundle import layout
        from glowplug.loader.engines.tflite_file import TfliteFile

        return TfliteFile(path / layout.TFLITE, spec.intra_op_threads), []
    if spec.kind == "saved_model":
        return _open_plain(path, spec), []
    from glowplug.bundle.reader import open_bundle
    from glowplug.bundle.warmup import read_requests
    from glowplug.loader.open import open_engine

    bundle = open_bundle(path)
    built_in = installed([name for name in bundle.manifest.op_libraries if name in BUILT_IN])
    libraries = tuple(dict.fromkeys((*spec.op_libraries, *built_in)))
    options = Options(spec.trust, libraries, spec.intra_op_threads, spec.inter_op_threads)
    engine = open_engine(bundle, options)
    return engine, [warmup.Planned(one.signature, "packed", one.inputs) for one in read_requests(bundle)]


def _open_plain(path: Path, spec: WorkerSpec) -> Engine:
    """Open a SavedModel; where it lacks an operation, with the packages that TensorFlow Serving has built in."""
    from glowplug.runtime.config import SessionConfig
    from glowplug.runtime.oplibrary import load_op_library

    from .plain_model import PlainModel

    config = SessionConfig(spec.intra_op_threads, spec.inter_op_threads, optimize=True)
    for name in spec.op_libraries:
        load_op_library(name)
    try:
        return PlainModel(path, config, spec.tags)
    except ModelError as error:
        packages = could_help(error, spec.op_libraries)
        if not packages:
            raise
    for name in packages:
        load_op_library(name)
    engine = PlainModel(path, config, spec.tags)
    engine.notes.append(f"{OPERATIONS_OF}{','.join(packages)}")
    return engine


def _planned(engine: Engine, spec: WorkerSpec, packed: list[warmup.Planned]) -> Iterator[warmup.Planned]:
    yield from packed
    found = bool(packed)
    for source, path in (("serving file", f"{spec.path}/{warmup.SERVING_FILE}"), ("recorded", spec.recorded)):
        if path and Path(path).is_file():
            for one in _from_file(Path(path), source, engine.notes):
                found = True  # a file with nothing in it warms nothing
                yield one
    if spec.synthesize and (not found or spec.largest_batch > 1):
        signatures = warmup.distinct(engine.signatures) if spec.brief else engine.signatures
        yield from warmup.synthesized(signatures, spec.largest_batch)


def _from_file(path: Path, source: str, notes: list[str]) -> Iterator[warmup.Planned]:
    """Read a warm-up file as far as it goes: a damaged one is noted, and does not keep the model from serving."""
    from google.protobuf.message import DecodeError

    try:
        yield from warmup.from_serving_file(path, Limits(), source)
    except (GlowplugError, DecodeError, OSError) as error:
        notes.append(f"the warm-up file {path.name} could not be read to its end: {error}")


def _serve(channel: socket.socket, engine: Engine) -> None:
    heap = Heap()

    def receive(kind: int, number: int, head: bytes, payload: memoryview) -> None:
        pieces = _answer(engine, number, head, payload)
        heap.used(len(payload) + sum(map(len, pieces)))
        _send(channel, pieces)

    splitter = packets.Splitter(receive)
    while data := channel.recv(_RECEIVE_BYTES):
        splitter.feed(data)
        heap.wait(channel)


def _answer(engine: Engine, number: int, head: bytes, payload: memoryview) -> list[packets.Buffer]:
    (name, outputs), inputs = packets.unpack(head, payload)
    if outputs[-1:] == [packets.TIMES]:
        return _timed_answer(engine, number, (name, outputs[:-1]), inputs)
    return packets.pack(*_run(engine, number, (name, outputs), inputs))


def _timed_answer(engine: Engine, number: int, call: Call, inputs: Inputs) -> list[packets.Buffer]:
    """Answer a call of which somebody wants to know when it was run, and by whom.

    Times are no part of the head of the answer, which others keep as long as it repeats itself.
    """
    began = time.time_ns()
    kind, number, document, tensors = _run(engine, number, call, inputs)
    times = np.array([began, time.time_ns(), os.getpid()], np.int64)
    return packets.pack(kind, number, document, {**tensors, packets.TIMES: times})


def _run(engine: Engine, number: int, call: Call, inputs: Inputs) -> tuple[int, int, Any, Inputs]:
    """Run a call; return the packet to answer it with."""
    name, outputs = call
    signature = engine.signatures[name]
    try:
        results = engine.run(name, [inputs[key] for key in signature.inputs])
    except TensorFlowError as error:
        code = error.code if error.code in _CALLERS_FAULT else "INTERNAL"
        text = _public(error) + _misfits(signature, inputs) if code != "INTERNAL" else _public(error)
        return packets.FAILURE, number, {"error": text, "code": code}, {}
    except GlowplugError as error:
        code = error.code if isinstance(error, RequestError) else "INVALID_ARGUMENT"
        return packets.FAILURE, number, {"error": str(error), "code": code}, {}
    except MemoryError:
        return packets.FAILURE, number, {"error": "out of memory", "code": "RESOURCE_EXHAUSTED"}, {}
    except Exception as error:  # the process boundary: the model stays up, the caller learns that it was our fault
        traceback.print_exc()
        problem = f"unexpected {type(error).__name__}"
        return packets.FAILURE, number, {"error": problem, "code": "INTERNAL"}, {}
    every = dict(zip(signature.outputs, results, strict=True))
    return packets.ANSWER, number, None, {key: every[key] for key in outputs}


def _misfits(signature: Signature, inputs: Mapping[str, NDArray[Any]]) -> str:
    """Name the inputs whose shape is not the declared one: most likely the reason why TensorFlow refused."""
    found = [
        f"input {name!r} must be {port.spec}, got {port.spec.dtype}{list(inputs[name].shape)}"
        for name, port in signature.inputs.items()
        if not _fits(port.spec.shape, inputs[name].shape)
    ]
    return f" ({'; '.join(found)})" if found else ""


def _fits(declared: tuple[int | None, ...] | None, shape: tuple[int, ...]) -> bool:
    if declared is None:
        return True
    return len(declared) == len(shape) and all(d in (None, s) for d, s in zip(declared, shape, strict=True))


def _public(error: TensorFlowError) -> str:
    """Return TensorFlow's message without the stack of graph nodes behind it."""
    return str(error.seen).partition(": ")[2].splitlines()[0][:1000]


def _send(channel: socket.socket, pieces: list[packets.Buffer]) -> None:
    for piece in pieces:
        channel.sendall(piece)


def run_and_exit(channel: socket.socket, spec: WorkerSpec) -> None:
    """Run `main` in a forked child and end the process without the parent's exit handlers."""
    code = 70
    try:
        code = main(channel, spec)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
