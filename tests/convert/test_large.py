"""A model with more weights than a protocol buffer can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    import tensorflow as tf

    class Large(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = [tf.Variable(tf.random.normal([1_000_000, 192], seed=seed)) for seed in range(3)]

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "ids")])
        def __call__(self, ids: Any) -> Any:
            return tf.add_n([tf.gather(table, ids) for table in self.tables])

    model = Large()
    expected = model(tf.constant([0, 5, 99])).numpy()
    glowplug.pack(model, tmp_path / "large.glow", engine="native")
    del model
    manifest = open_bundle(tmp_path / "large.glow").manifest
    assert sum(tensor.nbytes for tensor in manifest.tensors) > 2**31
    with glowplug.load(tmp_path / "large.glow") as loaded:
        np.testing.assert_array_equal(loaded(np.array([0, 5, 99], np.int32)), expected)
