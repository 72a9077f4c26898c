"""What a program makes after a step has the same automatic names, whether the step was traced or restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def two_models() -> tuple[list[str], Any]:
    """Train a model whose step makes layers, then another; return the names of what is made last, and the losses."""
    import keras
    import numpy as np
    from keras import layers

    class Makes(layers.Layer):
        def call(self, x: Any) -> Any:
            return layers.Concatenate()([x, x * 2.0])

    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    x = np.ones((4, 3), "float32")
    losses = []
    for _ in range(2):
        inputs = keras.Input((3,))
        model = keras.Model(inputs, layers.Dense(1)(Makes()(inputs)))
        model.compile("sgd", "mse")
        losses += model.fit(x, x[:, :1], verbose=0).history["loss"]
    return [layers.Concatenate().name, layers.Dense(1).name, keras.Input((2,)).name], losses


def test_names_are_those_of_stock(tmp_path: Path) -> None:
    from glowplug import train

    stock = two_models()
    with train.enabled(tmp_path / "cache"):
        assert two_models() == stock
        traced = train.counts()["traced"]
        assert two_models() == stock
        assert train.counts()["traced"] == traced


def test_a_second_opinion_takes_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from glowplug import train

    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "always")
    stock = two_models()
    with train.enabled(tmp_path / "cache"):
        two_models()
        assert two_models() == stock
