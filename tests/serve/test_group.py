"""A group with fake workers at the other end of real sockets: order, batches, back-pressure, deaths."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from glowplug.core.errors import ModelError, RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.serve.workers import packets
from glowplug.serve.workers.batching import Batching
from glowplug.serve.workers.group import Group, GroupSettings
from glowplug.serve.workers.jobs import Timing
from glowplug.serve.workers.spec import WorkerSpec, signatures_to_json

SPEC = TensorSpec("float32", (None,))
SIGNATURES = {"s": Signature({"x": Port(SPEC, "x:0")}, {"y": Port(SPEC, "y:0")})}
REPORT = {
    "signatures": signatures_to_json(SIGNATURES),
    "notes": [],
    "load_ns": 1,
    "warmup_ns": 1,
    "warmup": [],
}


class Workers:
    """Spawns nothing: keeps the workers' ends of the sockets, so that a test plays the workers."""

    def __init__(self):
        self.channels, self.killed, self.batches, self.deaths = [], [], [], []

    def spawn(self, spec, channel):
        copy = channel.dup()
        copy.setblocking(False)
        self.channels.append(copy)
        return len(self.channels)

    def kill(self, number):
        self.killed.append(number)

    def batch_sent(self, rows, padding, waited_s):
        self.batches.append((rows, padding))

    def worker_died(self, reason):
        self.deaths.append(reason)

    async def send(self, worker, *pieces):
        await asyncio.get_running_loop().sock_sendall(self.channels[worker], b"".join(pieces))

    async def ready(self, worker):
        await self.send(worker, *packets.pack(packets.READY, 0, REPORT))

    async def receive(self, worker):
        """Return number and input of the next call."""
        loop, channel, seen = asyncio.get_running_loop(), self.channels[worker], []
        splitter = packets.Splitter(lambda kind, number, head, payload: seen.append((number, head, payload)))
        while not seen:
            splitter.feed(await loop.sock_recv(channel, 1))
        number, head, payload = seen[0]
        return number, packets.unpack(head, payload)[1]["x"]

    async def answer(self, worker):
        number, x = await self.receive(worker)
        await self.send(worker, *packets.pack(packets.ANSWER, number, 1, {"y": x * 2}))
        return len(x)


async def started(instances=1, **settings):
    workers = Workers()
    group = Group(WorkerSpec("/m", "bundle"), GroupSettings(instances, **settings), workers, workers)
    starting = asyncio.ensure_future(group.start())
    await asyncio.sleep(0)
    for worker in range(instances):
        await workers.ready(worker)
    await starting
    return group, workers


def submit(group, *values, timeout_s=30.0):
    return group.submit("s", {"x": np.array(values, np.float32)}, ("y",), timeout_s)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


def test_calls_go_to_the_idle_worker():
    async def scenario():
        group, workers = await started(2)
        first, second = submit(group, 1), submit(group, 2)
        await workers.answer(0)
        await workers.answer(1)
        assert (await first)["y"].tolist() == [2.0]
        assert (await second)["y"].tolist() == [4.0]
        await group.drain()

    run(scenario())


def test_a_full_queue_refuses():
    async def scenario():
        group, _ = await started(1, max_queue=1)
        for value in range(3):  # two are with the worker, one waits
            submit(group, value)
        with pytest.raises(RequestError, match="too many requests") as caught:
            submit(group, 9)
        assert caught.value.code == "RESOURCE_EXHAUSTED"

    run(scenario())


def test_a_deadline_passes_while_waiting():
    async def scenario():
        group, _ = await started(1)
        late = submit(group, 1, timeout_s=0.01)
        with pytest.raises(RequestError, match="deadline") as caught:
            await late
        assert caught.value.code == "DEADLINE_EXCEEDED"

    run(scenario())


def test_deadlines_pass_one_by_one():
    async def scenario():
        group, workers = await started(1)
        seconds = (30, 0.06, 0.02, 0.04, 0.02)  # two are with the worker, three wait; an earlier one may come later
        calls = [submit(group, place, timeout_s=s) for place, s in enumerate(seconds)]
        ended = []
        for place, call in enumerate(calls):
            call.add_done_callback(lambda _, place=place: ended.append(place))
        for call in calls[1:]:
            with pytest.raises(RequestError, match="deadline"):
                await call
        assert ended == [2, 4, 3, 1]
        await workers.answer(0)
        assert (await calls[0])["y"] == [0]  # the one that has time left is answered

    run(scenario())


