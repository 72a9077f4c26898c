"""The front end's side of the parsers: a group of workers without a model, which starts when it is first needed."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from .group import Group, GroupSettings, Spawner
from .parser import as_bytes
from .spec import WorkerSpec

_PARSERS = 2
_MAX_WAITING = 64


class Parsers:
    """Has bodies and messages read and written in other processes. `timeout_s` bounds the wait for one."""

    def __init__(self, spawner: Spawner, timeout_s: float) -> None:
        self._spawner, self._timeout_s = spawner, timeout_s
        self._group: asyncio.Task[Group] | None = None

    async def run(self, operation: str, head: dict[str, Any], body: bytes) -> tuple[Any, memoryview]:
        """Have an operation of `workers.parser` done; return the head and the body that it made."""
        if self._group is None or (self._group.done() and self._group.exception() is not None):
            self._group = asyncio.ensure_future(self._start())
        group = await asyncio.shield(self._group)
        inputs = {"head": as_bytes(orjson.dumps(head)), "body": as_bytes(body)}
        answer = await group.submit(operation, inputs, ("head", "body"), self._timeout_s)
        return orjson.loads(answer["head"].data), answer["body"].data

    async def _start(self) -> Group:
        spec = WorkerSpec("", "parser", synthesize=False)
        settings = GroupSettings(_PARSERS, max_queue=_MAX_WAITING, patience_s=self._timeout_s)
        group = Group(spec, settings, self._spawner, _Unobserved())
        await group.start()
        return group


class _Unobserved:
    """Parsers are no version: nobody counts what they do."""

    def batch_sent(self, rows: int, padding: int, waited_s: float) -> None:
        """Learn that a batch went to a worker."""

    def worker_died(self, reason: str) -> None:
        """Learn that a worker ended on its own."""
