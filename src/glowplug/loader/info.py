"""`Model.info`: where a model came from and how it was loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowplug.bundle.reader import Bundle

from .engines.engine import Engine


@dataclass(frozen=True, slots=True)
class Info:
    """Where a model came from and how it was loaded. `notes` says what a user should know."""

    path: Path
    engine: str
    notes: tuple[str, ...]
    warmup_files: tuple[Path, ...]
    provenance: Mapping[str, Any]
    equivalence: Mapping[str, Any]


def describe(bundle: Bundle, engine: Engine) -> Info:
    """Return what there is to know of an open bundle and the engine that runs it."""
    manifest = bundle.manifest
    return Info(
        bundle.root,
        manifest.engine,
        tuple(engine.notes),
        bundle.warmup_files,
        manifest.provenance,
        manifest.equivalence,
    )
