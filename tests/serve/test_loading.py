"""Loads that never end: the others go on, and nothing waits for them. Fake workers at the other end of real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from pathlib import Path

import pytest

from glowplug.serve.log import Log
from glowplug.serve.models import arrivals, sources
from glowplug.serve.models.catalog import Catalog
from glowplug.serve.models.config import ModelConfig
from glowplug.serve.models.loading import LoadSettings
from glowplug.serve.models.manager import Manager, ManagerSettings
from glowplug.serve.models.packing import Packer
from glowplug.serve.models.sources import identify
from glowplug.serve.models.versions import State
from glowplug.serve.models.work_queue import WorkQueue
from glowplug.serve.workers.group import GroupSettings
from glowplug.serve.workers.spec import WorkerSpec
from tests.serve.test_group import Workers

GRAPH = b"\x08\x01"  # a field of its own is a whole message


class Lines:
    """Keeps the lines of a log, and lets a test wait for one."""

    def __init__(self):
        self.events = []

    def write(self, text):
        self.events += [json.loads(line) for line in text.splitlines() if line]

    def flush(self):
        pass

    async def wait(self, name, **values):
        while True:
            for event in self.events:
                if event["event"] == name and all(event.get(key) == value for key, value in values.items()):
                    return event
            await asyncio.sleep(0.001)


class Machine:
    """A manager whose workers the test plays: those of a model in `hangs` never say that they are ready."""

    def __init__(self, folder: Path, patience_s: float, packer=None):
        self.folder, self.log, self.workers = folder, Lines(), Workers()
        self.catalog, self.hangs, self.asked = Catalog(), set(), []
        load = LoadSettings(
            GroupSettings(1), WorkerSpec("", "bundle"), retries=0, retry_seconds=60, patience_s=patience_s
        )
        log = Log(as_json=True, access=False, stream=self.log)
        self.manager = Manager(self.catalog, ManagerSettings(load), self, lambda version: self.workers, packer, log)
        self._playing = set()

    def spawn(self, spec, channel):
        number = self.workers.spawn(spec, channel)
        self.asked.append(spec.path)
        if not any(f"/{name}/" in f"{spec.path}/" for name in self.hangs):
            playing = asyncio.ensure_future(self.workers.ready(number - 1))
            self._playing.add(playing)
            playing.add_done_callback(self._playing.discard)
        return number

    def kill(self, number):
        self.workers.kill(number)

    async def killed(self, *numbers):
        while self.workers.killed != list(numbers):
            await asyncio.sleep(0.001)

    def write(self, model, number=1, data=GRAPH):
        path = self.folder / model / str(number)
        path.mkdir(parents=True, exist_ok=True)
        (path / "new.pb").write_bytes(data)
        (path / "new.pb").rename(path / "saved_model.pb")
        return path

    def serve(self, *names):
        self.manager.configure(ModelConfig(name, self.folder / name) for name in names)

    def version(self, name, number=1):
        return self.catalog.models[name].versions[number]


@pytest.fixture(autouse=True)
def no_settling(monkeypatch):
    monkeypatch.setattr(arrivals, "SETTLE_S", 0.0)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


@contextlib.asynccontextmanager
async def machine(folder, patience_s=0.02, packer=None):
    made = Machine(folder, patience_s, packer)
    yield made
    await asyncio.wait_for(made.manager.drain(), 5)  # whatever hangs


def test_a_load_that_hangs_lets_the_others_go_on(tmp_path):
    async def scenario():
        async with machine(tmp_path) as at:
            at.hangs = {"bad", "worse"}
            for name in ("bad", "worse", "good"):
                at.write(name)
            at.serve("bad", "worse", "good")
            await at.log.wait("available", model="good")
            assert at.catalog.find(ref("good")).state is State.AVAILABLE
            for name in at.hangs:
                event = await at.log.wait("load_overdue", model=name, version=1)
                assert event["stage"] == "load"
                assert at.version(name).state is State.LOADING
                assert "longer than" in at.version(name).describe()["problem"]
            assert not at.catalog.all_ready()
            assert at.workers.killed == []
        assert set(at.workers.killed) == {1, 2}  # when the server stops

    run(scenario())


def ref(name):
    from glowplug.serve.wire.calls import ModelReference

    return ModelReference(name)


def test_loads_that_are_quick_come_one_after_the_other(tmp_path):
    async def scenario():
        async with machine(tmp_path, patience_s=60) as at:
            at.hangs = {"first"}
            for name in ("first", "second"):
                at.write(name)
            at.serve("first", "second")
            await at.log.wait("loading", model="first")
            assert len(at.asked) == 1
            await at.workers.ready(0)
            await at.log.wait("available", model="second")
            assert "problem" not in at.version("second").describe()

    run(scenario())


def test_a_load_that_ends_late_is_a_load(tmp_path):
    async def scenario():
        async with machine(tmp_path) as at:
            at.hangs = {"slow"}
            at.write("slow")
            at.serve("slow")
            await at.log.wait("load_overdue")
            await at.workers.ready(0)
            await at.log.wait("available", model="slow")
            assert "problem" not in at.version("slow").describe()
            assert at.catalog.all_ready()

    run(scenario())


def test_each_load_that_is_overdue_makes_the_next_wait_longer():
    async def scenario():
        queue, began, overdue = WorkQueue(0.02), asyncio.get_running_loop().time(), []
        release = asyncio.Event()

        async def work():
            async with queue.turn(overdue.append):
                await release.wait()

        works = [asyncio.ensure_future(work()) for _ in range(3)]
        while len(overdue) < 3:
            await asyncio.sleep(0.001)
        assert overdue == pytest.approx([0.02, 0.04, 0.06])
        assert asyncio.get_running_loop().time() - began >= 0.12
        release.set()
        await asyncio.gather(*works)
        async with queue.turn(overdue.append):
            pass
        assert len(overdue) == 3

    run(scenario())


def test_no_patience_is_patience_for_ever():
    async def scenario():
        queue = WorkQueue(0)
        async with queue.turn(lambda seconds: None):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(queue.turn(lambda seconds: None).__aenter__(), 0.05)
        async with queue.turn(lambda seconds: None):
            pass

    run(scenario())


def test_new_files_take_the_place_of_a_load_that_hangs(tmp_path):
    async def scenario():
        async with machine(tmp_path) as at:
            at.hangs = {"half"}
            at.write("half")
            at.serve("half")
            await at.log.wait("loading", model="half")
            at.hangs = set()
            at.write("half", data=GRAPH * 2)
            at.manager.reconcile()
            await at.log.wait("available", model="half")
            await at.killed(1)

    run(scenario())


def test_a_newer_version_ends_the_load_that_hangs(tmp_path):
    async def scenario():
        async with machine(tmp_path) as at:
            at.hangs = {"half/1"}
            at.write("half")
            at.serve("half")
            await at.log.wait("loading", model="half", version=1)
            at.write("half", 2)
            at.manager.reconcile()
            await at.log.wait("available", model="half", version=2)
            await at.log.wait("unloaded", model="half", version=1)
            await at.killed(1)

    run(scenario())


def test_a_version_that_is_removed_while_it_hangs_ends(tmp_path):
    async def scenario():
        async with machine(tmp_path) as at:
            at.hangs = {"half"}
            path = at.write("half")
            at.serve("half")
            await at.log.wait("loading", model="half")
            shutil.rmtree(path)
            at.manager.reconcile()
            await at.log.wait("unloaded", model="half")
            assert at.version("half").state is State.END
            assert not at.manager.starting()

    run(scenario())


def test_a_replacement_that_hangs_is_replaced_by_what_comes_next(tmp_path):
    async def scenario():
        async with machine(tmp_path) as at:
            at.write("half")
            at.serve("half")
            await at.log.wait("available", model="half")
            at.hangs = {"half"}
            at.write("half", data=GRAPH * 2)
            at.manager.reconcile()
            await at.log.wait("load_overdue", model="half", stage="reload")
            assert at.catalog.all_ready()  # the old one answers
            at.manager.reconcile()
            assert len(at.asked) == 2  # it is still at it
            at.hangs = set()
            at.write("half", data=GRAPH * 3)
            at.manager.reconcile()
            await at.log.wait("reloaded", model="half")
            await at.killed(2)
            assert "problem" not in at.version("half").describe()

    run(scenario())


def test_files_that_change_while_their_version_waits_for_its_turn_are_loaded_once(tmp_path):
    async def scenario():
        async with machine(tmp_path, patience_s=60) as at:
            at.hangs = {"first"}
            for name in ("first", "second"):
                at.write(name)
            at.serve("first", "second")
            await at.log.wait("loading", model="first")
            at.write("second", data=GRAPH[:1])  # in the middle of being copied
            at.manager.reconcile()
            at.write("second", data=GRAPH * 2)
            at.manager.reconcile()
            await at.log.wait("unloaded", model="second")
            await at.workers.ready(0)
            await at.log.wait("available", model="second")
            assert len(at.asked) == 2

    run(scenario())


def test_a_conversion_that_hangs_lets_the_others_go_on(tmp_path):
    async def scenario():
        commands = []

        async def convert(command, log):
            commands.append(command)
            await asyncio.Event().wait()

        packer = Packer(tmp_path / "cache", convert, patience_s=0.02)
        overdue = []
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "saved_model.pb").write_bytes(GRAPH)
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "saved_model.pb").write_bytes(GRAPH)
        packs = [
            asyncio.ensure_future(packer.pack(identify(tmp_path / name), overdue=overdue.append)) for name in ("a", "b")
        ]
        while len(commands) < 2:
            await asyncio.sleep(0.001)
        assert overdue == pytest.approx([0.02])
        for one in packs:
            one.cancel()
        await asyncio.wait(packs)

    run(scenario())


def test_a_disk_that_fails_while_it_is_looked_at_does_not_end_the_watching(tmp_path, monkeypatch):
    async def scenario():
        async with machine(tmp_path) as at:
            for name in ("bad", "good"):
                at.write(name)
            find = sources.find_versions

            def fail(base, **options):
                if base.name == "bad":
                    raise OSError(5, "Input/output error")
                return find(base, **options)

            monkeypatch.setattr("glowplug.serve.models.manager.find_versions", fail)
            at.serve("bad", "good")
            await at.log.wait("available", model="good")
            assert "Input/output error" in (await at.log.wait("base_path_failed", model="bad"))["error"]
            assert not at.catalog.all_ready()
            monkeypatch.undo()
            monkeypatch.setattr(arrivals, "SETTLE_S", 0.0)
            at.manager.reconcile()
            await at.log.wait("available", model="bad")

    run(scenario())
