"""Says that the steps of `tf_keras` (Keras 2) are traced as usual, once a program loads its trainer."""

from __future__ import annotations

import sys
from typing import Any

from glowplug.train.notes import Notes

_TRAINER = "tf_keras.src.engine.training"
_TEXT = "tf_keras is loaded: the steps of its models are traced as usual, only those of Keras 3 are cached"


class LegacyNote:
    """An import hook that finds nothing: it notices that the trainer of `tf_keras` is looked for."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def apply(self) -> None:
        """Begin to watch, or say it at once."""
        if _TRAINER in sys.modules:
            self._notes.warn(_TEXT)
        else:
            sys.meta_path.insert(0, self)

    def revert(self) -> None:
        """Stop watching."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Leave every module to the finders that come after."""
        if name == _TRAINER:
            self.revert()
            self._notes.warn(_TEXT)
