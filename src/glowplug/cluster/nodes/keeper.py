"""Sees to it that nodes which join later have what all nodes are to have, before anything is placed on them.

One actor of the cluster looks at its nodes; a new one gets its models from the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import Any

from glowplug.cluster.connection import NAMESPACE, require_ray

_NAME = "glowplug-keeper"
_LOOK_S = 1.0
_MOST_KEPT = 64  # models: the node caches have a bound of their own, and the last used stay


class Keeper:
    """What the actor runs."""

    def __init__(self) -> None:
        self._wanted: dict[str, None] = {}
        self._seen: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None

    async def keep(self, url: str, nodes: list[str]) -> None:
        """Have nodes that join from now on get what a pinned URL names. `nodes` have been asked to already."""
        self._wanted.pop(url, None)
        self._wanted[url] = None
        while len(self._wanted) > _MOST_KEPT:
            del self._wanted[next(iter(self._wanted))]
        self._seen.update(nodes)
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())

    async def kept(self) -> list[str]:
        """Return what all nodes are to have."""
        return list(self._wanted)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            alive = await loop.run_in_executor(None, _alive)
            for node in alive - self._seen:
                self._seen.add(node)
                task = asyncio.ensure_future(self._seed(node))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self._seen &= alive
            await asyncio.sleep(_LOOK_S)

    async def _seed(self, node: str) -> None:
        from .preloading import preload

        for url in list(self._wanted):
            with contextlib.suppress(Exception):  # the agent's status says what became of it
                work = functools.partial(preload, url, nodes=[node])
                await asyncio.get_running_loop().run_in_executor(None, work)


def _alive() -> set[str]:
    return {one["NodeID"] for one in require_ray().nodes() if one["Alive"]}


def keeper() -> Any:
    """Return the handle of the cluster's keeper, which is started where there is none."""
    return (
        require_ray()
        .remote(Keeper)
        .options(name=_NAME, namespace=NAMESPACE, get_if_exists=True, lifetime="detached", num_cpus=0, max_restarts=-1)
        .remote()
    )
