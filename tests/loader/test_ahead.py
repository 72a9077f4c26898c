"""Loading while the caller does something else."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import glowplug
from glowplug.core import errors
from glowplug.loader import ahead
from glowplug.loader import open as opening
from glowplug.loader.origin import publish
from glowplug.loader.pending import Pending
from glowplug.store.progress import Transfer

Bundles = Callable[[str], Path]
HEARTBEAT = Path(__file__).parents[2] / "bench" / "scripts" / "heartbeat.py"


def test_an_event_loop_goes_on_while_a_first_model_is_loaded(bundle: Bundles) -> None:
    """In a process that has loaded nothing: the libraries come with it. `bench/load_async.py` measures the gaps."""
    command = [sys.executable, HEARTBEAT, bundle("dense"), "ready"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    assert told["beats"] > 5
    assert told["longest_gap_s"] < max(0.5, told["load_s"] / 2)


def test_progress_is_told_in_the_loop(bundle: Bundles) -> None:
    async def main() -> list[tuple[str, int]]:
        stages = []
        with await glowplug.load_async(
            bundle("dense"), progress=lambda stage: stages.append((stage, threading.get_ident()))
        ):
            await asyncio.sleep(0)
        return stages

    stages = asyncio.run(main())
    assert [stage for stage, _ in stages] == ["open", "start", "ready"]
    assert {thread for _, thread in stages} == {threading.get_ident()}


def test_errors_come_through(tmp_path: Path) -> None:
    with pytest.raises(errors.NotABundleError):
        asyncio.run(glowplug.load_async(tmp_path))
    with pytest.raises(errors.NotABundleError):
        glowplug.preload([tmp_path]).result(60)


def test_a_model_that_nobody_waits_for_any_more_is_closed(bundle: Bundles, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    load, close = opening.load, glowplug.Model.close

    def slow(*args: object, **options: object) -> glowplug.Model:
        begun.set()
        assert go_on.wait(60)
        return load(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(opening, "load", slow)
    monkeypatch.setattr(glowplug.Model, "close", lambda model: (close(model), closed.set()))

    async def main() -> None:
        task = asyncio.ensure_future(glowplug.load_async(bundle("dense")))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    go_on.set()
    assert closed.wait(60)


def test_when_ready_reads_the_weights_and_runs_the_warm_up_calls_once(
    bundle: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(glowplug.Model, "warm_up", lambda model: calls.append(model))  # noqa: PLW0108 - a builtin would not be bound
    with glowplug.load(bundle("dense")) as model:
        first = model.when_ready()
        assert model.when_ready() is first
        assert first.result(60) is None
        assert first.done()
        asyncio.run(_wait(first))
        assert calls == [model]
        size = (model.info.path / "weights.bin").stat().st_size
        assert ahead.read_weights(model._bundle) == size > 0
        model(np.ones((1, 16), np.float32))


async def _wait(pending: Pending[None]) -> None:
    await asyncio.gather(pending, pending)


def test_preload_returns_at_once_and_gives_the_directories(bundle: Bundles) -> None:
    paths = [bundle("dense"), bundle("two_in_two_out")]
    assert glowplug.preload(paths).result(60) == paths
    assert glowplug.preload(str(paths[0])).result(60) == [paths[0]]


def test_what_a_url_names_is_fetched_and_told(bundle: Bundles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
    url = (tmp_path / "storage" / "dense").as_uri()
    publish(bundle("dense"), url)
    (path,) = glowplug.preload([url]).result(60)
    assert tmp_path / "node-cache" in path.parents
    transfers: list[Transfer] = []

    async def main() -> Path:
        with await glowplug.load_async(url, transfer=transfers.append) as model:
            await asyncio.sleep(0)
            return model.info.path

    assert asyncio.run(main()) == path
    assert transfers == []  # it was here already
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "another"))
    asyncio.run(main())
    assert transfers[-1].done_bytes == transfers[-1].total_bytes > 0


def test_the_loop_imports_nothing_heavy() -> None:
    program = (
        "import glowplug, sys; glowplug.load_async, glowplug.preload\n"
        "print(*sorted({'numpy', 'glowplug.loader.open', 'glowplug.store'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_giving_up_waiting_stops_nobody_else() -> None:
    go_on = threading.Event()
    pending = Pending(lambda: go_on.wait(60), "test")

    async def main() -> bool:
        waiting = asyncio.ensure_future(_result(pending))
        await asyncio.sleep(0)
        waiting.cancel()
        other = asyncio.ensure_future(_result(pending))
        go_on.set()
        return await other

    assert asyncio.run(main()) is True


async def _result(pending: Pending[bool]) -> bool:
    return await pending
