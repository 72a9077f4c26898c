"""Keeps what is served in step with what is configured and what lies on disk.

A new version is loaded, warmed in every worker and only then routed to; the old one goes afterwards, when its last
request is answered. One that cannot be loaded ends with the reason and leaves the others as they are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glowplug.core.errors import GlowplugError, RequestError
from glowplug.serve.log import Log
from glowplug.serve.workers.group import Group, GroupSettings, Observer, Spawner
from glowplug.serve.workers.spec import WorkerSpec

from .catalog import Catalog, Model
from .config import ModelConfig, read_config_file
from .memory import check_memory
from .packing import Packer
from .sources import Source, find_versions
from .versions import State, Version


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """`template` is the worker specification that every version starts from."""

    group: GroupSettings
    template: WorkerSpec
    poll_seconds: float = 1.0
    config_file: Path | None = None
    recorded: Path | None = None
    config_poll_seconds: float = 1.0


class Manager:
    """Loads and unloads versions. All of it runs in the front end's event loop."""

    def __init__(
        self,
        catalog: Catalog,
        settings: ManagerSettings,
        spawner: Spawner,
        observe: Callable[[Version], Observer],
        packer: Packer | None,
        log: Log,
    ) -> None:
        self.catalog, self._settings, self._spawner = catalog, settings, spawner
        self._observe, self._packer, self._log = observe, packer, log
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._config_stamp: tuple[int, int] | None = None
        self._loading = asyncio.Lock()  # one version at a time loads, so that loading costs at most one group's worth

    def configure(self, configs: Iterable[ModelConfig]) -> None:
        """Serve these models from now on, and no others."""
        wanted = {config.name: config for config in configs}
        for name, config in wanted.items():
            model = self.catalog.models.get(name)
            if model is None:
                self.catalog.models[name] = Model(config)
            else:
                self._check_labels(model, config)
                model.config = config
        for name in set(self.catalog.models) - set(wanted):
            model = self.catalog.models.pop(name)
            for version in model.versions.values():
                self._unload(version)
        self.reconcile()

    def _check_labels(self, model: Model, config: ModelConfig) -> None:
        """A label may only be moved to a version that answers, or requests by label would fail."""
        for label, number in config.labels.items():
            version = model.versions.get(number)
            available = version is not None and version.state is State.AVAILABLE
            if model.config.labels.get(label, number) != number and not available:
                raise RequestError(
                    f"label {label!r} of model {config.name!r} cannot move to a version that is not available",
                    seen=number,
                    code="FAILED_PRECONDITION",
                )

    async def wait_for_change(self) -> None:
        """Wait until a version has changed its state."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiting] = None
        try:
            await waiting
        finally:
            self._waiters.pop(waiting, None)

    def tell_waiters(self) -> None:
        """Wake whoever waits for a change."""
        for waiting in self._waiters:
            if not waiting.done():
                waiting.set_result(None)

    def starting(self) -> bool:
        """Say whether a version is on its way into a model that has none yet."""
        return any(
            version.state in (State.START, State.LOADING)
            for model in self.catalog.models.values()
            if not model.available()
            for version in model.versions.values()
        )

    async def run(self) -> None:
        """Watch base paths and the configuration file until cancelled."""
        await asyncio.gather(
            _repeat(self._reload_config, self._settings.config_poll_seconds),
            _repeat(self.reconcile, self._settings.poll_seconds),
        )

    def _reload_config(self) -> None:
        path = self._settings.config_file
        if path is None:
            return
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._config_stamp:
                return
            self._config_stamp = stamp
            self.configure(read_config_file(path))
            self._log.event("config_loaded", models=sorted(self.catalog.models))
        except (GlowplugError, OSError) as error:
            self._log.event("config_refused", error=str(error))

    def reconcile(self) -> None:
        """Compare what is there with what is served, and start what has to be done."""
        for model in list(self.catalog.models.values()):
            found = find_versions(model.config.base_path)
            if not found:
                continue
            wanted = set(model.config.policy.choose(list(found)))
            for number in sorted(wanted):
                current = model.versions.get(number)
                if current is None or (current.state is State.END and self._may_retry(current, found[number])):
                    version = Version(model.config.name, number, found[number])
                    model.versions[number] = version
                    self._spawn(self._load(model, version))
            self._retire(model, wanted)

    @staticmethod
    def _may_retry(version: Version, source: Source) -> bool:
        return version.source.stamp != source.stamp or not version.error

    def _retire(self, model: Model, wanted: set[int]) -> None:
        """Unload what is no longer wanted, once something that is wanted answers."""
        settled = {v.number for v in model.available()} & wanted
        if not settled:
            return
        for number, version in list(model.versions.items()):
            if number not in wanted and version.state is State.AVAILABLE and number not in model.config.labels.values():
                self._unload(version)

    async def _load(self, model: Model, version: Version) -> None:
        busy = any(other.available() for other in self.catalog.models.values())
        async with self._loading:
            version.state = State.LOADING
            self._log.event("loading", model=version.model, version=version.number)
            known = self._packer.cached(version.source) if self._packer is not None else None
            version.packed = known is not None
            try:
                version.group, version.engine = await self._start_group(
                    version, known or version.source, background=busy
                )
            except (GlowplugError, OSError) as error:
                version.state, version.code = State.END, "NOT_FOUND" if isinstance(error, OSError) else "INTERNAL"
                version.error = self._public(str(error), version.source.path)
                self._log.event("load_failed", model=version.model, version=version.number, error=version.error)
                return
        if self.catalog.models.get(version.model) is not model:  # taken out meanwhile
            self._unload(version)
            return
        version.state, version.ready_after_s = State.AVAILABLE, time.monotonic() - version.began
        self._log.event("available", model=version.model, version=version.number, **version.describe())
        self.tell_waiters()
        self.reconcile()
        if version.source.kind == "saved_model" and self._packer is not None and not version.packed:
            await self._swap_for_packed(model, version)

    async def _start_group(self, version: Version, source: Source, *, background: bool) -> tuple[Group, str]:
        settings = self._settings.group
        if source.kind == "saved_model" and self._packer is not None:
            settings = replace(settings, instances=1)  # its weights are not shared; more come with the bundle
        check_memory(source, settings.instances)
        recorded = self._settings.recorded
        spec = replace(
            self._settings.template,
            path=str(source.path),
            kind=source.kind,
            background=background,
            recorded="" if recorded is None else str(recorded / f"{version.model}.requests"),
        )
        group = Group(spec, settings, self._spawner, self._observe(version))
        version.loading = group
        try:
            await group.start()
        finally:
            version.loading = None
        return group, "savedmodel" if source.kind == "saved_model" else _engine_of(source.path)

    async def _swap_for_packed(self, model: Model, version: Version) -> None:
        """Pack a plain SavedModel at low priority, then route to the bundle. Failing that, all stays as it is."""
        assert self._packer is not None
        try:
            bundle = await self._packer.pack(version.source)
            async with self._loading:
                if version.state is not State.AVAILABLE:
                    return
                group, engine = await self._start_group(version, bundle, background=True)
        except (GlowplugError, OSError) as error:
            self._log.event(
                "not_packed",
                model=version.model,
                version=version.number,
                error=self._public(str(error), version.source.path),
            )
            return
        old, version.group, version.engine, version.packed = version.group, group, engine, True
        self._log.event("packed", model=version.model, version=version.number, engine=engine)
        if old is not None:
            await old.drain()

    def _unload(self, version: Version) -> None:
        if version.state in (State.UNLOADING, State.END):
            return
        version.state = State.UNLOADING
        self._log.event("unloading", model=version.model, version=version.number)
        self._spawn(self._finish_unload(version))

    async def _finish_unload(self, version: Version) -> None:
        if version.group is not None:
            await version.group.drain()
        version.state, version.group = State.END, None
        self._log.event("unloaded", model=version.model, version=version.number)

    async def drain(self) -> None:
        """Finish every request and end every worker."""
        for task in list(self._tasks):
            task.cancel()
        groups = [v.group for m in self.catalog.models.values() for v in m.versions.values() if v.group is not None]
        await asyncio.gather(*(group.drain() for group in groups))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.tell_waiters()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.event("defect", error=f"{type(error).__name__}: {error}")

    @staticmethod
    def _public(text: str, path: Path) -> str:
        """Return a message without the path that the operator gave: clients see it in the status."""
        return text.replace(str(path.resolve()), path.name).replace(str(path), path.name)


async def _repeat(look: Callable[[], None], seconds: float) -> None:
    """Look once, and again every so many seconds unless that is 0, as with TensorFlow Serving."""
    look()
    while seconds > 0:
        await asyncio.sleep(seconds)
        look()


def _engine_of(path: Path) -> str:
    from glowplug.bundle.reader import read_manifest

    return read_manifest(path).engine
