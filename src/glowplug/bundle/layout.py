"""Where things stand in a bundle: file names, alignment, and which relative paths are safe to follow."""

from __future__ import annotations

from typing import NoReturn

from glowplug.core.errors import UnsafePathError

ALIGNMENT = 64  # TF_NewTensor copies a buffer that starts below this alignment

MANIFEST = "bundle.json"
SEAL = "bundle.seal"  # who packed it; not listed in the manifest, which it signs
GRAPH = "graph.pb"
PORTABLE_GRAPH = "graph.portable.pb"
WEIGHTS = "weights.bin"
TFLITE = "model.tflite"
ASSETS = "assets/"
WARMUP = "warmup/"
SAVED_MODEL = "saved_model/"

MAX_PATH_BYTES = 1024
MAX_COMPONENT_BYTES = 255  # NAME_MAX of the file systems a bundle travels over


def align(offset: int) -> int:
    """Return the first aligned offset at or after `offset`."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def check_path(path: str, where: str) -> str:
    """Return `path` if it is a plain relative POSIX path that stays inside; else raise `UnsafePathError`.

    `where` is the place in the manifest that the message names.
    """
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        refuse_path(path, where, "it is not Unicode text")
    if len(encoded) > MAX_PATH_BYTES:
        refuse_path(path, where, f"it is longer than {MAX_PATH_BYTES} bytes")
    if "\\" in path or not path.isprintable():
        refuse_path(path, where, "it has a backslash or a character that does not print")
    for component in path.split("/"):
        if component in ("", ".", ".."):
            refuse_path(path, where, "a component is empty, `.` or `..`")
        if len(component.encode()) > MAX_COMPONENT_BYTES:
            refuse_path(path, where, f"a component is longer than {MAX_COMPONENT_BYTES} bytes")
    return path


def refuse_path(path: str, where: str, reason: str) -> NoReturn:
    """Raise `UnsafePathError` for the path that the manifest names at `where`."""
    raise UnsafePathError(
        f"the manifest names an unsafe path at {where} ({reason})",
        seen=ascii(path[:200]),
        remedy="do not use this bundle; pack the model again",
    )
