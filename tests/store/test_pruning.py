"""What no published version needs is removed from a storage, once it is old; all else stays."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from glowplug.core.errors import DamagedObjectError, ObjectNotFoundError, StorageError, UsageError
from glowplug.store import pruning
from glowplug.store import tree as trees
from glowplug.store.pruning import DAY_S, prune
from glowplug.store.pull import pull
from glowplug.store.push import push
from tests.fakes.web_server import serving
from tests.store.conftest import MB, contents


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "storage" / "encoder"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    directory = tmp_path / "small"
    directory.mkdir()
    (directory / "weights.bin").write_bytes(random.Random(3).randbytes(2 * MB))
    (directory / "same").write_bytes(b"the same in all versions")
    return directory


def age(base: Path, days: float) -> None:
    """Have everything in the pool be so old."""
    for path in (base / trees.POOL).iterdir():
        os.utime(path, (time.time() - days * DAY_S,) * 2)


def pool(base: Path) -> set[str]:
    return {path.name for path in (base / trees.POOL).iterdir()}


def change(small: Path, seed: int) -> None:
    (small / "weights.bin").write_bytes(random.Random(seed).randbytes(2 * MB))


def test_what_a_removed_version_alone_needed_goes(small, base):
    first = push(small, f"{base.as_uri()}/1")
    before = pool(base)
    age(base, 40)
    change(small, 4)
    push(small, f"{base.as_uri()}/2")
    assert prune(f"{base.as_uri()}/2", older_than_s=30 * DAY_S).objects == 0  # it is published
    (base / "1" / trees.NAME).unlink()
    pruned = prune(f"{base.as_uri()}/2", older_than_s=30 * DAY_S)
    assert pruned.bytes > 2 * MB
    assert pruned.objects == 2  # the chunk of weights, and the description by digest
    assert f"{first.digest}.json" not in pool(base)
    assert len(pool(base) & before) == 1  # the chunk that both have
    assert contents(pull(f"{base.as_uri()}/2")) == contents(small)
    with pytest.raises(ObjectNotFoundError):
        pull(f"{base.as_uri()}/1@{first.digest}")


def test_what_is_young_stays_and_so_does_what_it_names(small, base):
    first = push(small, f"{base.as_uri()}/1")
    age(base, 40)
    os.utime(base / trees.POOL / f"{first.digest}.json")  # a push that has not published yet
    (base / "1" / trees.NAME).unlink()
    before = pool(base)
    assert prune(f"{base.as_uri()}/1", older_than_s=30 * DAY_S).objects == 0
    assert pool(base) == before


def test_a_clock_that_is_ahead_makes_nothing_old(small, base, monkeypatch):
    push(small, f"{base.as_uri()}/1")
    (base / "1" / trees.NAME).unlink()
    before = pool(base)
    real = time.time
    monkeypatch.setattr(pruning.time, "time", lambda: real() + 1000 * DAY_S)
    assert prune(f"{base.as_uri()}/1", older_than_s=DAY_S).objects == 0
    assert pool(base) == before


def test_files_of_others_stay(small, base):
    push(small, f"{base.as_uri()}/1")
    (base / trees.POOL / "notes.txt").write_text("mine")
    age(base, 40)
    push(small, f"{base.as_uri()}/1")
    prune(f"{base.as_uri()}/1", older_than_s=DAY_S)
    assert "notes.txt" in pool(base)


def test_where_a_description_cannot_be_read_nothing_goes(small, base):
    push(small, f"{base.as_uri()}/1")
    change(small, 4)
    push(small, f"{base.as_uri()}/2")
    age(base, 40)
    push(small, f"{base.as_uri()}/2")
    (base / "1" / trees.NAME).write_text("{}")
    before = pool(base)
    with pytest.raises(DamagedObjectError):
        prune(f"{base.as_uri()}/2", older_than_s=DAY_S)
    assert pool(base) == before


def test_whoever_publishes_meanwhile_is_noticed(small, base, monkeypatch):
    push(small, f"{base.as_uri()}/1")
    description = (base / "1" / trees.NAME).read_bytes()
    (base / "1" / trees.NAME).unlink()
    change(small, 4)
    age(base, 40)
    push(small, f"{base.as_uri()}/2")
    before, real = pool(base), pruning._published

    def published(place):
        found = real(place)
        (base / "1" / trees.NAME).write_bytes(description)
        return found

    monkeypatch.setattr(pruning, "_published", published)
    with pytest.raises(StorageError, match="meanwhile"):
        prune(f"{base.as_uri()}/2", older_than_s=DAY_S)
    assert pool(base) == before


@pytest.mark.parametrize("days", [0.0, 0.9, -1.0, float("nan")])
def test_less_than_a_day_is_refused(days, base):
    with pytest.raises(UsageError, match="younger than a day"):
        prune(f"{base.as_uri()}/1", older_than_s=days * DAY_S)


def test_a_web_server_cannot_be_pruned(small):
    with serving() as web:
        push(small, f"{web.url}/m/1")
        with pytest.raises(StorageError, match="cannot list"):
            prune(f"{web.url}/m/1", older_than_s=DAY_S)
