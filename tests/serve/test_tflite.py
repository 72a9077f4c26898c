"""LiteRT models are served: as versions of their own, beside a SavedModel, and in bundles, without TensorFlow."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests import tflites
from tests.serve.server import Server

SERVED = {"x": np.array([2.0], np.float32)}  # not of the declared rank, as in TensorFlow Serving's own test


def version(base: Path, data: bytes, number: int = 123) -> Path:
    folder = base / f"{number:08}"
    folder.mkdir(parents=True)
    (folder / "model.tflite").write_bytes(data)
    return base


@pytest.fixture
def without_tensorflow(tmp_path: Path) -> dict[str, str]:
    """An environment in which TensorFlow cannot be found."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text('import sys\nsys.modules["tensorflow"] = None\n')
    return {"PYTHONPATH": str(tmp_path / "site"), "GLOWPLUG_CACHE_DIR": str(tmp_path / "cache")}


@pytest.mark.parametrize("named", [False, True])
def test_tensorflow_servings_own_cases(named: bool, tmp_path: Path, without_tensorflow: dict[str, str]) -> None:
    base = version(tmp_path / "half", tflites.half_plus_two(named=named))
    flags = (f"--model_base_path={base}", "--model_name=default", "--prefer_tflite_model=true", "--no-pack")
    with Server(*flags, environment=without_tensorflow) as server:
        answer = server.predict("default", SERVED)
        assert answer.outputs["y"].float_val == [3.0]
        assert answer.model_spec.version.value == 123
        assert server.post("/v1/models/default:predict", {"inputs": [[4.0]]}) == (200, {"outputs": [[4.0]]})
        status, _ = server.post("/v1/models/default:predict", {"inputs": "text"})
        assert status == 400
        assert server.predict("default", SERVED).outputs["y"].float_val == [3.0]


def test_a_plain_file_is_packed_beside_the_serving(tmp_path: Path, without_tensorflow: dict[str, str]) -> None:
    base = version(tmp_path / "dense", tflites.dense())
    with Server(f"dense={base}", environment=without_tensorflow) as server:
        event = server.wait_event("packed")
        assert event["engine"] == "litert"
        x = [[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]
        expected = tflites.dense_answer(np.array(x, np.float32)).tolist()
        assert server.post("/v1/models/dense:predict", {"instances": x}) == (200, {"predictions": expected})


@pytest.mark.parametrize("interface", ["compiled", "interpreter"])
def test_workers_serve_a_bundle(interface: str, tmp_path: Path, without_tensorflow: dict[str, str]) -> None:
    tflites.write_bundle(tmp_path / "m.glow", tflites.dense(), interface)
    with Server(f"m={tmp_path / 'm.glow'}", "--instances", 2, environment=without_tensorflow) as server:
        for rows in (1, 3, 2):
            x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
            expected = tflites.dense_answer(x).tolist()
            assert server.post("/v1/models/m:predict", {"instances": x.tolist()}) == (200, {"predictions": expected})
        status, body = server.post("/v1/models/m:predict", {"instances": [[1.0, 2.0]]})
        assert status == 400
        assert "features" in body["error"]
    if interface == "compiled":
        assert len(list((tmp_path / "cache" / "litert").glob("*.weights"))) == 1


def test_a_file_that_is_cut_off_waits_for_the_rest(tmp_path: Path, without_tensorflow: dict[str, str]) -> None:
    data = tflites.half_plus_two()
    base = version(tmp_path / "half", data[: len(data) // 2])
    file = base / "00000123" / "model.tflite"
    with Server(f"half={base}", "--no-pack", environment=without_tensorflow, wait=False) as server:
        assert "not whole" in server.wait_event("incomplete")["reason"]
        file.write_bytes(data)
        server.wait_ready()
        assert server.predict("half", SERVED).outputs["y"].float_val == [3.0]


@pytest.mark.tensorflow
@pytest.mark.parametrize(("flags", "engine"), [((), "savedmodel"), (("--prefer_tflite_model",), "litert")])
def test_which_of_two_is_served(flags: tuple[str, ...], engine: str, shared_models: Path, tmp_path: Path) -> None:
    shutil.copytree(shared_models / "saved_model_half_plus_two_cpu", tmp_path / "half")
    (folder,) = (tmp_path / "half").iterdir()
    (folder / "model.tflite").write_bytes(tflites.half_plus_two())
    with Server(f"half={tmp_path / 'half'}", "--no-pack", *flags) as server:
        assert server.wait_event("available")["engine"] == engine
        assert server.predict("half", SERVED).outputs["y"].float_val == [3.0]
