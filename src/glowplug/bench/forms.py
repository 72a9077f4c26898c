"""Forms of a model that were made before, in a folder that outlives a benchmark: converting can take longer.

A form is used again if the model's files are the same, and for Glowplug's own if Glowplug is. Who changes a program
that converts, removes the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from glowplug.core.disk.files import write_file

_RECORD = "forms.json"
_VERSION = 1


class KeptForms:
    """What is known of the forms in a folder: a path, or why there is none. Written after each change."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _RECORD
        self._known: dict[str, Any] = {}
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            if document["version"] == _VERSION:
                self._known = dict(document["forms"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # nothing was made here, or nothing that can be understood: all is made anew

    def get(self, form: str, identity: str) -> dict[str, Any] | None:
        """Return the entry of a form that was made for this identity, if what it names is still there."""
        entry = self._known.get(form)
        if not isinstance(entry, dict) or entry.get("identity") != identity:
            return None
        return entry if "failed" in entry or Path(str(entry.get("path"))).exists() else None

    def put(self, form: str, identity: str, **facts: str) -> None:
        """Keep an entry: `path`, or `failed`, the reason; and what else is to be known."""
        self._known[form] = {"identity": identity, **facts}
        text = json.dumps({"version": _VERSION, "forms": self._known}, indent=1)
        write_file(self._path, text.encode(), force=True)


def identity_of(*parts: object) -> str:
    """Return what stands for these values, and for the files that paths among them name, by size and time."""
    digest = hashlib.sha256()
    for part in parts:
        for text in _stamps(part) if isinstance(part, Path) else [repr(part)]:
            data = text.encode(errors="surrogateescape")
            digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


@cache
def package_identity() -> str:
    """Return what stands for the code of Glowplug, which decides what its bundles are."""
    digest = hashlib.sha256()
    root = Path(str(files("glowplug")))
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _stamps(path: Path) -> Iterable[str]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    for one in found:
        status = os.lstat(one)
        yield f"{one} {status.st_size if one.is_file() else 0} {status.st_mtime_ns if one.is_file() else 0}"
