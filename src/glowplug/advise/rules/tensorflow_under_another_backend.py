"""Keras runs on another backend, and TensorFlow was imported all the same."""

from __future__ import annotations

from collections.abc import Iterator

from glowplug.advise.match import WORTH_NS, Match
from glowplug.advise.view import View, ids
from glowplug.advise.wording import at, seconds
from glowplug.core.profile import Remedy

SYMPTOM = "TensorFlow is imported although Keras uses another backend"

_CODE = """\
import keras  # with KERAS_BACKEND=jax, torch or numpy: no import of tensorflow beside it"""


def find(view: View) -> Iterator[Match]:
    """Report TensorFlow's import under a Keras backend that is another one."""
    profile = view.profile
    backend = profile.environment.get("keras_backend")
    if backend in (None, "tensorflow"):
        return
    for span in view.imports_of("tensorflow"):
        if span.pid != profile.root_pid or span.duration_ns < WORTH_NS:
            continue
        importer = profile.environment.get("tensorflow_importer") or {}
        yield Match(
            title=(
                f"Keras runs on {backend}, and TensorFlow was imported too: {seconds(span.duration_ns)}"
                f"{at(importer.get('site', span.attrs.get('site')))}"
            ),
            evidence={
                "keras_backend": backend,
                "import_ns": span.duration_ns,
                "imported_by": importer.get("module"),
                "chain": importer.get("chain"),
            },
            saves_ns=span.duration_ns,
            remedy=Remedy(
                text=(
                    "Drop the import of TensorFlow, or move it to where it is needed; the chain "
                    "shows who asks for it."
                ),
                code=_CODE,
            ),
            spans=ids([span]),
        )
