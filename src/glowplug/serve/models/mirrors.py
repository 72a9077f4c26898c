"""The front end's side of mirrors: a process for each model whose versions lie at a URL, and the folder it fills.

A mirror that ends is started again, after a while. What it says is logged when it changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from glowplug.serve.log import Log

from .config import ModelConfig
from .mirror_protocol import STATUS, Order, Status, read_status

Run = Callable[[list[str], Path], Awaitable[int]]

_AGAIN_S = 5.0
_KEPT_OF_LOG = 300


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """How often to look, and what may be served: see `mirror`."""

    poll_seconds: float = 1.0
    trust: bool = False
    trusted_keys: tuple[str, ...] = ()
    require_signature: bool = False


@dataclass(slots=True)
class _Running:
    command: list[str]
    folder: Path
    task: asyncio.Task[None]
    status: Status


class Mirrors:
    """The mirrors of the models that are configured now. `changed` is called when one has ended."""

    def __init__(self, settings: MirrorSettings, run: Run, log: Log, changed: Callable[[], None]) -> None:
        self._settings, self._run, self._log, self._changed = settings, run, log, changed
        self._running: dict[str, _Running] = {}
        self._folder: Path | None = None

    def keep(self, configs: Iterable[ModelConfig]) -> None:
        """Have a mirror for each model at a URL, and no others."""
        wanted = {config.name: config for config in configs if config.url}
        for name, running in list(self._running.items()):
            config = wanted.get(name)
            if config is None or running.command != self._command(config, running.folder):
                running.task.cancel()
                shutil.rmtree(running.folder, ignore_errors=True)
                del self._running[name]
        for name, config in wanted.items():
            if name not in self._running:
                self._start(config)

    def folder(self, name: str) -> Path:
        """Return the folder that the mirror of a model fills."""
        return self._running[name].folder

    def status(self, config: ModelConfig) -> Status:
        """Return what a mirror is doing. What it says anew about the whole URL is logged."""
        running = self._running.get(config.name)
        if running is None:
            return Status()
        status = read_status(running.folder)
        status = Status(status.error, {n: why.replace(config.url, config.name) for n, why in status.waiting.items()})
        if status.error and status.error != running.status.error:
            self._log.event("base_path_failed", model=config.name, error=status.error)
        running.status = status
        return status

    def begins(self, config: ModelConfig) -> bool:
        """Say whether the mirror of a model has not looked at its URL yet."""
        running = self._running.get(config.name)
        return running is not None and not running.task.done() and not (running.folder / STATUS).exists()

    def stop(self) -> None:
        """End all mirrors, and remove their folders."""
        self.keep(())
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, config: ModelConfig) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="glowplug-serve-"))  # what is linked there will be run
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        command = self._command(config, folder)
        task = asyncio.get_running_loop().create_task(self._watch(config.name, command, folder))
        self._running[config.name] = _Running(command, folder, task, Status())

    def _command(self, config: ModelConfig, folder: Path) -> list[str]:
        settings = self._settings
        order = Order(
            config.url,
            str(folder),
            config.policy,
            tuple(sorted(config.labels.values())),
            settings.poll_seconds,
            settings.trust,
            settings.trusted_keys,
            settings.require_signature,
        )
        return [sys.executable, "-m", "glowplug.serve.models.mirror", order.dump()]

    async def _watch(self, name: str, command: list[str], folder: Path) -> None:
        """Run a mirror, and run it again when it ends on its own, unless it has nothing left to do."""
        log = folder / ".log"
        while (code := await self._run(command, log)) != 0:
            with contextlib.suppress(OSError):
                said = log.read_text(errors="replace").strip()[-_KEPT_OF_LOG:]
                self._log.event("mirror_ended", model=name, code=code, error=said)
            await asyncio.sleep(_AGAIN_S)
        self._changed()