def test_a_dead_worker_fails_its_calls_and_is_replaced():
    async def scenario():
        group, workers = await started(1)
        lost = submit(group, 1)
        await workers.receive(0)
        workers.channels[0].close()
        with pytest.raises(RequestError, match="may be retried") as caught:
            await lost
        assert caught.value.code == "UNAVAILABLE"
        assert (len(workers.channels), len(workers.deaths)) == (2, 1)
        waiting = submit(group, 2)
        await workers.ready(1)
        await workers.answer(1)
        assert (await waiting)["y"].tolist() == [4.0]

    run(scenario())


def test_a_crash_loop_backs_off_and_says_why():
    async def scenario():
        group, workers = await started(1)
        for _ in range(2):
            count = len(workers.channels)
            await workers.send(count - 1, *packets.pack(packets.FAILURE, 0, {"error": "no such file"}))
            workers.channels[count - 1].close()
            while not group.problem and len(workers.channels) == count:
                await asyncio.sleep(0)
        assert group.problem == "no such file; starting again in 0.1 s"

    run(scenario())


def test_a_model_that_cannot_load():
    async def scenario():
        workers = Workers()
        group = Group(WorkerSpec("/m", "bundle"), GroupSettings(2), workers, workers)
        starting = asyncio.ensure_future(group.start())
        await asyncio.sleep(0)
        await workers.send(0, *packets.pack(packets.FAILURE, 0, {"error": "bad model"}))
        workers.channels[0].close()
        with pytest.raises(ModelError, match="bad model"):
            await starting
        assert workers.killed == [2]

    run(scenario())


def test_a_group_that_is_closed_as_soon_as_it_starts_leaves_no_worker():
    async def scenario():
        workers = Workers()
        group = Group(WorkerSpec("/m", "bundle"), GroupSettings(2), workers, workers)
        starting = asyncio.ensure_future(group.start())
        while len(workers.channels) < 2:
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        for channel in workers.channels:  # a worker ends when its socket is closed
            assert await asyncio.get_running_loop().sock_recv(channel, 1) == b""
        assert workers.killed == [1, 2]

    run(scenario())


def test_batches_are_joined_padded_and_taken_apart():
    async def scenario():
        batching = Batching(True, max_batch_size=8, timeout_s=0.01, allowed_sizes=(4, 8))
        group, workers = await started(1, batching=batching)
        answers = [submit(group, 1), submit(group, 2, 3)]
        assert await workers.answer(0) == 4
        assert [(await one)["y"].tolist() for one in answers] == [[2.0], [4.0, 6.0]]
        assert workers.batches == [(3, 1)]
        with pytest.raises(RequestError, match="Task size 9"):
            submit(group, *range(9))

    run(scenario())


def test_calls_that_are_timed_learn_when_their_batch_ran():
    async def scenario():
        group, workers = await started(1, batching=Batching(True, max_batch_size=3, timeout_s=1000))
        first, second = Timing(), Timing()
        inputs = {"x": np.ones(1, np.float32)}
        answers = [group.submit("s", inputs, ("y",), 30.0, timing) for timing in (first, None, second)]
        number, x = await workers.receive(0)
        times = np.array([10, 20, 99], np.int64)
        await workers.send(0, *packets.pack(packets.ANSWER, number, None, {"y": x * 2, packets.TIMES: times}))
        assert [list(await one) for one in answers] == [["y"]] * 3
        for timing in (first, second):
            assert (timing.rows, timing.began_ns, timing.ended_ns, timing.pid) == (3, 10, 20, 99)
            assert timing.waited_s >= 0

    run(scenario())


