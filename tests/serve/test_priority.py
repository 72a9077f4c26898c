"""What loads beside the serving leaves processors to it, and has all of them once it serves."""

from __future__ import annotations

import os
import threading

import pytest

from glowplug.serve.processes import priority
from glowplug.serve.workers.spec import WorkerSpec
from glowplug.serve.workers.worker import _with_threads


def test_half_of_the_processors_until_it_serves():
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        pytest.skip("there is one processor")
    before = os.getpriority(os.PRIO_PROCESS, 0)
    serving = threading.Event()
    with priority.lowered():
        loading = os.sched_getaffinity(0)
        started = threading.Thread(target=serving.wait)  # as TensorFlow starts its threads
        started.start()
        inherited = os.sched_getaffinity(started.native_id)
    try:
        assert loading == inherited == set(sorted(processors)[len(processors) // 2 :])
        for thread in (0, started.native_id):
            assert os.sched_getaffinity(thread) == processors
            assert os.getpriority(os.PRIO_PROCESS, thread) == before
    finally:
        serving.set()
        started.join()


def test_it_has_the_threads_that_it_would_have_on_all_processors():
    count = len(os.sched_getaffinity(0))
    free = _with_threads(WorkerSpec("model", "bundle", background=True))
    assert (free.intra_op_threads, free.inter_op_threads) == (count, count)
    chosen = _with_threads(WorkerSpec("model", "bundle", background=True, intra_op_threads=3, inter_op_threads=-1))
    assert (chosen.intra_op_threads, chosen.inter_op_threads) == (3, -1)
