"""Version 1 of the format, byte for byte: what was written stays readable and is written the same."""

from __future__ import annotations

from glowplug.bundle import schema
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify
from glowplug.core.manifest import Asset, StoredTensor

from .samples import BIAS, GOLDEN, KERNEL, write_golden


def files(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_written_bytes_are_the_golden_ones(tmp_path):
    manifest = write_golden(tmp_path)
    assert files(tmp_path) == files(GOLDEN)
    assert schema.dump(manifest) == (GOLDEN / "bundle.json").read_bytes()


def test_golden_bundle_is_read(tmp_path):
    bundle = open_bundle(GOLDEN)
    assert bundle.manifest == write_golden(tmp_path)
    assert bundle.manifest.tensors == (
        StoredTensor("weights/kernel", "dense/kernel", "float32", (2, 3), 0, 24),
        StoredTensor("weights/bias", "dense/bias", "float32", (3,), 64, 12),
        StoredTensor("weights/empty", "nothing", "float64", (0, 4), 128, 0),
    )
    assert str(bundle.manifest.signatures["serving_default"]) == "(x: float32[?, 2]) -> (y: float32[?, 3])"
    with bundle.map_weights() as weights:
        assert weights[:24] == KERNEL
        assert weights[64:76] == BIAS
        assert len(weights) == 128
    assert bundle.graph_bytes() == bundle.graph_bytes(portable=True) == (GOLDEN / "graph.pb").read_bytes()
    assert bundle.asset_path(Asset("vocab_path", "assets/vocab.txt")).read_bytes() == b"red\ngreen\nblue\n"
    assert [path.name for path in bundle.warmup_files] == ["0.json"]


def test_golden_bundle_verifies():
    steps = []
    report = verify(GOLDEN, progress=lambda done, total: steps.append((done, total)))
    total = sum(len(data) for path, data in files(GOLDEN).items() if path != "bundle.json")
    assert steps[-1] == (total, total)
    assert steps == sorted(steps)
    assert report.bytes_hashed == total
    assert report.unlisted == ()
