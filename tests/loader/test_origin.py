"""URLs wherever a path is taken: loaded from the node cache, kept while used, repaired when damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import glowplug
from glowplug.bundle.reader import open_bundle
from glowplug.core.errors import DigestError, LocationError, NotABundleError, OutputExistsError, UntrustedBundleError
from glowplug.loader.origin import is_url, local_copy, publish
from glowplug.store.node_cache import room
from glowplug.store.node_cache.folder import open_folder

pytestmark = pytest.mark.tensorflow

Bundles = Callable[[str], Path]
X = np.ones((2, 16), np.float32)


@pytest.fixture(autouse=True)
def node_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
    return tmp_path / "node-cache"


@pytest.fixture
def url(bundle: Bundles, tmp_path: Path) -> str:
    where = (tmp_path / "storage" / "dense" / "1").as_uri()
    publish(bundle("dense"), where)
    return where


def test_a_url_is_told_from_a_path():
    assert is_url("s3://bucket/m")
    assert not is_url("model.glow")
    assert not is_url(Path("s3://bucket/m"))


def test_a_model_is_loaded_from_a_url(bundle, url):
    with glowplug.load(bundle("dense")) as expected, glowplug.load(url) as model:
        np.testing.assert_array_equal(model(X), expected(X))
        assert "entries" in str(model.info.path)
        assert model.info.notes == expected.info.notes


def test_a_model_keeps_its_files_until_it_is_closed(url, node_cache):
    model = glowplug.load(url)
    assert room.prune(open_folder(node_cache), max_bytes=0) == []
    model.close()
    assert len(room.prune(open_folder(node_cache), max_bytes=0)) == 1


def test_stages_and_the_transfer_are_told(url):
    stages, transfers = [], []
    with glowplug.load(url, progress=stages.append, transfer=transfers.append):
        pass
    assert stages == ["fetch", "open", "start", "ready"]
    assert transfers[-1].done_bytes == transfers[-1].total_bytes > 0


def test_a_damaged_entry_is_repaired_by_a_load(url, bundle):
    with local_copy(url) as copy:
        graph = copy.path / "graph.pb"
    graph.chmod(0o600)
    data = graph.read_bytes()
    graph.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with glowplug.load(url) as model:
        assert any("damaged" in note for note in model.info.notes)
        assert model(X).shape == (2, glowplug.load(bundle("dense"))(X).shape[1])


def test_a_bundle_that_was_damaged_when_it_was_pushed_is_refused(bundle, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(bundle("dense"), broken)
    where = (tmp_path / "storage" / "m").as_uri()
    publish(broken, where)
    data = (broken / "graph.pb").read_bytes()
    (broken / "graph.pb").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    from glowplug.store.push import push

    push(broken, where)
    with pytest.raises(DigestError):
        glowplug.load(where)


def test_a_plain_bundle_needs_no_push(bundle):
    with glowplug.load(bundle("dense").as_uri()) as model:
        assert model(X).shape[0] == 2


def test_code_from_a_url_needs_trust(saved_model, tmp_path):
    pytest.importorskip("cryptography")
    from glowplug.store.signature import make_key_pair, public_path, read_private

    packed, key = tmp_path / "packed.glow", tmp_path / "key"
    glowplug.pack(saved_model("dense"), packed, engine="savedmodel")
    (packed / "bundle.seal").unlink()  # as on any other machine
    where = (tmp_path / "storage" / "code").as_uri()
    publish(packed, where)
    with pytest.raises(UntrustedBundleError):
        glowplug.load(where)
    make_key_pair(key)
    publish(packed, where, key=read_private(key))
    with glowplug.load(where, trusted_keys=[public_path(key)]) as model:
        assert model.engine == "savedmodel"
    with glowplug.load(where, trust=True) as model:
        assert model.engine == "savedmodel"


def test_a_saved_model_on_a_storage_is_packed_to_a_storage(saved_model, tmp_path):
    where = (tmp_path / "storage" / "packed").as_uri()
    with pytest.raises(UntrustedBundleError, match="packing runs a SavedModel"):
        glowplug.pack(saved_model("dense").as_uri(), where, prefer="any")
    packed = glowplug.pack(saved_model("dense").as_uri(), where, prefer="any", trust=True)
    assert packed.path.startswith(f"{where}@")
    with glowplug.load(packed.path) as model:
        assert model(X).shape[0] == 2
    with pytest.raises(OutputExistsError):
        glowplug.pack(saved_model("dense"), where, prefer="any")


def test_only_models_are_published(tmp_path, saved_model):
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotABundleError):
        publish(tmp_path / "folder", (tmp_path / "storage" / "m").as_uri())
    publish(saved_model("dense"), (tmp_path / "storage" / "m").as_uri())


def test_weights_are_cut_where_tensors_begin(bundle, tmp_path):
    import json

    where = tmp_path / "storage" / "m"
    publish(bundle("dense"), where.as_uri())
    stored = json.loads((where / "glowplug.json").read_bytes())
    tensors = open_bundle(bundle("dense")).manifest.tensors
    weights = next(one for one in stored["files"] if one["path"] == "weights.bin")
    assert len(weights["chunks"]) == 1 < len(tensors)  # small ones are joined


def test_a_path_imports_nothing_of_the_store(bundle):
    code = f"""
import sys, glowplug
glowplug.load({str(bundle("dense"))!r}).close()
print(*[name for name in sys.modules if name.startswith(("glowplug.store", "obstore", "fsspec", "concurrent"))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_cached_url_needs_few_imports(url):
    """What fetches is not imported for a pinned URL that the node cache has, nor for one that is asked for anew."""
    with local_copy(url) as copy:
        digest = copy.digest
    code = """
import sys
from glowplug.store.pull import obtain
obtain(sys.argv[1]).release()
print(*sys.modules)
"""
    for where, left_out in (
        (f"{url}@{digest}", {"concurrent.futures", "glowplug.store.backend", "glowplug.store.signature"}),
        (url, {"concurrent.futures", "glowplug.store.transfer.fetching", "glowplug.store.signature"}),
    ):
        done = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True, check=True)
        assert not left_out & set(done.stdout.split())


def test_a_url_that_lacks_a_sign_is_not_taken_for_a_path(tmp_path, monkeypatch):
    """A path of that name would be made, and shown with the secret that it may have."""
    monkeypatch.chdir(tmp_path)
    for text in ("https:/user:SECRET@host/x", "s3:/bucket/SECRET"):
        with pytest.raises(LocationError, match="this is no URL") as caught:
            glowplug.load(text)
        assert "SECRET" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
