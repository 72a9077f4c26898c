"""A worker and the front end give back the memory of large calls."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import subprocess
import sys
import time

import grpc
import numpy as np
import psutil
import pytest

from glowplug.runtime.fingerprint import cpu_features
from glowplug.serve import heap as front_end
from glowplug.serve.wire.messages import serving
from glowplug.serve.workers.heap import LARGE_BYTES, Heap
from tests.serve.server import Server

ONEDNN_BY_DEFAULT = {"avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"}
MEGABYTE = 1 << 20


def private_bytes(process: psutil.Process) -> int:
    return process.memory_full_info().uss


def test_memory_is_given_back_when_no_call_waits():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        heap = Heap()
        heap.used(LARGE_BYTES)  # not larger
        heap.wait(ours)
        assert heap.trims == 0
        heap.used(LARGE_BYTES + 1)
        theirs.send(b"the next call")
        heap.wait(ours)
        assert heap.trims == 0
        ours.recv(100)
        heap.wait(ours)
        heap.wait(ours)
        assert heap.trims == 1


def test_small_calls_do_not_keep_it_for_ever():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        heap = Heap()
        heap.used(LARGE_BYTES + 1)
        theirs.send(b"always another call")
        for _ in range(1000):
            heap.used(10)
            heap.wait(ours)
        assert heap.trims == 1


@pytest.mark.tensorflow
def test_private_memory_falls_back_after_a_tensor_of_200_megabytes(half_plus_two):
    with Server(f"half={half_plus_two}", "--instances", 1, "--no-pack") as server:
        (worker,) = server.workers()
        server.predict("half", {"x": np.zeros(10, np.float32)})
        before = private_bytes(worker)
        request = serving("PredictRequest")()
        request.model_spec.name = "half"
        proto = request.inputs["x"]
        proto.dtype, proto.tensor_content = 1, np.ones(50 * MEGABYTE, np.float32).tobytes()
        proto.tensor_shape.dim.add(size=50 * MEGABYTE)
        levels = []
        while len(levels) < 2:
            answer = server.call(
                "/tensorflow.serving.PredictionService/Predict", request, "PredictResponse", timeout=120
            )
            assert len(answer.outputs["y"].float_val) == 50 * MEGABYTE
            deadline = time.monotonic() + 20
            while private_bytes(worker) - before > 60 * MEGABYTE and time.monotonic() < deadline:
                time.sleep(0.05)  # until no call has come for a moment
            levels.append(private_bytes(worker) - before)
            if levels[-1] < 60 * MEGABYTE:
                return
    # Where TensorFlow uses oneDNN's allocator, which depends on the processor, it keeps what it had for the next call.
    assert levels[1] < levels[0] + 60 * MEGABYTE
    if not ONEDNN_BY_DEFAULT & set(cpu_features()):
        pytest.fail(f"a worker keeps {levels} bytes")


def test_the_front_end_gives_back_once_what_several_bodies_left():
    async def trims():
        told = asyncio.Event()
        heap = front_end.Heap(told.set)
        heap.freed(front_end.LARGE_BYTES - 1)
        for _ in range(front_end._OWED_BYTES // front_end.LARGE_BYTES - 1):
            heap.freed(front_end.LARGE_BYTES)
        assert heap._timer is None
        for _ in range(10):
            heap.freed(front_end.LARGE_BYTES)
        assert heap._timer is not None
        await asyncio.wait_for(told.wait(), 60)
        assert heap._timer is None
        return heap.trims

    assert asyncio.run(trims()) == 1


def test_the_front_end_gives_back_although_more_comes(monkeypatch):
    monkeypatch.setattr(front_end, "_PATIENCE_S", 3600.0)
    monkeypatch.setattr(front_end, "_LONGEST_S", 0.01)

    async def trims():
        told = asyncio.Event()
        heap = front_end.Heap(told.set)
        while not told.is_set():
            heap.freed(front_end._OWED_BYTES)
            await asyncio.sleep(0)
        return heap.trims

    assert asyncio.run(asyncio.wait_for(trims(), 60)) == 1


@pytest.mark.tensorflow
def test_the_front_end_is_small_again_after_messages_that_unfold(half_plus_two):
    with Server(f"half={half_plus_two}", "--no-pack") as server:
        front = min(psutil.Process(server.process.pid).children(), key=lambda child: child.pid)
        server.predict("half", {"x": np.zeros(10, np.float32)})
        before = private_bytes(front)
        bomb, method = bytes(200 * MEGABYTE), "/tensorflow.serving.PredictionService/Predict"
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=options) as channel:
            stub = channel.unary_unary(method)
            calls = [stub.future(bomb, timeout=120, compression=grpc.Compression.Gzip) for _ in range(3)]
            assert {call.code() for call in calls} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        for _ in range(1200):  # until no call has come for a moment
            if private_bytes(front) - before < 40 * MEGABYTE:
                break
            server.request("GET", "/healthz")
        assert private_bytes(front) - before < 40 * MEGABYTE


KEEPING = """
import sys
from pathlib import Path
from glowplug.serve.heap import map_what_is_large

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "mapped":
    map_what_is_large()
kept, before = [], resident()
for _ in range(3):
    large = []
    for number in range(100):
        large.append(b"x" * (1 << 20))
        kept.append(b"y" * 5_000)
    del large
print(resident() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library")
def test_large_blocks_are_given_back_whatever_lies_between_them():
    def left(how: str) -> int:
        return int(subprocess.run([sys.executable, "-c", KEEPING, how], capture_output=True, check=True).stdout)

    assert left("mapped") < 20_000_000 < left("as usual")
