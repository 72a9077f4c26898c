"""What hosts pass on to each other: it counts when it is what its digest says, whatever way it came."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from glowplug.core.errors import DamagedObjectError
from glowplug.store import sharing
from glowplug.store.pull import obtain
from glowplug.store.push import push
from glowplug.store.sharing import Chunks, Origin

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

    with sharing.fetch(description, read) as held:
        assert contents(held.path) == contents(model)
    assert set(asked) == set(Chunks(description).sizes)
    assert set(asked.values()) == {1}
    with obtain(url) as held, sharing.fetch(description, read):
        assert contents(held.path) == contents(model)
    assert set(asked.values()) == {1}  # what is there is not read again


def test_a_chunk_that_is_another_is_asked_for_again(url: str, model: Path) -> None:
    description = sharing.describe(url)
    assert description is not None
    origin, asked = Origin(url), Counter[str]()

    def read(chunk: str, size: int) -> bytes:
        asked[chunk] += 1
        return bytes(size) if asked[chunk] == 1 else bytes(origin.read(chunk, size))

    with sharing.fetch(description, read) as held:
        assert contents(held.path) == contents(model)
    assert set(asked.values()) == {2}


def test_what_stays_wrong_leaves_no_entry(url: str) -> None:
    description = sharing.describe(url)
    assert description is not None
    with pytest.raises(DamagedObjectError):
        sharing.fetch(description, lambda chunk, size: bytes(size))
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
