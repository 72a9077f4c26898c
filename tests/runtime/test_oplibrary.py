"""Custom operations from installed packages, with the real `tensorflow_text` where it is installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import glowplug
from glowplug.bundle.verify import verify
from glowplug.core import errors
from glowplug.runtime.oplibrary import load_op_library

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]


@pytest.mark.skipif(importlib.util.find_spec("tensorflow_text") is None, reason="tensorflow_text is not installed")
def test_tensorflow_text(tmp_path: Path) -> None:
    import tensorflow as tf
    import tensorflow_text

    class Tokens(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokenizer = tensorflow_text.WhitespaceTokenizer()

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def __call__(self, text: Any) -> Any:
            words = self.tokenizer.tokenize(text)
            return {"count": words.row_lengths(), "words": words.to_tensor()}

    target = tmp_path / "tokens.glow"
    packed = glowplug.pack(Tokens(), target, op_libraries=["tensorflow_text"])
    assert packed.manifest.engine == "native"
    assert packed.manifest.op_libraries == ("tensorflow_text",)
    glowplug.load(target, op_libraries=["tensorflow_text"], verify=True).close()
    with pytest.raises(errors.OpNotAllowedError):
        verify(target)
    with pytest.raises(errors.UsageError, match="tensorflow_text"):
        glowplug.load(target)
    code = (
        "import sys, json, glowplug\n"
        "model = glowplug.load(sys.argv[1], op_libraries=['tensorflow_text'])\n"
        "print(json.dumps([model(['a glow plug', 'x'])['count'].tolist(), 'tensorflow_text' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[3, 1], False]


@pytest.mark.skipif(importlib.util.find_spec("tensorflow_text") is None, reason="tensorflow_text is not installed")
def test_an_operation_whose_kernel_reads_attributes(tmp_path: Path) -> None:
    """Without TensorFlow in Python, the library's copy of protobuf must still find what TensorFlow's has stored."""
    import tensorflow as tf
    import tensorflow_text

    class Pairs(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def __call__(self, text: Any) -> Any:
            join = tensorflow_text.Reduction.STRING_JOIN
            pairs = tensorflow_text.ngrams(tf.strings.split(text), 2, reduction_type=join, string_separator="+")
            return {"pairs": pairs.to_tensor()}

    target = tmp_path / "pairs.glow"
    glowplug.pack(Pairs(), target, op_libraries=["tensorflow_text"])
    code = (
        "import sys, glowplug\n"
        "model = glowplug.load(sys.argv[1], op_libraries=['tensorflow_text'])\n"
        "print(model(['a glow plug']).tolist())\n"
        "import hashlib, ssl, urllib.request\n"
        "print(hashlib.sha256(b'').hexdigest()[:4], ssl.create_default_context().verify_mode.name)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[[b'a+glow', b'glow+plug']]", "e3b0 CERT_REQUIRED"]


def test_unknown_package() -> None:
    with pytest.raises(errors.LibraryNotFoundError, match="pip install glowplug_no_such_ops"):
        load_op_library("glowplug_no_such_ops")


def test_package_without_operations() -> None:
    with pytest.raises(errors.LibraryNotFoundError):
        load_op_library("json")


@pytest.mark.parametrize("name", ["../evil", "/lib/x.so", "a b", ""])
def test_paths_are_refused(name: str) -> None:
    with pytest.raises(errors.UsageError, match="named by its package"):
        load_op_library(name)
