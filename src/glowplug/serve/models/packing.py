"""Turns plain SavedModels into bundles beside the serving: `glowplug pack` in a process of its own, at low priority.

What is packed is kept in a cache folder by the source's identity, so that the next start serves it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from glowplug.core.errors import ModelError

from .sources import Source, identify

Run = Callable[[list[str], Path], Awaitable[int]]

_KEPT_LOG_LINES = 3
_KEPT_LOG_S = 7 * 24 * 3600  # of a model that could not be packed


class Packer:
    """Packs one model at a time."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder, self._run = folder, run
        self._lock = asyncio.Lock()

    def cached(self, source: Source) -> Source | None:
        """Return the bundle of a SavedModel if it was packed before."""
        if source.kind != "saved_model":
            return None
        found = identify(self._path(source))
        return found if found is not None and found.kind == "bundle" else None

    async def pack(self, source: Source) -> Source:
        """Return the bundle of a SavedModel, packing it if need be; raises `ModelError` when that fails."""
        async with self._lock:
            known = self.cached(source)
            if known is not None:
                return known
            target = self._path(source)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_old_logs(target.parent)
            log = target.with_suffix(".log")
            command = [sys.executable, "-m", "glowplug", "pack", str(source.path), "-o", str(target), "--force"]
            code = await self._run(command, log)
            made = self.cached(source)
            if identify(source.path) != source:
                shutil.rmtree(target, ignore_errors=True)
                raise ModelError("the model changed while it was packed", seen=source.path.name)
            if code != 0 or made is None:
                shutil.rmtree(target, ignore_errors=True)
                raise ModelError("the model could not be packed", seen=_tail(log) or f"exit code {code}")
            log.unlink(missing_ok=True)
            return made

    def _path(self, source: Source) -> Path:
        identity = repr((str(source.path.resolve()), source.stamp)).encode()
        return self._folder / f"{hashlib.sha256(identity).hexdigest()[:24]}.glow"


def _remove_old_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            if log.lstat().st_mtime < time.time() - _KEPT_LOG_S:
                log.unlink()


def _tail(log: Path) -> str:
    try:
        return " ".join(log.read_text(errors="replace").splitlines()[-_KEPT_LOG_LINES:])[-500:]
    except OSError:
        return ""
