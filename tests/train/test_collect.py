"""One thread at a time collects the runtime's graphs: another would find those of somebody else."""

from __future__ import annotations

import threading

import pytest

pytestmark = pytest.mark.tensorflow


def test_who_comes_while_another_collects_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    from glowplug.train.trace import collect
    from glowplug.train.trace.collect import collecting

    monkeypatch.setattr(collect, "_LONGEST_S", 0.1)

    @tf.function
    def doubled(x: tf.Tensor) -> tf.Tensor:
        return x * 2.0

    others: list[int] = []

    def collect_too() -> None:
        with collecting() as other:
            doubled(tf.zeros(5))
        others.append(len(other.graphs))

    with collecting() as collected:
        doubled(tf.zeros(3))
        thread = threading.Thread(target=collect_too)
        thread.start()
        thread.join()
    assert others == [0]
    assert len(collected.graphs) >= 2
    with collecting() as again:
        doubled(tf.zeros(7))
    assert len(again.graphs) >= 1
