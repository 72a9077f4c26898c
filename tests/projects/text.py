"""TensorFlow Text: functions of strings whose operations come from a library of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as text

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "WhitespaceTokenizer": lambda s: text.WhitespaceTokenizer().tokenize(s).to_tensor(),
    "UnicodeScriptTokenizer": lambda s: text.UnicodeScriptTokenizer().tokenize(s).to_tensor(),
    "normalize_utf8": lambda s: text.normalize_utf8(text.case_fold_utf8(s), "NFKC"),
    "ngrams": lambda s: text.ngrams(
        tf.strings.split(s), 2, reduction_type=text.Reduction.STRING_JOIN, string_separator=" "
    ),
    "regex_split": lambda s: text.regex_split(s, r"\\s").to_tensor(),
}


def _build(name: str, directory: Path) -> None:
    module = tf.Module()
    body = FUNCTIONS[name]
    module.call = tf.function(lambda s: {"y": body(s)}, input_signature=[tf.TensorSpec([None], tf.string, "s")])
    tf.saved_model.save(module, str(directory), signatures={"serving_default": module.call})


MODELS: dict[str, Callable[[Path], Any]] = {f"TensorFlow Text:{name}": partial(_build, name) for name in FUNCTIONS}
OP_LIBRARIES = dict.fromkeys(MODELS, ("tensorflow_text",))
