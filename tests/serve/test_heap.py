"""A worker gives back the memory of a large call."""

from __future__ import annotations

import socket

import numpy as np
import psutil
import pytest

from glowplug.serve.wire.messages import serving
from glowplug.serve.workers.heap import LARGE_BYTES, Heap
from tests.serve.server import Server

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
        answer = server.call("/tensorflow.serving.PredictionService/Predict", request, "PredictResponse", timeout=120)
        assert len(answer.outputs["y"].float_val) == 50 * MEGABYTE
        for _ in range(1200):  # until no call has come for a moment
            if private_bytes(worker) - before < 60 * MEGABYTE:
                break
            server.request("GET", "/healthz")
        assert private_bytes(worker) - before < 60 * MEGABYTE
