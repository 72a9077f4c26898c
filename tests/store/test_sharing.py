"""What hosts pass on to each other: it counts when it is what its digest says, whatever way it came."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from glowplug.core.errors import DamagedObjectError
from glowplug.store import sharing
from glowplug.store.backend import Data
from glowplug.store.pull import obtain
from glowplug.store.push import push
from glowplug.store.sharing import Chunks, Fetch, Origin
from glowplug.store.transfer import assembly
from glowplug.store.transfer.assembly import Assembly, Part
from glowplug.store.transfer.journal import Begun

from .conftest import contents


@pytest.fixture
def url(model: Path, tmp_path: Path) -> str:
    place = (tmp_path / "origin" / "model").as_uri()
    return f"{place}@{push(model, place).digest}"


def test_a_fetch_through_others_is_the_same_entry(url: str, model: Path) -> None:
    description = sharing.describe(url)
    assert description is not None
    assert url.endswith(description.digest)
    origin, asked = Origin(url), Counter[str]()

    def read(chunk: str, size: int) -> bytes:
        asked[chunk] += 1
        return bytes(origin.read(chunk, size))

    with Fetch(description, read).run() as held:
        assert contents(held.path) == contents(model)
    assert set(asked) == set(Chunks(description).sizes)
    assert set(asked.values()) == {1}
    with obtain(url) as held, Fetch(description, read).run():
        assert contents(held.path) == contents(model)
    assert set(asked.values()) == {1}  # what is there is not read again


def test_a_chunk_that_is_another_is_asked_for_again(url: str, model: Path) -> None:
    description = sharing.describe(url)
    assert description is not None
    origin, asked = Origin(url), Counter[str]()

    def read(chunk: str, size: int) -> bytes:
        asked[chunk] += 1
        return bytes(size) if asked[chunk] == 1 else bytes(origin.read(chunk, size))

    with Fetch(description, read).run() as held:
        assert contents(held.path) == contents(model)
    assert set(asked.values()) == {2}


def test_what_stays_wrong_leaves_no_entry(url: str) -> None:
    description = sharing.describe(url)
    assert description is not None
    with pytest.raises(DamagedObjectError):
        Fetch(description, lambda chunk, size: bytes(size)).run()
    assert sharing.find(description.digest) is None
    assert sharing.digests() == set()


def test_chunks_are_read_from_an_entry(url: str, model: Path) -> None:
    description = sharing.describe(url)
    assert description is not None
    chunks, origin = Chunks(description), Origin(url)
    assert [chunks.read(chunk) for chunk in chunks.sizes] == [None] * len(chunks.sizes)
    with obtain(url):
        for chunk, size in chunks.sizes.items():
            assert chunks.read(chunk) == bytes(origin.read(chunk, size))


def test_files_that_nobody_pushed_are_described_once_they_are_here(model: Path) -> None:
    place = model.as_uri()
    assert sharing.describe(place) is None
    with obtain(place) as held:
        found = sharing.describe_held(place, held)
        assert found.digest == held.digest
    assert not found.pushed
    assert sharing.digests() == {found.digest}


def test_a_chunk_that_came_some_other_way_is_not_asked_for(url: str, model: Path) -> None:
    description = sharing.describe(url)
    assert description is not None
    sizes, origin = Chunks(description).sizes, Origin(url)
    asked: list[str] = []
    lock = threading.Lock()

    def read(chunk: str, size: int) -> bytes:
        with lock:
            if not asked:  # all others come now
                for other in sizes:
                    if other != chunk:
                        assert not fetch.put(other, bytes(sizes[other]))
                        assert fetch.get(other) is None
                        assert fetch.put(other, origin.read(other, sizes[other]))
                        assert fetch.get(other) == bytes(origin.read(other, sizes[other]))
            asked.append(chunk)
        return bytes(origin.read(chunk, size))

    fetch = Fetch(description, read)
    assert not fetch.put(next(iter(sizes)), b"")  # it does not run yet
    with fetch.run() as held:
        assert contents(held.path) == contents(model)
        assert all(fetch.get(chunk) is None for chunk in sizes)  # it is over
    assert len(asked) <= 8  # those that were under way


def test_what_was_put_there_does_not_hide_a_wrong_chunk(url: str, model: Path) -> None:
    """Another's chunk is put into place while the same one comes, damaged, for this host: it is asked for again."""
    description = sharing.describe(url)
    assert description is not None
    origin, asked = Origin(url), Counter[str]()

    def read(chunk: str, size: int) -> bytes:
        asked[chunk] += 1
        if asked[chunk] == 1:
            threading.Thread(target=lambda: fetch.put(chunk, origin.read(chunk, size))).start()
            return bytes(size)
        return bytes(origin.read(chunk, size))

    fetch = Fetch(description, read)
    with fetch.run() as held:
        assert contents(held.path) == contents(model)


def test_a_wrong_chunk_is_not_written_over_one_that_was_put_there(
    url: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came damaged lands after the right bytes, and before anybody was told that those are in place."""
    description = sharing.describe(url)
    assert description is not None
    origin, asked = Origin(url), Counter[str]()
    write, from_origin = assembly._write, Assembly._from_origin
    is_right, is_wrong = threading.Event(), threading.Event()
    others: list[threading.Thread] = []

    def written(path: Path, offset: int, data: Data) -> None:
        if threading.current_thread() in others:
            write(path, offset, data)
            is_right.set()
            is_wrong.wait(1)
        elif not any(data):
            is_right.wait(1)
            write(path, offset, data)
            is_wrong.set()
        else:
            write(path, offset, data)

    def read_again(self: Assembly, part: Part, begun: Begun | None) -> str:
        if asked[str(part.digest)]:
            for other in others:
                other.join()
        return from_origin(self, part, begun)

    def read(chunk: str, size: int) -> bytes:
        asked[chunk] += 1
        if asked[chunk] == 1:
            is_right.clear()
            is_wrong.clear()
            others.append(threading.Thread(target=lambda: fetch.put(chunk, origin.read(chunk, size))))
            others[-1].start()
            return bytes(size)
        return bytes(origin.read(chunk, size))

    monkeypatch.setattr(assembly, "_write", written)
    monkeypatch.setattr(Assembly, "_from_origin", read_again)
    monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "1")  # one chunk after the other
    fetch = Fetch(description, read)
    with fetch.run() as held:
        assert contents(held.path) == contents(model)
