"""One node that fetches while others ask it: it reads the origin once, however small its shelf is."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from glowplug.cluster.nodes.seeding import Seed
from glowplug.cluster.nodes.shelf import Shelf
from glowplug.store import sharing
from glowplug.store.push import push
from glowplug.store.sharing import Chunks, Description, Origin

MB = 1 << 20


class Objects:
    """Ray's object store, as far as a seed uses it."""

    def put(self, value: Any) -> Any:
        """Return a reference, which is the value itself."""
        return value

    def get(self, reference: Any) -> Any:
        """Return what a reference stands for."""
        return reference


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Description:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "model"
    source.mkdir()
    (source / "weights.bin").write_bytes(random.Random(1).randbytes(24 * MB))
    url = f"file://{tmp_path}/stored/model"
    push(source, url)
    found = sharing.describe(url)
    assert found is not None
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read from the origin, in turn."""
    found: list[str] = []
    real = Origin.read

    def read(self: Origin, chunk: str, size: int) -> Any:
        found.append(chunk)
        return real(self, chunk, size)

    monkeypatch.setattr(Origin, "read", read)
    return found


def a_seed(description: Description, executor: ThreadPoolExecutor) -> Seed:
    return Seed(description, "me", Shelf(1), executor, Objects())  # a shelf for one chunk


def asked_by_others(seed: Seed, chunks: list[str], others: int) -> list[threading.Thread]:
    """Have other nodes ask for all chunks, each in an order of its own."""

    def ask(number: int) -> None:
        for chunk in random.Random(number).sample(chunks, len(chunks)):
            seed.offer(chunk).result(60)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(others)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("asked_first", [False, True])
def test_a_chunk_is_read_once_whoever_asks_and_in_whatever_order(
    described: Description, reads: list[str], asked_first: bool
) -> None:
    chunks = sorted(Chunks(described).sizes)
    assert len(chunks) > 4
    with ThreadPoolExecutor(8) as executor:
        seed = a_seed(described, executor)
        seed.expect()
        threads = asked_by_others(seed, chunks, 3) if asked_first else []
        seed.fetch({}, frozenset())
        threads = threads or asked_by_others(seed, chunks, 3)
        for thread in threads:
            thread.join(60)
    assert sorted(reads) == chunks
    assert seed.counts.origin_bytes == seed.counts.total_bytes


def test_others_are_answered_where_the_fetch_that_was_announced_never_begins(
    described: Description, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glowplug.cluster.nodes.seeding._BEGINS_S", 0.05)
    chunk, size = next(iter(Chunks(described).sizes.items()))
    with ThreadPoolExecutor(1) as executor:
        seed = a_seed(described, executor)
        seed.expect()
        assert len(seed.offer(chunk).result(60)) == size
    assert reads == [chunk]
