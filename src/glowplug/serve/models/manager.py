"""Keeps what is served in step with what is configured and what lies on disk.

It decides which versions are to be served; `loading` takes each of them through its life. A version is loaded when all
of it has arrived, and the old one goes only when the new one answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.errors import GlowplugError, RequestError
from glowplug.serve.log import Log
from glowplug.serve.workers.group import Observer, Spawner

from .arrivals import SETTLE_S, Arrivals
from .catalog import Catalog, Model
from .config import ModelConfig, read_changed_config_file
from .loading import LoadSettings, VersionLoader
from .mirror_protocol import Status
from .mirrors import Mirrors
from .packing import Packer
from .sources import Source, find_versions, why_no_versions
from .versions import State, Version


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """How versions are loaded, and how often to look for changes."""

    load: LoadSettings
    poll_seconds: float = 1.0
    config_file: Path | None = None
    config_poll_seconds: float = 1.0
    prefer_tflite: bool = False


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
        mirrors: Callable[[Callable[[], None]], Mirrors] | None = None,
    ) -> None:
        self.catalog, self._settings, self._log = catalog, settings, log
        self._mirrors = None if mirrors is None else mirrors(self.reconcile)
        self._loader = VersionLoader(settings.load, spawner, observe, packer, log, self._state_changed)
        self._arrivals = Arrivals()
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._config_stamp: tuple[int, ...] | None = None
        self._config_refusal = ""
        self._look_again: asyncio.TimerHandle | None = None
        self._draining = False

    def configure(self, configs: Iterable[ModelConfig]) -> None:
        """Serve these models from now on, and no others; where one of them is refused, all stays as it is."""
        wanted = {config.name: config for config in configs}
        for name, config in wanted.items():
            if name in self.catalog.models:
                self._check_labels(self.catalog.models[name], config)
        if self._mirrors is not None:
            self._mirrors.keep(wanted.values())
        for name, config in wanted.items():
            if name in self.catalog.models:
                self.catalog.models[name].config = config
            else:
                self.catalog.models[name] = Model(config)
                if config.unused:
                    self._log.event("config_unused", model=name, fields=list(config.unused))
        for name in set(self.catalog.models) - set(wanted):
            for version in self.catalog.models.pop(name).versions.values():
                self._loader.unload(version)
        self.reconcile()

    @staticmethod
    def _check_labels(model: Model, config: ModelConfig) -> None:
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

    def starting(self, patiently: Collection[str] = ()) -> bool:
        """Say whether a version is on its way into a model that has none yet.

        One that has been on its way for very long counts only where its model is one of those that are waited for
        `patiently`.
        """
        return any(
            model.expected
            or any(
                version.state in (State.START, State.LOADING) and (name in patiently or not version.overdue)
                for version in model.versions.values()
            )
            for name, model in self.catalog.models.items()
            if not model.available()
        )

    async def run(self) -> None:
        """Watch base paths and the configuration file until cancelled."""
        await asyncio.gather(
            _repeat(self._reload_config, self._settings.config_poll_seconds),
            _repeat(self.reconcile, self._settings.poll_seconds),
        )

    def _reload_config(self) -> None:
        """Apply the configuration file if it has changed, or if it was refused and may not be any more."""
        path = self._settings.config_file
        if path is None:
            return
        try:
            status = path.stat()
            # Tools that copy set times back, and sizes may be equal: an inode's own time nobody sets.
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if stamp == self._config_stamp and not self._config_refusal:
                return
            self._config_stamp = stamp
            self.configure(read_changed_config_file(path))
        except (GlowplugError, OSError) as error:
            if str(error) != self._config_refusal:
                self._log.event("config_refused", error=str(error))
            self._config_refusal = str(error)
        else:
            self._config_refusal = ""
            self._log.event("config_loaded", models=sorted(self.catalog.models))

    def reconcile(self) -> None:
        """Compare what is there with what is served, and start what has to be done."""
        if self._draining:
            return
        looked_at = list[Path]()
        for model in list(self.catalog.models.values()):
            status = Status() if self._mirrors is None else self._mirrors.status(model.config)
            found = self._find_versions(model, status)
            looked_at += [source.path for source in found.values()]
            self._note_waiting(model, {n: why for n, why in status.waiting.items() if n not in found})
            if found:
                self._reconcile(model, found)
            else:
                self._stop_loading(model)
            expected, model.expected = model.expected, self._mirrors is not None and self._mirrors.begins(model.config)
            if expected and not model.expected:
                self.tell_waiters()
        self._arrivals.forget_all_but(looked_at)

    def _find_versions(self, model: Model, status: Status) -> dict[int, Source]:
        """Return the versions that are here; where there are none, note why, and say so once."""
        base, trouble = self._base_path(model.config), status.error
        if model.config.url:
            trouble = trouble.replace(model.config.url, model.config.name)  # clients see it
        try:
            found = find_versions(base, prefer_tflite=self._settings.prefer_tflite)
        except OSError as error:  # of one disk, which is no matter of the other models
            found, trouble = {}, f"the base path cannot be read ({error.strerror})"
        if not model.config.url:
            trouble = trouble or ("" if found else why_no_versions(base))
            if trouble and trouble != model.trouble:
                seconds = self._settings.poll_seconds
                again = f"looked at again every {seconds:g} s" if seconds > 0 else "not looked at again by itself"
                self._log.event("base_path_failed", model=model.config.name, error=f"{trouble}: {base} is {again}")
        model.trouble = trouble
        return found

    def _base_path(self, config: ModelConfig) -> Path:
        return config.base_path if self._mirrors is None or not config.url else self._mirrors.folder(config.name)

    def _note_waiting(self, model: Model, waiting: Mapping[int, str]) -> None:
        """Show the versions that are at a URL and not here yet, and why; forget those that went away."""
        for number, known in list(model.versions.items()):
            if known.elsewhere and known.state is State.START and number not in waiting:
                del model.versions[number]
        for number, reason in waiting.items():
            if number not in model.versions:
                source = Source(self._base_path(model.config) / str(number), "bundle")
                model.versions[number] = Version(model.config.name, number, source, elsewhere=True)
            version = model.versions[number]
            if version.state is State.START and version.waiting_for != reason:
                if not version.waiting_for:
                    self._log.event("incomplete", model=model.config.name, version=number, reason=reason)
                version.waiting_for = reason

    def _reconcile(self, model: Model, found: dict[int, Source]) -> None:
        arrived = [number for number, source in found.items() if self._has_arrived(model, number, source)]
        wanted = set(model.config.policy.choose(arrived))
        for number in sorted(wanted):
            self._see_to(model, number, found[number])
        for number in [n for n, v in model.versions.items() if v.state is State.START and v.waiting_for]:
            if number not in found and not model.versions[number].elsewhere:  # it went before all of it was there
                del model.versions[number]
        settled = {version.number for version in model.available()} & wanted
        if settled:
            self._retire(model, wanted)

    def _has_arrived(self, model: Model, number: int, source: Source) -> bool:
        """Say whether all of a version is there; one that is served already stays one that may be."""
        current = model.versions.get(number)
        if model.config.url or (
            current is not None and current.source.stamp == source.stamp and not current.waiting_for
        ):
            return True
        reason = self._arrivals.why_not_yet(source)
        if reason:
            self._look_soon()
        if current is not None and (current.state is not State.START or current.is_at_work):
            return not reason or current.state is State.AVAILABLE
        if reason and number in model.config.policy.choose([number, *model.versions]):
            if current is None:
                current = model.versions[number] = Version(model.config.name, number, source)
            if current.waiting_for != reason:
                self._log.event("incomplete", model=model.config.name, version=number, reason=reason)
            current.waiting_for, current.source = reason, source
        return not reason

    def _see_to(self, model: Model, number: int, source: Source) -> None:
        """Load a version that is to be served, or load it again, where there is need."""
        current = model.versions.get(number)
        changed = current is not None and current.source.stamp != source.stamp
        attempts = 0
        if current is not None and current.state is State.AVAILABLE:
            if (
                changed
                and source.stamp != current.refused_stamp
                and (model.config.url or not self._arrivals.why_not_yet(source))
            ):
                self._loader.reload(current, source)
            return
        if current is not None and current.state is State.END and current.error and not changed:
            if not self._loader.may_retry(current):
                return
            attempts = current.attempts
        elif current is not None and current.state is not State.END and not current.waiting_for:
            if changed and current.is_being_loaded:
                self._loader.unload(current)  # what is being loaded is gone; afterwards it is loaded as it is now
            return
        fetched = bool(model.config.url)
        version = Version(model.config.name, number, source, attempts=attempts, vouched_for=fetched)
        model.versions[number] = version
        busy = any(other.available() for other in self.catalog.models.values())
        self._loader.load(version, background=busy)

    def _retire(self, model: Model, wanted: set[int]) -> None:
        """Unload what is no longer wanted, also what is still being loaded: that may never end."""
        for number, version in list(model.versions.items()):
            if number in wanted or number in model.config.labels.values():
                continue
            if version.state is State.AVAILABLE or version.is_being_loaded:
                self._loader.unload(version)

    def _stop_loading(self, model: Model) -> None:
        """Give up loads of what is not there any more."""
        for version in list(model.versions.values()):
            if version.is_being_loaded:
                self._loader.unload(version)

    def _look_soon(self) -> None:
        """Look again when a version may have settled, however rarely the base paths are looked at."""
        if self._look_again is None:
            self._look_again = asyncio.get_running_loop().call_later(SETTLE_S, self._looked_at_last)

    def _looked_at_last(self) -> None:
        self._look_again = None
        self.reconcile()

    def _state_changed(self) -> None:
        self.reconcile()
        self.tell_waiters()

    async def drain(self) -> None:
        """Finish every request and end every worker."""
        self._draining = True
        await self._loader.stop()
        if self._mirrors is not None:
            self._mirrors.stop()
        groups = [v.group for m in self.catalog.models.values() for v in m.versions.values() if v.group is not None]
        await asyncio.gather(*(group.drain() for group in groups))


async def _repeat(look: Callable[[], None], seconds: float) -> None:
    """Look once, and again every so many seconds unless that is 0, as with TensorFlow Serving."""
    look()
    while seconds > 0:
        await asyncio.sleep(seconds)
        look()
