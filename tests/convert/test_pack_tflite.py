"""`.tflite` files are packed as they are, without TensorFlow, and refused where LiteRT must not see them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests import tflites

import glowplug
from glowplug.bundle import layout
from glowplug.bundle.verify import verify
from glowplug.convert.job import Job, Order
from glowplug.convert.litert import bundles
from glowplug.core.disk.files import new_directory
from glowplug.core.errors import OpNotAllowedError, TfliteMalformedError, UnsupportedModelError, UsageError


@pytest.fixture
def file(tmp_path: Path):
    def write(data: bytes) -> Path:
        path = tmp_path / "model.tflite"
        path.write_bytes(data)
        return path

    return write


def packed(source: Path, target: Path, **wishes: object):
    with new_directory(target) as unfinished:
        Job(Order(unfinished, source, **wishes), lambda stage: None).run()
    return verify(target).manifest


@pytest.mark.parametrize("place", ["model.tflite", "inner/../model.tflite", "."])
def test_the_model_is_not_replaced_by_its_bundle(file, tmp_path: Path, place: str, monkeypatch) -> None:
    path = file(tflites.dense())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    with pytest.raises(UsageError, match="replace"):
        glowplug.pack(path, place, force=True)
    assert path.read_bytes() == tflites.dense()


def test_no_tensorflow_is_needed(file, tmp_path: Path) -> None:
    code = """
import sys
sys.modules["tensorflow"] = None
from glowplug.cli.main import main
sys.exit(main(["pack", sys.argv[1], "-o", sys.argv[2]]))
"""
    path = file(tflites.dense())
    (tmp_path / "sitecustomize.py").write_text('import sys\nsys.modules["tensorflow"] = None\n')  # in its children too
    done = subprocess.run(
        [sys.executable, "-c", code, path, tmp_path / "m.glow"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(glowplug.__file__).parents[1]}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "litert bundle" in done.stdout
    assert "float32 identical" in done.stdout
    assert (tmp_path / "m.glow" / layout.TFLITE).read_bytes() == path.read_bytes()


def test_shapes_are_as_free_as_in_litert(file, tmp_path: Path) -> None:
    manifest = packed(file(tflites.half_plus_two(named=True)), tmp_path / "m.glow")
    assert manifest.litert.any_shape
    assert manifest.signatures["serving_default"].method == "tensorflow/serving/predict"
    with glowplug.load(tmp_path / "m.glow") as model:
        for shape in ((1, 1), (1,), (3, 2), (1, 1)):
            np.testing.assert_array_equal(model(np.full(shape, 4, np.float32)), np.full(shape, 4, np.float32))


def test_large_files_get_packed_weights(file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "SMALL_BYTES", 0)
    manifest = packed(file(tflites.dense(rows=2)), tmp_path / "m.glow")
    assert manifest.litert.interface == "declared"
    assert manifest.litert.packed is not None
    with glowplug.load(tmp_path / "m.glow") as model:
        for rows in (2, 5, 2):
            x = np.ones((rows, 4), np.float32)
            np.testing.assert_allclose(model(x), tflites.dense_answer(x))


def test_outputs_whose_shape_is_in_the_data_keep_the_interpreter(
    file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "SMALL_BYTES", 0)
    assert packed(file(tflites.where()), tmp_path / "m.glow").litert.interface == "interpreter"


def test_warm_up_requests_are_kept(file, tmp_path: Path) -> None:
    np.savez(tmp_path / "requests.npz", features=np.ones((2, 4), np.float32))
    manifest = packed(file(tflites.dense()), tmp_path / "m.glow", warmup=tmp_path / "requests.npz")
    assert manifest.equivalence["calls"] == {"serving_default": 1}
    with glowplug.load(tmp_path / "m.glow") as model:
        assert len(model.warm_up()) == 1


@pytest.mark.parametrize(
    ("data", "error", "reason"),
    [
        (lambda: tflites.dense()[:-64], TfliteMalformedError, "not a LiteRT model"),
        (lambda: b"", TfliteMalformedError, "empty"),
        (lambda: b"no model at all", TfliteMalformedError, "begin"),
        (
            lambda: tflites.write_tflite(
                [tflites.TestTensor("a", (1,)), tflites.TestTensor("b", (1,))],
                [tflites.Node(tflites.CUSTOM, (0,), (1,), "FlexErf")],
                [0],
                [1],
            ),
            OpNotAllowedError,
            "FlexErf",
        ),
    ],
)
def test_what_litert_must_not_see_is_refused_first(file, tmp_path: Path, data, error, reason: str) -> None:
    with pytest.raises(error, match=reason) as caught:
        glowplug.pack(file(data()), tmp_path / "m.glow")
    assert caught.value.exit_code == 3
    assert not (tmp_path / "m.glow").exists()


def test_a_file_on_which_litert_fails_is_a_finding(file, tmp_path: Path) -> None:
    """What is well formed can still be no model: here a bias is not as long as the kernel has rows."""
    tensors = [
        tflites.TestTensor("x", (-1, 4)),
        tflites.TestTensor("kernel", (3, 4), data=tflites.KERNEL.tobytes()),
        tflites.TestTensor("bias", (2,), data=tflites.BIAS[:2].tobytes()),
        tflites.TestTensor("y", (-1, 3)),
    ]
    data = tflites.write_tflite(tensors, [tflites.Node(tflites.FULLY_CONNECTED, (0, 1, 2), (3,))], [0], [3])
    with pytest.raises(UnsupportedModelError, match=r"no made-up input suits|LiteRT"):
        glowplug.pack(file(data), tmp_path / "m.glow")


@pytest.mark.parametrize("wishes", [{"engine": "native"}, {"engine": "litert", "quantize": "dynamic"}])
def test_other_engines_do_not_take_it(file, tmp_path: Path, wishes: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="for LiteRT"):
        glowplug.pack(file(tflites.dense()), tmp_path / "m.glow", **wishes)
