"""Takes one version through its life: loads it, replaces it by its bundle or by what its files have become, unloads it.

A version is routed to only once every worker is warm, and leaves when its last request is answered. One that cannot be
loaded ends with the reason; one whose load goes on and on says so, and keeps nobody else waiting. All of it runs in the
front end's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glowplug.core.errors import GlowplugError, ModelError
from glowplug.serve.log import Log
from glowplug.serve.workers.batching import PER_MODEL_FILE, Batching, read_batching
from glowplug.serve.workers.group import Group, GroupSettings, Observer, Spawner
from glowplug.serve.workers.op_packages import noted
from glowplug.serve.workers.spec import WorkerSpec

from .memory import check_memory
from .packing import Packer
from .sources import Source, is_unchanged
from .versions import State, Version
from .work_queue import Overdue, WorkQueue

_PLAIN_ENGINES = {"saved_model": "savedmodel", "tflite": "litert"}


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """`template` is the worker specification that every version starts from; the rest says when a load is repeated, and
    for how long others wait for one (0: as long as it takes).
    """

    group: GroupSettings
    template: WorkerSpec
    recorded: Path | None = None
    per_model_batching: bool = False
    retries: int = 5
    retry_seconds: float = 60.0
    patience_s: float = 60.0


class VersionLoader:
    """Loads and unloads versions; `changed` is called whenever one has changed its state."""

    def __init__(
        self,
        settings: LoadSettings,
        spawner: Spawner,
        observe: Callable[[Version], Observer],
        packer: Packer | None,
        log: Log,
        changed: Callable[[], None],
    ) -> None:
        self._settings, self._spawner, self._observe = settings, spawner, observe
        self._packer, self._log, self._changed = packer, log, changed
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue = WorkQueue(settings.patience_s)

    def load(self, version: Version, *, background: bool) -> None:
        """Begin to load a version. `background`: others are being served meanwhile."""
        version.waiting_for = ""
        version.task = self._spawn(self._load(version, background=background))

    def reload(self, version: Version, source: Source) -> None:
        """Begin to replace what a version answers with by what its files are now, whatever else is done to it."""
        before = version.task if version.is_at_work else None
        if before is not None:
            if version.coming_stamp == source.stamp:
                return
            before.cancel()  # it is about files that are gone
        version.coming_stamp = source.stamp
        version.task = self._spawn(self._reload(version, source, before))

    def unload(self, version: Version) -> None:
        """Begin to unload a version, whatever it is doing."""
        if version.state in (State.UNLOADING, State.END):
            return
        version.state = State.UNLOADING
        self._log.event("unloading", model=version.model, version=version.number)
        self._spawn(self._unload(version))

    def may_retry(self, version: Version) -> bool:
        """Say whether a load that failed is to be tried again now, with the same files."""
        return version.attempts <= self._settings.retries and time.monotonic() >= version.retry_at

    async def stop(self) -> None:
        """Give up what is under way."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _load(self, version: Version, *, background: bool) -> None:
        async with self._turn(version, "load"):
            version.state = State.LOADING
            self._log.event("loading", model=version.model, version=version.number)
            known = self._packer.cached(version.source) if self._packer is not None else None
            version.packed = known is not None
            try:
                version.group, version.engine = await self._start_group(
                    version, version.source, known, background=background
                )
            except (GlowplugError, OSError) as error:
                self._load_failed(version, error)
                return
        version.state, version.ready_after_s = State.AVAILABLE, time.monotonic() - version.began
        self._log.event("available", model=version.model, version=version.number, **version.describe())
        self._changed()
        await self._swap_for_packed(version)

    def _load_failed(self, version: Version, error: Exception) -> None:
        version.code = "NOT_FOUND" if isinstance(error, OSError) else "INTERNAL"
        version.state, version.error = State.END, _public(str(error), version.source.path)
        version.attempts += 1
        version.retry_at = time.monotonic() + self._settings.retry_seconds
        event = {"model": version.model, "version": version.number, "error": version.error}
        self._log.event("load_failed", attempt=version.attempts, **event)
        if version.attempts > self._settings.retries:
            self._log.event("given_up", attempts=version.attempts, **event)
        else:
            asyncio.get_running_loop().call_later(self._settings.retry_seconds, self._changed)

    @contextlib.asynccontextmanager
    async def _turn(self, version: Version, stage: str) -> AsyncIterator[None]:
        """Have a version's turn for the length of the block. One that takes too long is told of, and goes on."""
        try:
            async with self._queue.turn(self._overdue(version, stage)):
                yield
        finally:
            version.overdue = ""

    def _overdue(self, version: Version, stage: str) -> Overdue:
        def tell(seconds: float) -> None:
            version.overdue = f"its {stage} takes longer than {seconds:g} s; others begin beside it"
            event = {"model": version.model, "version": version.number, "stage": stage, "error": version.overdue}
            self._log.event("load_overdue", **event)
            self._changed()

        return tell

    async def _reload(self, version: Version, source: Source, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        known = self._packer.cached(source) if self._packer is not None else None
        try:
            async with self._turn(version, "reload"):
                group, engine = await self._start_group(version, source, known, background=True)
        except (GlowplugError, OSError) as error:
            version.refused_stamp = source.stamp
            self._log.event(
                "reload_failed",
                model=version.model,
                version=version.number,
                error=_public(str(error), source.path),
            )
            return
        old, version.group, version.engine = version.group, group, engine
        version.source, version.packed = source, known is not None
        self._log.event("reloaded", model=version.model, version=version.number, engine=engine)
        self._let_go(old)
        await self._swap_for_packed(version)

    async def _swap_for_packed(self, version: Version) -> None:
        """Pack a plain model at low priority, then route to the bundle. Failing that, all stays as it is."""
        source = version.source
        if source.kind == "bundle" or self._packer is None or version.packed:
            return
        try:
            reports = version.group.reports.values() if version.group is not None else ()
            packages = noted([note for one in reports for note in one["notes"]])
            bundle = await self._packer.pack(source, packages, overdue=self._overdue(version, "conversion"))
            async with self._turn(version, "load of its bundle"):
                if version.state is not State.AVAILABLE:
                    return
                group, engine = await self._start_group(version, source, bundle, background=True)
        except (GlowplugError, OSError) as error:
            self._log.event(
                "not_packed", model=version.model, version=version.number, error=_public(str(error), source.path)
            )
            return
        finally:
            version.overdue = ""
        old, version.group, version.engine, version.packed = version.group, group, engine, True
        self._log.event("packed", model=version.model, version=version.number, engine=engine)
        self._let_go(old)

    def _let_go(self, group: Group | None) -> None:
        """Drain workers that nothing is routed to any more, whatever becomes of the version meanwhile."""
        if group is not None:
            self._spawn(group.drain())

    async def _start_group(
        self, version: Version, source: Source, bundle: Source | None, *, background: bool
    ) -> tuple[Group, str]:
        """Start the workers of a source, from its bundle where there is one, and wait until all are warm."""
        served = bundle or source
        settings, largest = self._group_settings(source)
        if served.kind != "bundle" and self._packer is not None:
            settings = replace(settings, instances=1)  # its weights are not shared; more come with the bundle
        check_memory(served, settings.instances)
        recorded = self._settings.recorded
        spec = replace(
            self._settings.template,
            path=str(served.path),
            kind=served.kind,
            largest_batch=largest,
            background=background,
            trust=self._settings.template.trust or version.vouched_for,
            recorded="" if recorded is None else str(recorded / f"{version.model}.requests"),
        )
        group = Group(spec, settings, self._spawner, self._observe(version))
        version.loading = group
        try:
            await group.start()
        finally:
            version.loading = None
        if not is_unchanged(source):  # what was loaded may be of two versions
            group.close()
            raise ModelError("the version changed while it was loaded", seen=source.path.name)
        return group, _PLAIN_ENGINES.get(served.kind) or _engine_of(served.path)

    def _group_settings(self, source: Source) -> tuple[GroupSettings, int]:
        """Return how the calls of a version are joined, and the largest batch to warm up with.

        With parameters for each model, a version without its file is not batched, as in TensorFlow Serving.
        """
        settings = self._settings.group
        if self._settings.per_model_batching:
            file = source.path / PER_MODEL_FILE
            settings = replace(settings, batching=read_batching(file) if file.is_file() else Batching())
        batching = settings.batching
        if batching.max_enqueued_batches:
            most = batching.max_enqueued_batches * batching.max_batch_size
            settings = replace(settings, max_queue=min(settings.max_queue, most))
        return settings, batching.max_batch_size if batching.allowed_sizes else 0

    async def _unload(self, version: Version) -> None:
        if version.task is not None and not version.task.done():
            version.task.cancel()
            await asyncio.wait([version.task])
        if version.group is not None:
            await version.group.drain()
        version.state, version.group = State.END, None
        self._log.event("unloaded", model=version.model, version=version.number)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.event("defect", error=f"{type(error).__name__}: {error}")
        with contextlib.suppress(RuntimeError):  # the loop is closing
            self._changed()


def _public(text: str, path: Path) -> str:
    """Return a message without the path that the operator gave: clients see it in the status."""
    return text.replace(str(path.resolve()), path.name).replace(str(path), path.name)


def _engine_of(path: Path) -> str:
    from glowplug.bundle.reader import read_manifest

    return read_manifest(path).engine