def test_a_worker_is_asked_for_times_only_where_they_are_wanted():
    async def wanted(timing):
        group, workers = await started(1)
        answer = group.submit("s", {"x": np.ones(1, np.float32)}, ("y",), 30.0, timing)
        seen = []
        splitter = packets.Splitter(lambda kind, number, head, payload: seen.append((number, head, payload)))
        while not seen:
            splitter.feed(await asyncio.get_running_loop().sock_recv(workers.channels[0], 1))
        number, head, payload = seen[0]
        (name, outputs), inputs = packets.unpack(head, payload)
        await workers.send(0, *packets.pack(packets.ANSWER, number, None, {"y": inputs["x"]}))
        await answer
        return name, outputs

    assert run(wanted(None)) == ("s", ["y"])
    assert run(wanted(Timing())) == ("s", ["y", packets.TIMES])


def test_one_bad_call_does_not_spoil_its_batch():
    async def scenario():
        group, workers = await started(1, batching=Batching(True, max_batch_size=2, timeout_s=1000))
        bad, good = submit(group, 1), submit(group, 2)

        async def refuse(rows):
            number, x = await workers.receive(0)
            assert len(x) == rows
            problem = {"error": "out of range", "code": "INVALID_ARGUMENT"}
            await workers.send(0, *packets.pack(packets.FAILURE, number, problem))

        await refuse(2)
        await refuse(1)
        await workers.answer(0)
        with pytest.raises(RequestError, match="out of range"):
            await bad
        assert (await good)["y"].tolist() == [4.0]

    run(scenario())


def test_a_full_batch_does_not_wait():
    async def scenario():
        group, workers = await started(1, batching=Batching(True, max_batch_size=2, timeout_s=1000))
        answers = [submit(group, 1), submit(group, 2)]
        assert await workers.answer(0) == 2
        assert [(await one)["y"].tolist() for one in answers] == [[2.0], [4.0]]

    run(scenario())


def test_draining_finishes_what_is_here_and_takes_no_more():
    async def scenario():
        group, workers = await started(1)
        answer = submit(group, 1)
        draining = asyncio.ensure_future(group.drain())
        await asyncio.sleep(0)
        with pytest.raises(RequestError, match="being unloaded"):
            submit(group, 2)
        assert not draining.done()
        await workers.answer(0)
        await draining
        assert (await answer)["y"].tolist() == [2.0]

    run(scenario())


def test_draining_does_not_wait_for_calls_that_nobody_waits_for():
    async def scenario():
        group, workers = await started(1)
        hangs, behind, gone = submit(group, 1, timeout_s=0.05), submit(group, 2, timeout_s=0.05), submit(group, 3)
        gone.cancel()
        await group.drain()
        for one in (hangs, behind):
            with pytest.raises(RequestError, match="deadline"):
                await one
        assert workers.killed == [1]  # it would run on

    run(scenario())


def test_a_worker_that_runs_what_nobody_waits_for_is_given_up():
    async def scenario():
        group, workers = await started(1, patience_s=0.1)
        hangs, behind = submit(group, 1, timeout_s=0.01), submit(group, 2)
        waits = submit(group, 3)
        with pytest.raises(RequestError, match="deadline"):
            await hangs
        while not workers.killed:
            await asyncio.sleep(0.01)
        assert workers.killed == [1]
        assert not group.ready
        workers.channels[0].close()
        while len(workers.channels) < 2:
            await asyncio.sleep(0.01)
        await workers.ready(1)
        for place, one in ((2, behind), (3, waits)):  # had not begun: nobody has to try again
            await workers.answer(1)
            assert (await one)["y"].tolist() == [2.0 * place]
        assert group.ready
        assert workers.deaths == ["call 1 took longer than 0.1 s, and nobody waits for it any more"]
        await group.drain()

    run(scenario())


def test_a_worker_that_somebody_waits_for_is_left_alone():
    async def scenario():
        group, workers = await started(1, patience_s=0.01)
        short, long = submit(group, 1, timeout_s=0.05), submit(group, 2)
        await workers.answer(0)
        assert (await short)["y"].tolist() == [2.0]
        expires = submit(group, 3, timeout_s=0.05)
        with pytest.raises(RequestError, match="deadline"):
            await expires
        await asyncio.sleep(0.05)
        assert workers.killed == []
        await workers.answer(0)
        assert (await long)["y"].tolist() == [4.0]
        await workers.answer(0)

    run(scenario())
