"""Which worker of pytest-xdist runs which tests: `pytest -n auto --dist loadgroup`, which is `make test`.

The tests of a file run in one worker, in their order. Tests of `train` patch Keras and depend on what a process did
before, so a worker runs files of one kind: those of `train`, or others. `-n` says how many workers run at a time; some
more wait to follow workers whose kind is done. Where a worker crashes, the test that it ran has failed and another
worker runs the rest; the schedulers of xdist 3.8 run the same test again until no worker may be restarted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

TRAIN = "tests/train/"
# Files that take minutes start first, so that the processors are done at about the same time.
LONG = (
    "tests/train/test_pitfalls.py",
    "tests/train/test_misses.py",
    "tests/imports/test_compatibility.py",
    "tests/convert/test_zoo.py",
    "tests/probe/test_tensorflow.py",
    "tests/train/test_zoo.py",
    "tests/train/test_cache_files.py",
    "tests/cli/test_run_scripts.py",
)


class FileScheduling:
    """Gives whole files to workers. Tests are known by their index in the collection, which is the same in all."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._collection: list[str] | None = None
        self._waiting: list[list[int]] = []
        self._pending: dict[WorkerController, list[int]] = {}  # the first one runs, or waits for its next to be known
        self._ready: set[WorkerController] = set()  # has collected, and was given no test so far
        self._kinds: dict[WorkerController, str] = {}

    @property
    def nodes(self) -> list[WorkerController]:
        """All workers that are there."""
        return list(self._pending)

    @property
    def collection_is_completed(self) -> bool:
        """Whether tests may be given out: there is no need to wait for the last worker."""
        return self._collection is not None

    @property
    def has_pending(self) -> bool:
        """Whether there are tests that have not ended."""
        return bool(self._waiting) or any(self._pending.values())

    @property
    def tests_finished(self) -> bool:
        """Whether all tests have ended."""
        return self.collection_is_completed and not self.has_pending

    def add_node(self, node: WorkerController) -> None:
        """Note a worker that has started and collects."""
        self._pending[node] = []

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Note a worker that has collected."""
        if self._collection is None:
            self._collection = list(collection)
            self._waiting = sorted(self._by_file(range(len(collection))), key=self._turn)
        elif self._collection != list(collection):
            differing = sorted(set(self._collection) ^ set(collection))[:5]
            raise RuntimeError(f"worker {node.gateway.id} has collected other tests: {differing or 'in another order'}")
        self._ready.add(node)

    def schedule(self) -> None:
        """Let workers begin as long as fewer than allowed run; send home those that nothing waits for."""
        for node in sorted(self._ready, key=lambda node: str(node.gateway.id)):
            if not self._waiting:
                self._ready.remove(node)
                node.shutdown()
            elif len(self._kinds) < self._at_once:
                self._ready.remove(node)
                self._kinds[node] = self._next_kind()
                self._give(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Note that a test has ended."""
        self._pending[node].remove(item_index)
        self._give(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker that has ended; returns the test in which it crashed."""
        pending = self._pending.pop(node)
        self._ready.discard(node)
        self._kinds.pop(node, None)
        self._waiting[:0] = self._by_file(pending[1:])
        self.schedule()
        return self._name(pending[0]) if pending else None

    def mark_test_pending(self, item: str) -> None:
        """Refuse: only plugins that repeat tests ask for it."""
        raise NotImplementedError

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Refuse: no test is taken back from a worker."""
        raise NotImplementedError

    def _give(self, node: WorkerController) -> None:
        """Give a worker what it needs to go on: it starts a test once it knows the next one, or that there is none."""
        while len(self._pending[node]) < 2 and not node.shutting_down:
            tests = next((tests for tests in self._waiting if self._kind(tests) == self._kinds[node]), None)
            if tests is None:
                node.shutdown()
            else:
                self._waiting.remove(tests)
                self._pending[node] += tests
                node.send_runtest_some(tests)

    def _next_kind(self) -> str:
        """Return the kind that the fewest workers run, of those that wait."""
        running = list(self._kinds.values())
        return min(map(self._kind, self._waiting), key=running.count)

    def _by_file(self, tests: Sequence[int]) -> Iterator[list[int]]:
        return (list(group) for _, group in groupby(tests, self._file))

    def _name(self, test: int) -> str:
        assert self._collection is not None
        return self._collection[test]

    def _file(self, test: int) -> str:
        return self._name(test).partition("::")[0]

    def _kind(self, tests: list[int]) -> str:
        return "train" if self._file(tests[0]).startswith(TRAIN) else "others"

    def _turn(self, tests: list[int]) -> tuple[int, int]:
        name = self._file(tests[0])
        return LONG.index(name) if name in LONG else len(LONG), -len(tests)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers `-n auto` means: the processors that this process may use."""
    return len(os.sched_getaffinity(0))


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let more workers start than run at a time: one of a kind ends when the kind is done, and another follows."""
    at_once = config.getoption("numprocesses", None)
    if at_once and config.getoption("dist") == "loadgroup" and not hasattr(config, "workerinput"):
        config.option.tx = ["popen"] * (at_once + max(1, at_once - 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> FileScheduling | None:
    """Take the place of xdist's own scheduler for groups."""
    at_once = config.getoption("numprocesses")
    return FileScheduling(at_once) if at_once and config.getoption("dist") == "loadgroup" else None
