"""Where things stand in a bundle: file names, alignment, and which relative paths are safe to follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from glowplug.core.disk.relative_paths import objection
from glowplug.core.errors import UnsafePathError

if TYPE_CHECKING:
    from pathlib import Path

ALIGNMENT = 64  # TF_NewTensor copies a buffer that starts below this alignment

MANIFEST = "bundle.json"
SEAL = "bundle.seal"  # who packed it; not listed in the manifest, which it signs
GRAPH = "graph.pb"
PORTABLE_GRAPH = "graph.portable.pb"
WEIGHTS = "weights.bin"
TFLITE = "model.tflite"
PACKED = "packed.weights"  # of model.tflite, for one machine; the manifest names it, but not among its files
ASSETS = "assets/"
WARMUP = "warmup/"
SAVED_MODEL = "saved_model/"

_NAMES = {MANIFEST, SEAL, GRAPH, PORTABLE_GRAPH, WEIGHTS, TFLITE, PACKED}
_NAMES |= {folder.rstrip("/") for folder in (ASSETS, WARMUP, SAVED_MODEL)}


def align(offset: int) -> int:
    """Return the first aligned offset at or after `offset`."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def is_replaceable(folder: Path) -> bool:
    """Say whether a folder is empty, or a bundle with nothing else in it: another bundle may take its place."""
    from glowplug.core.disk.unfinished import PARTIAL  # here: who loads a bundle replaces none

    names = {one.name for one in folder.iterdir() if PARTIAL not in one.name}
    return not names or (MANIFEST in names and names <= _NAMES)


def check_path(path: str, where: str) -> str:
    """Return `path` if it is a plain relative POSIX path that stays inside; else raise `UnsafePathError`.

    `where` is the place in the manifest that the message names.
    """
    reason = objection(path)
    if reason:
        refuse_path(path, where, reason)
    return path


def refuse_path(path: str, where: str, reason: str) -> NoReturn:
    """Raise `UnsafePathError` for the path that the manifest names at `where`."""
    raise UnsafePathError(
        f"the manifest names an unsafe path at {where} ({reason})",
        seen=ascii(path[:200]),
        remedy="do not use this bundle; pack the model again",
    )
