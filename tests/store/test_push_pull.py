"""Directories go to a storage and come back, byte for byte, and only what is missing moves."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from glowplug.core.errors import (
    DamagedObjectError,
    LocationError,
    ObjectNotFoundError,
    SignatureError,
    UnreachableError,
    UsageError,
)
from glowplug.store import tree as trees
from glowplug.store.pull import obtain, pull
from glowplug.store.push import push
from glowplug.store.signature import make_key_pair, public_path, read_private, trust
from tests.fakes.web_server import serving
from tests.store.conftest import MB, contents

TENSORS = {"weights.bin": [MB * n for n in range(40)]}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "storage" / "models" / "encoder" / "1").as_uri()


def pool(tmp_path: Path) -> dict[str, int]:
    place = tmp_path / "storage" / "models" / "encoder" / trees.POOL
    return {path.name: path.stat().st_size for path in place.iterdir()}


def chunks(tmp_path: Path) -> dict[str, int]:
    return {name: size for name, size in pool(tmp_path).items() if not name.endswith(".json")}


def test_what_was_pushed_comes_back(model, url):
    pushed = push(model, url, boundaries=TENSORS)
    assert pushed.sent_bytes == pushed.total_bytes == sum(map(len, contents(model).values()))
    with obtain(url) as held:
        assert contents(held.path) == contents(model)
        assert held.digest == pushed.digest
        assert held.notes == ()
    assert pull(f"{url}@{pushed.digest}") == held.path


def test_a_version_that_changes_one_layer_moves_one_layer(model, url, tmp_path):
    push(model, url, boundaries=TENSORS)
    before = chunks(tmp_path)
    with (model / "weights.bin").open("r+b") as stream:
        stream.seek(17 * MB)
        stream.write(b"another layer")
    second = push(model, f"{url[:-1]}2", boundaries=TENSORS)
    assert second.sent_bytes == sum(size for name, size in chunks(tmp_path).items() if name not in before) == MB
    again = push(model, f"{url[:-1]}2", boundaries=TENSORS)
    assert again.sent_bytes == 0
    assert again.digest == second.digest


def test_a_pull_copies_what_another_entry_has(model, url, tmp_path):
    with serving() as web:
        push(model, f"{web.url}/m/1", boundaries=TENSORS)
        pull(f"{web.url}/m/1")
        with (model / "weights.bin").open("r+b") as stream:
            stream.write(b"another layer")
        push(model, f"{web.url}/m/2", boundaries=TENSORS)
        web.sent.clear()
        assert contents(pull(f"{web.url}/m/2")) == contents(model)
        assert sum(size for path, size in web.sent if trees.POOL in path) == MB


def test_equal_chunks_are_sent_and_fetched_once(tmp_path, url):
    source = tmp_path / "zeros"
    source.mkdir()
    (source / "a").write_bytes(bytes(32 * MB))
    (source / "b").write_bytes(bytes(16 * MB))
    assert push(source, url).sent_bytes == 2 * MB
    assert contents(pull(url)) == contents(source)


def test_a_pinned_url_finds_its_version_after_another_took_the_place(model, url):
    first = push(model, url)
    original = contents(model)
    (model / "bundle.json").write_text("changed")
    second = push(model, url)
    assert contents(pull(f"{url}@{first.digest}")) == original
    assert contents(pull(url)) == contents(model)
    with pytest.raises(ObjectNotFoundError, match=second.digest):
        pull(f"{url}@{'0' * 64}")


def test_readers_see_one_version_or_the_other(model, url, tmp_path):
    """Chunks and the description by digest are there before the description under the URL is."""
    push(model, url)
    published = tmp_path / "storage" / "models" / "encoder" / "1" / trees.NAME
    newest = max(path.stat().st_mtime_ns for path in published.parent.parent.joinpath(trees.POOL).iterdir())
    assert published.stat().st_mtime_ns >= newest


def test_a_plain_directory_needs_no_push(model):
    first = pull(model.as_uri())
    assert contents(first) == contents(model)
    assert pull(model.as_uri()) == first
    (model / "bundle.json").write_text("changed")
    assert contents(pull(model.as_uri())) == contents(model)


def test_a_plain_file_is_a_file(model):
    path = pull((model / "weights.bin").as_uri())
    assert path.name == "weights.bin"
    assert path.read_bytes() == (model / "weights.bin").read_bytes()


def test_a_plain_file_of_a_web_server_is_noticed_when_it_changes():
    with serving() as web:
        web.objects["/model.keras"] = b"one" * 1000
        assert pull(f"{web.url}/model.keras").read_bytes() == b"one" * 1000
        web.objects["/model.keras"] = b"two" * 1000
        assert pull(f"{web.url}/model.keras").read_bytes() == b"two" * 1000


def test_a_pinned_plain_directory_must_have_the_digest(model):
    with obtain(model.as_uri()) as held:
        digest = held.digest
    assert contents(pull(f"{model.as_uri()}@{digest}")) == contents(model)
    with pytest.raises(DamagedObjectError, match=digest):
        pull(f"{model.as_uri()}@{'0' * 64}")


def test_a_warm_pinned_url_asks_nothing_of_the_origin(model):
    with serving() as web:
        digest = push(model, f"{web.url}/m").digest
        pull(f"{web.url}/m@{digest}")
        web.requests.clear()
        pull(f"{web.url}/m@{digest}")
        assert web.requests == []
        pull(f"{web.url}/m")
        assert [path for _, path in web.requests] == [f"/m/{trees.NAME}"]


def test_nothing_there_is_said(url, tmp_path):
    with pytest.raises(ObjectNotFoundError, match="nothing under this URL"):
        pull(url)
    with pytest.raises(UsageError, match="no such directory"):
        push(tmp_path / "nowhere", url)
    with pytest.raises(LocationError, match="no storage has this scheme"):
        pull("nonsense://a/b")
    with pytest.raises(UsageError, match="digest is what a push returns"):
        push(tmp_path, f"{url}@{'0' * 64}")


def test_a_chunk_that_was_cut_off_or_altered_is_refused(model, url, tmp_path, node_cache):
    push(model, url)
    place = tmp_path / "storage" / "models" / "encoder" / trees.POOL
    victim = max(place.iterdir(), key=lambda path: path.stat().st_size)
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1])
    with pytest.raises(DamagedObjectError, match="cut off") as caught:
        pull(url)
    assert caught.value.exit_code == 4
    victim.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DamagedObjectError, match="altered"):
        pull(url)
    assert not list((node_cache / "entries").glob("*")) if (node_cache / "entries").exists() else True
    assert push(model, url).sent_bytes == 0
    assert push(model, url, force=True).sent_bytes > 40 * MB
    assert contents(pull(url)) == contents(model)


def test_a_chunk_that_is_missing_is_said(model, url, tmp_path):
    push(model, url)
    next(
        path for path in (tmp_path / "storage" / "models" / "encoder" / trees.POOL).iterdir() if not path.suffix
    ).unlink()
    with pytest.raises(ObjectNotFoundError):
        pull(url)


def test_a_server_that_dies_half_way_is_gone_on_with(model, monkeypatch, node_cache):
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "1")
    with serving() as web:
        push(model, f"{web.url}/m", boundaries=TENSORS)
        web.requests.clear()
        real = dict(web.objects)
        names = [name for name in real if trees.POOL in name and not name.endswith(".json")]
        web.faults = []
        for name in names[:2]:
            web.objects[name] = b""  # answered with 416, as nothing else here is
        with pytest.raises((UnreachableError, ObjectNotFoundError)):
            pull(f"{web.url}/m")
        web.objects.update(real)
        web.faults = [(503, {})]
        with pytest.raises(UnreachableError):
            pull(f"{web.url}/m")
        assert contents(pull(f"{web.url}/m")) == contents(model)


def test_what_an_attempt_had_done_is_not_fetched_again(model, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "1")
    with serving() as web:
        push(model, f"{web.url}/m", boundaries=TENSORS)
        web.sent.clear()
        answers = iter([False] * 4 + [True])

        class Breaking(list):
            def __bool__(self) -> bool:  # the server fails at its fifth answer
                return next(answers, False)

        web.faults = Breaking([(503, {})])
        with pytest.raises(UnreachableError):
            pull(f"{web.url}/m")
        before = sum(size for path, size in web.sent if trees.POOL in path)
        web.sent.clear()
        assert contents(pull(f"{web.url}/m")) == contents(model)
        after = sum(size for path, size in web.sent if trees.POOL in path)
        assert 0 < before < before + after == sum(map(len, contents(model).values()))


def test_a_plain_directory_that_changes_while_it_is_read_is_read_again(model, monkeypatch):
    from glowplug.store.backends.local import LocalBackend

    real, changed = LocalBackend.read, []

    def read(self, path, start, end):
        data = real(self, path, start, end)
        if path.endswith("bundle.json") and not changed:
            changed.append(path)
            (model / "bundle.json").write_text("changed meanwhile")
        return data

    monkeypatch.setattr(LocalBackend, "read", read)
    assert contents(pull(model.as_uri())) == contents(model)


def test_links_that_lead_out_are_not_pushed(model, url, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (model / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(Exception, match="link") as caught:
        push(model, url)
    assert caught.value.exit_code == 4


def test_signatures_are_asked_for_and_kept(model, tmp_path):
    pytest.importorskip("cryptography")
    key, other = tmp_path / "key", tmp_path / "other"
    make_key_pair(key)
    make_key_pair(other)
    trusted, stranger = trust([public_path(key)]), trust([public_path(other)])
    with serving() as web:
        unsigned = push(model, f"{web.url}/unsigned/m")
        signed = push(model, f"{web.url}/signed/m", key=read_private(key))
        assert signed.digest == unsigned.digest
        with pytest.raises(SignatureError, match="must be signed"):
            pull(f"{web.url}/unsigned/m", trusted=trusted)
        with pytest.raises(SignatureError, match="must be signed"):
            pull(f"{web.url}/signed/m", trusted=stranger)
        with obtain(f"{web.url}/signed/m", trusted=trusted) as held:
            assert held.signed
        web.requests.clear()
        with obtain(f"{web.url}/signed/m@{signed.digest}", trusted=trusted) as held:
            assert held.signed
        assert web.requests == []
        with obtain(f"{web.url}/signed/m") as held:
            assert not held.signed
        with pytest.raises(SignatureError):
            pull(f"{web.url}/signed/m@{signed.digest}", trusted=stranger)
    with pytest.raises(SignatureError):
        pull(model.as_uri(), trusted=trusted)


def test_progress_ends_with_everything(model, url):
    pushed, pulled = [], []
    total = push(model, url, progress=pushed.append).total_bytes
    pull(url, progress=pulled.append)
    for seen in (pushed, pulled):
        assert (seen[-1].done_bytes, seen[-1].total_bytes) == (total, total)
        assert all(one.done_bytes <= two.done_bytes for one, two in pairwise(seen))


def test_files_of_the_cache_cannot_be_shortened_by_mistake(model, url):
    push(model, url)
    assert all(not path.stat().st_mode & 0o222 for path in pull(url).rglob("*") if path.is_file())
    assert os.access(pull(url), os.R_OK)


def test_keys_that_nobody_must_have_used_cost_no_request(model, tmp_path, monkeypatch):
    """With keys of the environment, a pinned URL is still not asked for, until somebody wants to know who signed it."""
    pytest.importorskip("cryptography")
    make_key_pair(tmp_path / "key")
    monkeypatch.setenv("GLOWPLUG_TRUSTED_KEYS", str(public_path(tmp_path / "key")))
    with serving() as web:
        digest = push(model, f"{web.url}/m").digest
        pull(f"{web.url}/m@{digest}")
        web.requests.clear()
        with obtain(f"{web.url}/m@{digest}") as held:
            assert web.requests == []
            assert not held.signed
            assert len(web.requests) == 1
        push(model, f"{web.url}/m", key=read_private(tmp_path / "key"))
        with obtain(f"{web.url}/m@{digest}") as held:
            assert held.signed
        web.requests.clear()
        with obtain(f"{web.url}/m@{digest}") as held:
            assert held.signed
        assert web.requests == []


def test_a_kept_signature_that_is_damaged_is_asked_for_again(model, tmp_path, node_cache):
    pytest.importorskip("cryptography")
    make_key_pair(tmp_path / "key")
    trusted = trust([public_path(tmp_path / "key")])
    with serving() as web:
        digest = push(model, f"{web.url}/m", key=read_private(tmp_path / "key")).digest
        pull(f"{web.url}/m", trusted=trusted)
        (kept,) = (node_cache / "entries" / digest).glob("signatures-*")
        kept.write_bytes(bytes(kept.stat().st_size))
        with obtain(f"{web.url}/m@{digest}", trusted=trusted) as held:
            assert held.signed


def test_what_is_kept_without_a_signature_is_refused_where_there_must_be_one(model, tmp_path):
    pytest.importorskip("cryptography")
    make_key_pair(tmp_path / "key")
    with serving() as web:
        digest = push(model, f"{web.url}/m").digest
        pull(f"{web.url}/m@{digest}")
        with pytest.raises(SignatureError, match="must be signed"):
            pull(f"{web.url}/m@{digest}", trusted=trust([public_path(tmp_path / "key")]))
