"""Models that no input can make answer are refused with the cause, whatever the engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glowplug
from glowplug.core.errors import UnanswerableModelError

pytestmark = pytest.mark.tensorflow


def refused(model: Any, folder: Path, **options: Any) -> str:
    with pytest.raises(UnanswerableModelError) as caught:
        glowplug.pack(model, folder / "out" / "m.glow", **options)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    assert not any((folder / "out").iterdir())
    return str(caught.value)


@pytest.mark.parametrize(("kind", "engine"), [("dense", "savedmodel"), ("keras_saved_by_tensorflow", "auto")])
def test_no_variables(kind: str, engine: Any, saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(saved_model(kind), tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "variables")
    (tmp_path / "m" / "variables").mkdir()
    assert "copy the whole SavedModel" in refused(tmp_path / "m", tmp_path, engine=engine)


@pytest.mark.parametrize("engine", ["auto", "savedmodel"])
def test_python_code(engine: Any, tmp_path: Path) -> None:
    import tensorflow as tf

    class Callback(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x: Any) -> Any:
            return tf.numpy_function(np.sin, [x], tf.float32)

    text = refused(Callback(), tmp_path, engine=engine)
    assert "PyFunc" in text
    assert "numpy_function" in text


def test_operations_of_a_package_that_was_not_named(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text")
    import tensorflow as tf
    import tensorflow_text

    class Tokens(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, s: Any) -> Any:
            return tensorflow_text.WhitespaceTokenizer().tokenize(s).to_tensor()

    assert "--op-library tensorflow_text" in refused(Tokens(), tmp_path)
    packed = glowplug.pack(Tokens(), tmp_path / "m.glow", op_libraries=["tensorflow_text"])
    assert packed.manifest.op_libraries == ("tensorflow_text",)


def test_a_kernel_that_is_not_there(tmp_path: Path) -> None:
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    class Bounded(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
        def __call__(self, x: Any) -> Any:
            return x + gen_xla_ops.xla_set_bound(tf.size(x), 5)

    assert "XlaSetBound" in refused(Bounded(), tmp_path)


def test_a_file_that_an_input_names_may_be_there_for_real_inputs(tmp_path: Path) -> None:
    import tensorflow as tf

    class Reads(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
        def __call__(self, name: Any) -> Any:
            return tf.io.read_file(name)

    assert glowplug.pack(Reads(), tmp_path / "m.glow").manifest.engine == "savedmodel"
