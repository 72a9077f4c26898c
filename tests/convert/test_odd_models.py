"""Models that nobody listed answer as stock TensorFlow does in Python, or are refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle
from glowplug.convert.job import Job, Order
from glowplug.core.errors import UnsupportedModelError

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]
odd_models = pytest.importorskip("tests.convert.odd_models")

NOT_NATIVE = {"dataset_inside": "TensorSliceDataset", "prints": "PrintV2"}
REFUSED = {"quantised_output": "DT_QUINT8", "output_without_name": "empty"}
Pack = Callable[[Path], str | None]


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    def run(source: Path) -> str | None:
        (tmp_path / "bundle").mkdir()
        return Job(Order(tmp_path / "bundle", source), lambda stage: None).run()

    return run


@pytest.mark.parametrize("name", sorted(odd_models.MODELS.keys() - REFUSED.keys()))
def test_answers_as_stock_tensorflow_does(name: str, pack: Pack, tmp_path: Path) -> None:
    import tensorflow as tf

    calls = odd_models.MODELS[name](tmp_path / "source")
    reason = pack(tmp_path / "source")
    manifest = open_bundle(tmp_path / "bundle").manifest
    if name in NOT_NATIVE:
        assert manifest.engine == "savedmodel"
        assert NOT_NATIVE[name] in str(reason)
        assert "\n" not in str(reason)
    else:
        assert (manifest.engine, reason) == ("native", None)
    assert set(manifest.equivalence["calls"]) == set(manifest.signatures)
    stock = tf.saved_model.load(str(tmp_path / "source"))
    with glowplug.load(tmp_path / "bundle", trust=True) as ours:
        for signature, inputs in calls:
            expected = stock.signatures[signature](**{key: tf.constant(value) for key, value in inputs.items()})
            _same(ours.signature(signature)(inputs), {key: value.numpy() for key, value in expected.items()})


def _same(answer: Any, expected: dict[str, Any]) -> None:
    answers = answer if isinstance(answer, dict) else dict.fromkeys(expected, answer)
    assert answers.keys() == expected.keys()
    for key, value in expected.items():
        wanted = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
        assert (answers[key].shape, answers[key].dtype) == (wanted.shape, wanted.dtype), key
        if wanted.dtype.kind in "fc":
            np.testing.assert_allclose(answers[key], wanted, rtol=1e-4, atol=1e-5, err_msg=key)
        else:
            np.testing.assert_array_equal(answers[key], wanted, err_msg=key)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_no_bundle_can_hold_is_refused_in_one_line(name: str, pack: Pack, tmp_path: Path) -> None:
    odd_models.MODELS[name](tmp_path / "source")
    with pytest.raises(UnsupportedModelError, match=REFUSED[name]) as refused:
        pack(tmp_path / "source")
    assert "\n" not in str(refused.value)
    assert refused.value.remedy


def test_what_the_source_refuses_is_refused(pack: Pack, tmp_path: Path) -> None:
    """An assertion in the model holds in the bundle."""
    odd_models.MODELS["checks"](tmp_path / "source")
    pack(tmp_path / "source")
    with glowplug.load(tmp_path / "bundle") as model:
        np.testing.assert_allclose(model(np.array([4.0, 9.0], np.float32)), [2.0, 3.0])
        with pytest.raises(glowplug.GlowplugError, match="must not be negative"):
            model(np.array([-1.0], np.float32))
