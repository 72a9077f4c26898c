"""The models of one replica: each a version of the server's catalogue, with a worker of its own.

With a bound on how many are loaded, a model is loaded when it is first asked for, once however many ask, and the one
that was not used for longest goes. A new generation is loaded beside the old one, takes its place in one step, and the
old one leaves when its last call is answered. All of it runs in the replica's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from pathlib import Path
from typing import Any

from glowplug.cluster.settings import Generation, ModelChoice, ReplicaSettings
from glowplug.core.errors import GlowplugError, ModelError, RequestError, UntrustedBundleError
from glowplug.loader.engines.savedmodel import is_saved_model
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.models.catalog import Catalog, Model
from glowplug.serve.models.config import ModelConfig
from glowplug.serve.models.sources import identify
from glowplug.serve.models.versions import State, Version
from glowplug.serve.wire.calls import ModelReference
from glowplug.serve.workers.group import Group, GroupSettings, Spawner
from glowplug.serve.workers.spec import WorkerSpec
from glowplug.store.node_cache.entries import Held

_AGAIN_S = 5.0  # after a load on demand failed, it is not tried again for so long


class ReplicaModels(Catalog):
    """The catalogue of a replica."""

    def __init__(self, settings: ReplicaSettings, spawner: Spawner) -> None:
        super().__init__()
        self._settings, self._spawner = settings, spawner
        self._choices: dict[str, ModelChoice] = {}
        self._held: dict[Version, Held] = {}
        self._used: dict[str, float] = {}
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.generation = 0
        self.steps: dict[str, dict[str, float]] = {}  # by model, what its last load took, in seconds
        self.metrics = Metrics(self)

    async def wait_for_change(self) -> None:
        """Return when a model has been loaded, or could not be."""
        await self._changed.wait()

    def group(self, target: ModelReference) -> tuple[Version, Group]:
        """Return the version and its worker; one that is not loaded begins to be, and is `NotReadyError` until then."""
        if target.name in self._choices:
            self._used[target.name] = time.monotonic()
            if not self.models[target.name].available():
                self._begin(target.name)
        return super().group(target)

    async def ensure(self, name: str, timeout_s: float) -> None:
        """Have a model loaded, if it is one of these; raises where that cannot be, or takes longer."""
        if name in self._choices and not self.models[name].available():
            await asyncio.wait([self._begin(name)], timeout=timeout_s)

    async def adopt(self, generation: Generation) -> None:
        """Serve another generation: what is new is loaded and warmed first; if anything fails, all stays as it is."""
        wanted = {one.name: one for one in generation.models}
        changed = {one.name: one for one in generation.models if self._choices.get(one.name) != one}
        loaded = await self._load_all(self._eager(list(changed.values())))
        old = [version for model in self.models.values() for version in model.available()]
        kept = [version for version in old if version.model in wanted and version.model not in changed]
        self._choices, self.generation = wanted, generation.number
        self._failed.clear()
        self.models = {name: self._entry(choice, loaded.get(name), kept) for name, choice in wanted.items()}
        for version in old:
            if version not in kept:
                self._let_go(version)
        self._tell()

    def _eager(self, changed: list[ModelChoice]) -> list[ModelChoice]:
        """Return what is loaded before it is asked for: all, or as many as may be loaded; later, what is in use."""
        if not self._settings.resident:
            return changed
        if not self._choices:
            return changed[: self._settings.resident]
        return [one for one in changed if one.name in self.models and self.models[one.name].available()]

    async def _load_all(self, choices: list[ModelChoice]) -> dict[str, Version]:
        """Load models; if one cannot be, those that were are let go again and its error is raised."""
        results = await asyncio.gather(*(self._load(one) for one in choices), return_exceptions=True)
        loaded = [one for one in results if isinstance(one, Version)]
        errors = [one for one in results if isinstance(one, BaseException)]
        if errors:
            for version in loaded:
                self._let_go(version)
            raise errors[0]
        return {version.model: version for version in loaded}

    def _entry(self, choice: ModelChoice, loaded: Version | None, kept: list[Version]) -> Model:
        model = Model(ModelConfig(choice.name, Path(), url=choice.url))
        for version in (loaded, *kept):
            if version is not None and version.model == choice.name:
                model.versions[version.number] = version
        model.expected = not model.versions
        return model

    def _begin(self, name: str) -> asyncio.Task[None]:
        """Begin to load a model, unless that is under way, or failed a moment ago."""
        task = self._loading.get(name)
        if task is None:
            failed_at, error = self._failed.get(name, (-math.inf, ""))
            if time.monotonic() - failed_at < _AGAIN_S:
                raise RequestError("the model cannot be loaded", seen=error, code="UNAVAILABLE")
            self.models[name].expected = True
            task = self._loading[name] = asyncio.ensure_future(self._on_demand(name))
            task.add_done_callback(lambda _: self._loading.pop(name, None))
        return task

    async def _on_demand(self, name: str) -> None:
        choice, model = self._choices[name], self.models[name]
        try:
            version = await self._load(choice)
        except GlowplugError as error:
            self._failed[name] = (time.monotonic(), str(error))
        else:
            self._failed.pop(name, None)
            if self.models.get(name) is not model:  # another generation came meanwhile
                self._let_go(version)
                return
            model.versions[choice.version] = version
            model.expected = False
            self._make_room(name)
        self._tell()

    def _make_room(self, newest: str) -> None:
        """Let go of what was not used for longest, beyond the bound."""
        resident = [name for name, model in self.models.items() if model.available() and name != newest]
        resident.sort(key=lambda name: self._used.get(name, 0.0))
        for name in resident[: max(0, len(resident) + 1 - self._settings.resident)] if self._settings.resident else ():
            for version in self.models[name].available():
                del self.models[name].versions[version.number]
                self.models[name].expected = True
                self._let_go(version)

    async def _load(self, choice: ModelChoice) -> Version:
        """Bring a model to this node, start its worker, and wait until it is warm."""
        from glowplug.cluster.nodes.preloading import bring

        began = time.monotonic()
        held, path = await asyncio.get_running_loop().run_in_executor(None, bring, choice.url)
        brought = time.monotonic()
        try:
            version = await self._start(choice, path, held)
        except BaseException:
            held.release()
            raise
        self._held[version] = held
        version.ready_after_s = time.monotonic() - began
        reports = version.group.reports.values() if version.group is not None else ()
        self.steps[choice.name] = {
            "bring": round(brought - began, 3),
            "load": round(max((one["load_ns"] for one in reports), default=0) / 1e9, 3),
            "warm": round(max((one["warmup_ns"] for one in reports), default=0) / 1e9, 3),
            "all": round(version.ready_after_s, 3),
        }
        return version

    async def _start(self, choice: ModelChoice, path: Path, held: Held) -> Version:
        source = identify(path)
        if source is None:
            raise ModelError("there is no model", seen=choice.url, remedy="push a bundle that `glowplug pack` made")
        settings = self._settings
        code = source.kind == "saved_model" or is_saved_model(path / "saved_model")
        trust = settings.trust or (code and held.signed)
        if code and not trust:
            raise UntrustedBundleError(
                "this model is a program, and nobody vouches for it",
                seen=choice.url,
                remedy="pass trust=True if you trust it, or sign it (`glowplug push --sign`)",
            )
        spec = WorkerSpec(
            str(path),
            source.kind,
            trust=trust,
            intra_op_threads=settings.intra_op_threads,
            inter_op_threads=settings.inter_op_threads,
            op_libraries=settings.op_libraries,
            largest_batch=settings.max_batch_size if settings.batching else 0,
            brief=True,
        )
        version = Version(choice.name, choice.version, source, State.LOADING)
        counted = self.metrics.observer(version)
        of_group = GroupSettings(1, settings.joined, settings.max_queue, settings.timeout_s)
        group = Group(spec, of_group, self._spawner, counted)
        await group.start()
        version.group, version.state = group, State.AVAILABLE
        return version

    def _let_go(self, version: Version) -> None:
        """Drain a version that nothing is routed to any more."""
        version.state = State.UNLOADING
        task = asyncio.ensure_future(self._drain(version))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _drain(self, version: Version) -> None:
        if version.group is not None:
            with contextlib.suppress(RequestError):
                await version.group.drain()
        held = self._held.pop(version, None)
        if held is not None:
            held.release()

    async def close(self) -> None:
        """Let go of everything, once the calls that are here are answered."""
        for task in list(self._loading.values()):
            task.cancel()
        for model in self.models.values():
            for version in model.available():
                self._let_go(version)
        if self._leaving:
            await asyncio.wait(list(self._leaving))

    def describe(self) -> list[dict[str, Any]]:
        """Return what is loaded, for the status."""
        return [
            {"model": name, "url": choice.url, "version": choice.version, "loaded": bool(self.models[name].available())}
            for name, choice in self._choices.items()
        ]

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
