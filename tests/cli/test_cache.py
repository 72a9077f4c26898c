"""`glowplug cache` on a cache that is made by hand: no TensorFlow is needed to look into one."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import pytest

from glowplug.cli import cache
from glowplug.cli.main import main
from glowplug.core.errors import StorageError, UsageError
from glowplug.train.trace import entry
from glowplug.train.trace.entry_store import DirectoryStore
from glowplug.train.trace.key import from_texts


@pytest.fixture
def folder(tmp_path):
    store = DirectoryStore(tmp_path / "cache")
    for number, because in enumerate([[], ["model: model.rate 0.25 -> 0.5"]]):
        key = from_texts({"model": {"model.rate": str(number)}})
        info = {"label": f"step {number}", "function": "train", "inputs": ["float32[8]"], "because": because}
        store.write(key.digest, entry.encode(key, {**info, "nodes": 7, "captures": 2}, {}, {"f": b"x" * 100}))
    (tmp_path / "cache" / ("f" * 64 + ".trace")).write_bytes(b"garbage")
    (tmp_path / "cache" / ("f" * 64 + ".trace")).chmod(0o600)
    return tmp_path / "cache"


def run(capsys, folder, *arguments, as_json=True):
    parser = argparse.ArgumentParser()
    cache.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    words = [*arguments, "--cache-dir", str(folder), *(["--json"] if as_json else [])]
    assert cache.run(parser.parse_args(words)) == 0
    printed = capsys.readouterr().out
    return json.loads(printed) if as_json else printed


def test_ls(capsys, folder):
    document = run(capsys, folder, "ls")
    assert sorted(row["label"] for row in document["entries"]) == ["step 0", "step 1"]
    assert document["bytes"] == sum(row["bytes"] for row in document["entries"])
    printed = run(capsys, folder, "ls", as_json=False)
    assert "2 traces" in printed
    assert "step 1  (float32[8])" in printed


def test_explain(capsys, folder):
    newest = run(capsys, folder, "explain")
    assert newest["label"] == "step 1"
    assert newest["because"] == ["model: model.rate 0.25 -> 0.5"]
    assert set(newest["components"]) == {"model"}
    (first,) = [row for row in run(capsys, folder, "ls")["entries"] if row["label"] == "step 0"]
    assert run(capsys, folder, "explain", first["name"][:10])["label"] == "step 0"
    assert "nothing like it" in run(capsys, folder, "explain", first["name"], as_json=False)
    assert "0.25 -> 0.5" in run(capsys, folder, "explain", as_json=False)


def test_explain_what_is_not_there(capsys, folder):
    with pytest.raises(UsageError, match="no such trace"):
        run(capsys, folder, "explain", "zzz")


def test_prune_and_clear(capsys, folder):
    with pytest.raises(UsageError, match="what to keep"):
        run(capsys, folder, "prune")
    assert run(capsys, folder, "prune", "--older-than", "1")["removed"] == []
    assert len(run(capsys, folder, "clear")["removed"]) == 3
    assert run(capsys, folder, "ls")["entries"] == []


def test_no_cache_yet(capsys, tmp_path):
    assert run(capsys, tmp_path / "none", "ls")["entries"] == []
    assert not (tmp_path / "none").exists()


def test_a_cache_that_others_can_reach(capsys, folder):
    folder.chmod(0o755)
    with pytest.raises(StorageError, match="others can reach"):
        run(capsys, folder, "ls")


def test_looking_needs_no_tensorflow(folder):
    program = (
        "import argparse, sys; from glowplug.cli import cache; p = argparse.ArgumentParser();"
        "cache.add_arguments(p); p.add_argument('--json', action='store_true');"
        f"cache.run(p.parse_args(['ls', '--cache-dir', {str(folder)!r}]));"
        "print(sorted({'tensorflow', 'keras', 'numpy'} & set(sys.modules)))"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert completed.stdout.splitlines()[-1] == "[]", completed.stderr


def test_packed_weights_are_listed_and_removed(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node"))
    place = tmp_path / "cache" / "litert"
    place.mkdir(parents=True, mode=0o700)
    for number, name in enumerate("abc"):
        (place / f"{name * 64}.weights").write_bytes(bytes(100))
        (place / f"{name * 64}.weights.lock").touch()
        mark = place / f"{name * 64}.weights.mark"
        mark.touch()
        os.utime(mark, (number, number))  # when it was last used

    def call(*words):
        assert main(["cache", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert [row["name"][0] for row in call("ls")["litert"]["entries"]] == ["c", "b", "a"]
    assert call("ls", "--only", "litert")["litert"]["bytes"] == 300
    assert "litert" not in call("ls", "--only", "node")
    removed = call("prune", "--only", "litert", "--max-bytes", "250")
    assert removed == {"litert": {"directory": str(place), "removed": ["a" * 64], "bytes": 100}}
    assert call("clear", "--only", "litert")["litert"]["bytes"] == 200
    assert list(place.iterdir()) == []
    assert main(["cache", "verify", "--only", "litert"]) == 2
