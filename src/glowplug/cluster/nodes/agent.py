"""The agent of a node: one actor of Ray's that knows what this node has, brings more, and gives chunks to others.

It runs on every node of the cluster for as long as the cluster does, and asks for no processor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from glowplug.cluster.connection import require_ray
from glowplug.core.errors import ClusterError, GlowplugError
from glowplug.core.version import VERSION
from glowplug.store import sharing
from glowplug.store.pull import obtain
from glowplug.store.sharing import Description

from .seeding import Seed
from .shelf import Shelf

_SHELF_BYTES = 512 << 20
_READERS, _FETCHERS = 8, 16
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a model on a node. `error` is there where it could not be had."""

    node: str
    digest: str = ""
    origin_bytes: int = 0
    peer_bytes: int = 0
    duration_ns: int = 0
    error: GlowplugError | None = None


class Agent:
    """What the actor runs. Its methods are called by other nodes' agents, by replicas and by whoever deploys."""

    def __init__(self, node: str) -> None:
        ray = require_ray()
        store_bytes = ray.cluster_resources().get("object_store_memory", 0) / max(1, len(ray.nodes()))
        self._ray, self._node = ray, node
        self._shelf = Shelf(min(_SHELF_BYTES, max(32 << 20, int(store_bytes) // 4)))
        self._readers = ThreadPoolExecutor(_READERS, "glowplug-origin")
        self._workers = ThreadPoolExecutor(_FETCHERS, "glowplug-agent")
        self._seeds: dict[str, Seed] = {}
        self._coming: dict[str, asyncio.Task[Outcome]] = {}
        self._replicas: dict[str, dict[str, Any]] = {}

    async def hello(self) -> dict[str, Any]:
        """Say who this is."""
        return {"node": self._node, "pid": os.getpid(), "glowplug": VERSION}

    async def describe(self, url: str) -> tuple[Description, int] | GlowplugError:
        """Find out what a URL names, and how many bytes were read for that: what was not pushed has to be fetched."""

        def ask() -> tuple[Description, int]:
            found = sharing.describe(url)
            if found is not None:
                return found, 0
            known = sharing.digests()
            with obtain(url) as held:
                found = sharing.describe_held(url, held)
            return found, 0 if found.digest in known else found.tree.size

        try:
            found, read = await self._elsewhere(ask)
        except GlowplugError as error:
            return error
        self._seed(found).counts.origin_bytes += read
        return found, read

    async def has(self, digest: str) -> bool:
        """Say whether this node has it all."""

        def look() -> bool:
            held = sharing.find(digest)
            if held is not None:
                held.release()
            return held is not None

        return await self._elsewhere(look)

    async def expect(self, description: Description) -> bool:
        """Say whether this node has it all; if not, know what it is, and that it is about to be fetched."""
        found = await self.has(description.digest)
        if not found:
            self._seed(description).expect()
        return found

    async def seed(self, description: Description, peers: Mapping[str, Any], holders: list[str]) -> Outcome:
        """Have it on this node, and say what that took. Those who ask while it comes wait for the same."""
        task = self._coming.get(description.digest)
        if task is None:
            task = asyncio.ensure_future(self._fetch(description, dict(peers), frozenset(holders)))
            self._coming[description.digest] = task
            task.add_done_callback(lambda _: self._coming.pop(description.digest, None))
        return await asyncio.shield(task)

    async def _fetch(self, description: Description, peers: dict[str, Any], holders: frozenset[str]) -> Outcome:
        seed, began = self._seed(description), time.monotonic_ns()
        origin, peer = seed.counts.origin_bytes, seed.counts.peer_bytes
        error: GlowplugError | None = None
        try:
            await self._elsewhere(lambda: seed.fetch(peers, holders))
        except GlowplugError as failure:
            error = failure
        except OSError as failure:
            error = ClusterError("a node cannot keep the model", seen=f"{self._node}: {failure}")
        return Outcome(
            self._node,
            description.digest,
            seed.counts.origin_bytes - origin,
            seed.counts.peer_bytes - peer,
            time.monotonic_ns() - began,
            error,
        )

    async def know(self, description: Description) -> None:
        """Learn what there is, so that chunks of it can be asked for."""
        self._seed(description)

    async def chunk(self, digest: str, chunk: str) -> list[Any]:
        """Give another node a chunk, as a reference to Ray's object store: from here, or from the origin.

        Nothing for a digest of which this agent does not know what it stands for.
        """
        seed = self._seeds.get(digest)
        return [] if seed is None else [await asyncio.wrap_future(seed.offer(chunk))]

    async def heard(self, replica: str, about: dict[str, Any] | None) -> None:
        """Note what a replica of this node says of itself; None when it ends."""
        self._replicas.pop(replica, None)
        if about is not None:
            self._replicas[replica] = about

    async def rehearse(self, generation: dict[str, Any], settings: dict[str, Any]) -> str:
        """Load and warm models as a replica would, then let them go; return why they cannot be, or nothing."""
        from glowplug.cluster.replicas.rehearsal import rehearse

        try:
            await rehearse(generation, settings)
        except GlowplugError as error:
            return str(error)
        return ""

    async def status(self) -> dict[str, Any]:
        """Return what there is on this node."""
        self._forget_dead()
        models = [
            {"url": seed.description.url, "digest": digest, **_shown(asdict(seed.counts))}
            for digest, seed in self._seeds.items()
        ]
        return {"node": self._node, "glowplug": VERSION, "models": models, "replicas": list(self._replicas.values())}

    def _forget_dead(self) -> None:
        for name, about in list(self._replicas.items()):
            with contextlib.suppress(KeyError):
                if not os.path.exists(f"/proc/{about['pid']}"):  # noqa: PTH110
                    del self._replicas[name]

    def _seed(self, description: Description) -> Seed:
        found = self._seeds.get(description.digest)
        if found is None:
            found = Seed(description, self._node, self._shelf, self._readers, self._ray)
            self._seeds[description.digest] = found
        return found

    async def _elsewhere(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)


def _shown(counts: dict[str, Any]) -> dict[str, Any]:
    return {**counts, "passed_over": sorted(counts["passed_over"])}
