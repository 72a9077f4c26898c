"""Packed weights in the user's cache are those that were made from the model that they stand for, or are not used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests import tflites

import glowplug
from glowplug.bundle import layout
from glowplug.core.errors import DigestError
from glowplug.loader.engines import packed_weights

ROOTS = f"{Path(glowplug.__file__).parents[1]}{os.pathsep}{Path(__file__).parents[2]}"
X = np.ones((1, 4), np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's packed weights."""
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "litert"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    tflites.write_bundle(tmp_path / "m.glow", tflites.dense(), "compiled")
    return tmp_path / "m.glow"


def weights(cache: Path) -> Path:
    (found,) = cache.glob("*.weights")
    return found


def answer(path: Path) -> tuple[list[list[float]], tuple[str, ...]]:
    with glowplug.load(path) as model:
        return model(X).tolist(), model.info.notes


RIGHT = (tflites.dense_answer(X).tolist(), ())


def replace_bytes(path: Path, data: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(data)


def test_a_changed_byte_is_noticed(bundle: Path, cache: Path) -> None:
    assert answer(bundle) == RIGHT
    kept = weights(cache)
    whole = kept.read_bytes()
    spoiled = 0
    for place in range(32, len(whole), 16):
        changed = whole[:place] + bytes(one ^ 0x40 for one in whole[place : place + 16]) + whole[place + 16 :]
        replace_bytes(kept, changed)
        if packed_weights.is_whole(str(kept)):
            spoiled += 1
            assert answer(bundle) == RIGHT, place
            assert kept.read_bytes() == whole
    assert spoiled


def test_a_copied_cache_is_used_where_its_bytes_are_the_same(bundle: Path, cache: Path, tmp_path: Path) -> None:
    assert answer(bundle) == RIGHT
    shutil.copytree(cache, tmp_path / "copy")
    shutil.rmtree(cache)
    (tmp_path / "copy").rename(cache)
    inode = weights(cache).stat().st_ino
    assert answer(bundle) == answer(bundle) == RIGHT
    assert weights(cache).stat().st_ino == inode
    mark = json.loads(Path(f"{weights(cache)}.mark").read_bytes())
    assert inode in mark["file"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"null", b'{"file": 1, "sha256": 2}', b"\xff"])
def test_a_mark_that_is_none_makes_them_anew(bundle: Path, cache: Path, content: bytes) -> None:
    assert answer(bundle) == RIGHT
    inode = weights(cache).stat().st_ino
    Path(f"{weights(cache)}.mark").write_bytes(content)
    assert answer(bundle) == RIGHT
    assert weights(cache).stat().st_ino != inode


def test_a_bundle_that_lies_about_its_model_leaves_nothing_for_others(bundle: Path, cache: Path) -> None:
    liar = bundle.with_name("liar.glow")
    shutil.copytree(bundle, liar)
    data = (liar / layout.TFLITE).read_bytes()
    other = data.replace(tflites.KERNEL.tobytes(), (tflites.KERNEL + 1).tobytes())
    assert other != data
    (liar / layout.TFLITE).write_bytes(other)
    with pytest.raises(DigestError, match=layout.TFLITE):
        glowplug.load(liar)
    assert answer(bundle) == RIGHT


def test_a_full_disk_costs_the_cache_and_not_the_model(bundle: Path, cache: Path) -> None:
    code = """
import resource, sys
import numpy as np
import glowplug
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
model = glowplug.load(sys.argv[1])
print(model(np.ones((1, 4), np.float32)).tolist())
print(*model.info.notes)
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(bundle)],
        env={**os.environ, "PYTHONPATH": ROOTS},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == str(RIGHT[0])
    assert "weights are not shared between processes" in second
    assert [one.name for one in cache.iterdir() if not one.name.endswith(".lock")] == []
    assert answer(bundle) == RIGHT


def test_a_fork_closes_what_a_thread_was_calling(bundle: Path) -> None:
    code = """
import os, signal, sys
import numpy as np
import glowplug
model = glowplug.load(sys.argv[1])
x = np.ones((1, 4), np.float32)
model(x)
with model._engine._lock:  # as if another thread were in a call
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            model(x)
        except glowplug.GlowplugError as error:
            model.close()
            os._exit(0 if type(error).__name__ == "ForkedError" else 1)
        os._exit(2)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert model(x).shape == (1, 3)
"""
    command = [sys.executable, "-c", code, str(bundle)]
    environment = {**os.environ, "PYTHONPATH": ROOTS}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_least_used_goes_first_with_all_that_belongs_to_it(
    bundle: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_weights, "_KEPT", 2)
    paths = [bundle]
    for rows in (1, 2):
        paths.append(bundle.with_name(f"{rows}.glow"))
        tflites.write_bundle(paths[-1], tflites.dense(rows=rows), "compiled")
    glowplug.load(paths[0]).close()
    first = weights(cache)
    os.utime(f"{first}.mark", (1, 1))
    glowplug.load(paths[1]).close()
    assert first.exists()
    glowplug.load(paths[2]).close()
    assert sorted(cache.glob(f"{first.name}*")) == []
    assert len(list(cache.glob("*.weights"))) == 2
