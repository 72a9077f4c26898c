"""Turns plain models into bundles beside the serving: `glowplug pack` in a process of its own, at low priority.

What is packed is kept in a cache folder by the source's identity, so that the next start serves it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from glowplug.bundle import layout
from glowplug.core.errors import ModelError

from .sources import Source, identify, is_unchanged
from .work_queue import Overdue, WorkQueue

Run = Callable[[list[str], Path], Awaitable[int]]
SERVE = ("serve",)

_PATIENCE_S = 900.0  # it has what nobody else wants of the processors: a large model takes long
_KEPT_LOG_LINES = 3
_KEPT_LOG_S = 7 * 24 * 3600  # of a model that could not be packed


class Packer:
    """Packs one model at a time, as long as that does not take too long."""

    def __init__(
        self,
        folder: Path,
        run: Run,
        tags: tuple[str, ...] = SERVE,
        libraries: tuple[str, ...] = (),
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._folder, self._run, self._tags, self._libraries = folder, run, tags, libraries
        self._queue = WorkQueue(patience_s)

    def cached(self, source: Source) -> Source | None:
        """Return the bundle of a plain model if it was packed before."""
        if source.kind == "bundle":
            return None
        found = identify(self._path(source))
        return found if found is not None and found.kind == "bundle" else None

    async def pack(self, source: Source, more_libraries: tuple[str, ...] = (), *, overdue: Overdue) -> Source:
        """Return the bundle of a plain model, packing it if need be; raises `ModelError` when that fails.

        `more_libraries` are packages of operations that it turned out to need; `overdue` is told when it takes so long
        that others are packed beside it.
        """
        async with self._queue.turn(overdue):
            known = self.cached(source)
            if known is not None:
                return known
            target = self._path(source)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_old_logs(target.parent)
            log = target.with_suffix(".log")
            model = source.path / layout.TFLITE if source.kind == "tflite" else source.path
            command = [sys.executable, "-m", "glowplug", "pack", str(model), "-o", str(target), "--force"]
            command += ["--prefer", "any"]  # what is measured beside the load of a server is worth little
            if source.kind == "saved_model" and self._tags != SERVE:
                command += ["--tags", ",".join(self._tags)]
            for library in dict.fromkeys((*self._libraries, *more_libraries)):
                command += ["--op-library", library]
            code = await self._run(command, log)
            made = self.cached(source)
            if not is_unchanged(source):
                shutil.rmtree(target, ignore_errors=True)
                raise ModelError("the model changed while it was packed", seen=source.path.name)
            if code != 0 or made is None:
                shutil.rmtree(target, ignore_errors=True)
                raise ModelError("the model could not be packed", seen=_tail(log) or f"exit code {code}")
            log.unlink(missing_ok=True)
            return made

    def _path(self, source: Source) -> Path:
        parts: tuple[object, ...] = (str(source.path.resolve()), source.kind, source.stamp)
        if self._tags != SERVE:
            parts += (self._tags,)
        identity = repr(parts).encode()
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
