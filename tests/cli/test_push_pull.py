"""`glowplug push`, `pull`, and the verbs that take a URL, as commands."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glowplug.cli.main import main
from glowplug.cli.pull import _copied
from glowplug.core.errors import StorageError

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def node_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    return tmp_path / "node-cache"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "storage" / "dense" / "1").as_uri()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict]:
    def call(*words: object) -> dict:
        assert main([*map(str, words), "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def call(*words: object) -> tuple[int, str]:
        code = main([*map(str, words)])
        err = capsys.readouterr().err
        assert len(err.splitlines()) == 1, err
        return code, err

    return call


def test_a_bundle_travels(bundle, url, run, tmp_path):
    pushed = run("push", bundle("dense"), url)
    assert pushed["sent_bytes"] == pushed["bytes"] > 0
    pulled = run("pull", f"{url}@{pushed['digest']}", "-o", tmp_path / "copy.glow")
    assert pulled["digest"] == pushed["digest"]
    assert run("verify", tmp_path / "copy.glow")["good"]
    assert run("verify", url)["good"]
    assert run("inspect", url)["manifest"]["engine"] == "native"
    np.save(tmp_path / "x.npy", np.ones((2, 16), np.float32))
    assert run("predict", url, "--input", tmp_path / "x.npy")["outputs"]
    assert (tmp_path / "copy.glow" / "weights.bin").stat().st_mode & 0o200  # it is the user's own


def test_a_pull_says_where_it_is(bundle, url, capsys, node_cache):
    assert main(["push", str(bundle("dense")), url]) == 0
    assert capsys.readouterr().out.startswith(f"{url}@")
    assert main(["pull", url]) == 0
    place = Path(capsys.readouterr().out.strip())
    assert place.is_relative_to(node_cache)
    assert (place / "bundle.json").is_file()


def test_outputs_are_not_replaced_without_force(bundle, url, run, fails, tmp_path):
    run("push", bundle("dense"), url)
    run("pull", url, "-o", tmp_path / "copy")
    code, err = fails("pull", url, "-o", tmp_path / "copy")
    assert code == 2
    assert "--force" in err
    run("pull", url, "-o", tmp_path / "copy", "--force")
    (tmp_path / "copy" / "precious").write_text("x")
    code, err = fails("pull", url, "-o", tmp_path / "copy", "--force")
    assert code == 2
    assert "never replaced" in err
    assert (tmp_path / "copy" / "precious").exists()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("nonsense://bucket/m", "no storage has this scheme"),
        ("file:///nowhere/at/all", "nothing under this URL"),
        ("http://127.0.0.1:9/m", "does not answer"),
        ("https://user:password@host/m", "must not have a user, password or token"),
    ],
)
def test_bad_urls_are_one_line_and_exit_code_4(where, said, fails):
    for verb in ("pull", "inspect", "predict", "verify"):
        code, err = fails(verb, where)
        assert code == 4
        assert said in err
        assert "password@" not in err


def test_a_chunk_that_was_altered_is_exit_code_4(bundle, url, run, fails, tmp_path):
    run("push", bundle("dense"), url)
    for path in (tmp_path / "storage" / "dense" / ".glowplug-chunks").iterdir():
        if not path.suffix:
            path.write_bytes(bytes(path.stat().st_size))
    code, err = fails("pull", url)
    assert code == 4
    assert "altered" in err
    assert "push --force" in err


def test_the_node_cache_is_listed_checked_and_pruned(bundle, url, run, capsys, node_cache):
    digest = run("push", bundle("dense"), url)["digest"]
    run("pull", url)
    (entry,) = run("cache", "ls")["node"]["entries"]
    assert (entry["digest"], entry["url"], entry["in_use"]) == (digest, url, False)
    assert run("cache", "verify")["node"]["damaged"] == 0
    weights = node_cache / "entries" / digest / "content" / "weights.bin"
    weights.chmod(0o600)
    weights.write_bytes(bytes(weights.stat().st_size))
    assert main(["cache", "verify"]) == 1
    assert "other bytes than were fetched" in capsys.readouterr().out
    run("pull", url)
    assert run("cache", "verify")["node"]["damaged"] == 0
    assert run("cache", "prune", "--max-bytes", "0")["node"]["removed"] == [digest]
    assert run("cache", "ls", "--only", "node")["node"]["entries"] == []


def test_keys_decide_what_is_taken(bundle, url, run, fails, tmp_path):
    pytest.importorskip("cryptography")
    run("keygen", tmp_path / "key")
    run("push", bundle("dense"), url)
    code, err = fails("pull", url, "--trust", tmp_path / "key.pub")
    assert code == 4
    assert "signed" in err
    assert fails("inspect", url, "--require-signature")[0] == 4
    run("push", bundle("dense"), url, "--sign", tmp_path / "key")
    assert run("pull", url, "--trust", tmp_path / "key.pub")["signed"]
    assert run("inspect", url, "--trust-key", tmp_path / "key.pub")


def test_what_is_damaged_in_the_node_cache_is_not_copied_and_not_blamed_on_the_origin(
    bundle, url, run, capsys, node_cache, tmp_path
):
    digest = run("push", bundle("dense"), url)["digest"]
    run("pull", url)
    whole = (bundle("dense") / "weights.bin").read_bytes()
    for words in (("pull", url, "-o", tmp_path / "copy"), ("verify", url)):
        weights = node_cache / "entries" / digest / "content" / "weights.bin"
        weights.chmod(0o600)
        weights.write_bytes(bytes(len(whole)))
        assert main([*map(str, words)]) == 0
        assert "damaged and is fetched again" in capsys.readouterr().err
        assert weights.read_bytes() == whole
    assert (tmp_path / "copy" / "weights.bin").read_bytes() == whole


def test_a_push_removes_what_nobody_needs_if_it_is_told_to(bundle, url, run, fails, tmp_path):
    first = run("push", bundle("dense"), url)["digest"]
    pool = tmp_path / "storage" / "dense" / ".glowplug-chunks"
    for path in pool.iterdir():
        os.utime(path, (1, 1))
    run("push", bundle("two_in_two_out"), url)
    assert (pool / f"{first}.json").exists()
    pruned = run("push", bundle("two_in_two_out"), url, "--prune", "30")
    assert pruned["removed_objects"] > 0
    assert not (pool / f"{first}.json").exists()
    assert run("verify", url)["good"]
    code, err = fails("push", bundle("two_in_two_out"), url, "--prune", "0.5")
    assert code == 2
    assert "younger than a day" in err


def test_a_copy_that_finds_no_room_says_so_once(tmp_path, monkeypatch):
    """However many files it has."""

    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    (tmp_path / "entry").mkdir()
    for number in range(20):
        (tmp_path / "entry" / str(number)).write_bytes(b"x")
    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(StorageError, match="the copy cannot be written") as caught:
        _copied(tmp_path / "entry", tmp_path / "copy", force=False)
    assert str(caught.value).count("No space left") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]
