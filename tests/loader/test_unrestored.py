"""Variables that TensorFlow's loader leaves without a value, in models of Keras 3 that `tf.saved_model.save` wrote."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import glowplug
from glowplug.core.errors import TensorFlowError
from glowplug.loader.engines.savedmodel import open_saved_model
from glowplug.loader.engines.unrestored import restore_missing
from glowplug.runtime.config import SessionConfig
from glowplug.runtime.session import Session
from glowplug.serve.workers.plain_model import PlainModel

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]

NAMES = ["keras_saved_by_tensorflow", "keras_in_a_module"]


@pytest.mark.parametrize("name", NAMES)
def test_pack_and_serve_answer_like_tensorflow_in_python(
    name: str, saved_model: Callable[[str], Path], bundle: Callable[[str], Path], tmp_path: Path
) -> None:
    import tensorflow as tf

    stock = tf.saved_model.load(str(saved_model(name)))
    glowplug.pack(saved_model(name), tmp_path / "m.glow", engine="savedmodel")
    plain = PlainModel(saved_model(name), SessionConfig(optimize=True))
    with glowplug.load(bundle(name)) as native, glowplug.load(tmp_path / "m.glow") as fallback:
        assert (native.engine, fallback.engine) == ("native", "savedmodel")
        for signature, declared in native.signatures.items():
            (key, port) = next(iter(declared.inputs.items()))
            x = np.random.default_rng(1).normal(size=[size or 3 for size in port.spec.shape or ()]).astype("float32")
            expected = {one: value.numpy() for one, value in stock.signatures[signature](**{key: x}).items()}
            served = dict(zip(declared.outputs, plain.run(signature, [x]), strict=True))
            for model in (native, fallback):
                answer = model.signature(signature)(x)
                answers = answer if isinstance(answer, dict) else {next(iter(expected)): answer}
                for output, value in expected.items():
                    np.testing.assert_allclose(answers[output], value, rtol=1e-5, atol=1e-6)
                    np.testing.assert_allclose(served[output], value, rtol=1e-5, atol=1e-6)
    plain.close()


def test_only_what_has_no_value_is_set(saved_model: Callable[[str], Path]) -> None:
    config = SessionConfig()
    for name, expected in (("dense", 0), ("counter", 0), ("keras_saved_by_tensorflow", 8), ("keras_in_a_module", 6)):
        session, meta_graph = Session.from_saved_model(saved_model(name), config, ("serve",))
        assert len(restore_missing(session, meta_graph, saved_model(name))) == expected
        session.close()


def test_without_a_checkpoint_it_stays_as_it_is(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(saved_model("keras_saved_by_tensorflow"), tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "variables")
    session, meta_graph = open_saved_model(tmp_path / "m", SessionConfig())
    assert restore_missing(session, meta_graph, tmp_path / "m") == ()
    name = re.search(rb"conv2d[_0-9]*/kernel/Read/ReadVariableOp", meta_graph)  # whatever was built here before
    assert name is not None
    with pytest.raises(TensorFlowError):
        session.prepare((), [name[0].decode()]).run(())
    session.close()
