"""Numbers too small for the usual form are zero in the block, for its threads too, and as before afterwards."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from glowplug.loader.engines.tiny_numbers import TinyIsZero

known = pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="another processor")
TINY = np.full(64, 1e-40, np.float32)
SMALL = np.full(64, 1e-20, np.float32)


def seen() -> tuple[int, int]:
    """Return how many tiny operands are above zero, and how many tiny results are."""
    return int(np.sum(TINY > 0)), int(np.count_nonzero((SMALL * SMALL).view(np.uint32)))


@known
def test_operands_and_results_are_zero_inside_and_not_outside() -> None:
    tiny_is_zero = TinyIsZero()
    for _ in range(2):
        assert seen() == (64, 64)
        with tiny_is_zero:
            assert seen() == (0, 0)
    assert seen() == (64, 64)


@known
def test_threads_that_begin_inside_keep_to_it_and_others_are_left_alone() -> None:
    inside, outside = [], []
    entered, looked = threading.Event(), threading.Event()

    def other() -> None:
        entered.wait()
        outside.append(seen())
        looked.set()

    before = threading.Thread(target=other)
    before.start()
    with TinyIsZero():
        entered.set()
        looked.wait()
        started = threading.Thread(target=lambda: inside.append(seen()))
        started.start()
        started.join()
    before.join()
    assert (inside, outside) == ([(0, 0)], [(64, 64)])


@known
def test_an_error_leaves_the_block_as_it_should() -> None:
    def fail() -> None:
        with TinyIsZero():
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert seen() == (64, 64)


def test_a_processor_that_is_not_known_computes_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from glowplug.loader.engines import tiny_numbers

    monkeypatch.setattr(tiny_numbers, "_WORDS", {})
    tiny_numbers._functions.cache_clear()
    try:
        with TinyIsZero():
            assert seen() == (64, 64)
    finally:
        tiny_numbers._functions.cache_clear()
