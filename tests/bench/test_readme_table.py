"""README.md's first table, made from a result of the scenarios."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def readme_table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("readme_table", BENCH / "readme_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("machine", None)
    return module


def row(name: str, title: str, first: float | None, cold: float | None = None, outcome: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "outcome": outcome or ("measured" if first else "failed"),
        "first_ns": [first * 1e9, first * 1e9, first * 9e9] if first else [],
        "cold_first_ns": [cold * 1e9] if cold else [],
    }


def document(*, cold: bool = False, ours: float | None = 0.1) -> dict[str, Any]:
    rows = [
        row("tensorflow", "TensorFlow", 2.0, 4.0 if cold else None),
        row("keras", "Keras", 3.0, 5.0 if cold else None),
        row("litert", "LiteRT", 0.09, 0.5 if cold else None),
        row("onnxruntime", "ONNX Runtime", 0.01, outcome="differs"),
        row("openvino", "OpenVINO", None),
        row("glowplug-native", "Glowplug native", 0.3),
        row("glowplug-litert", "Glowplug litert", ours, 0.4 if cold else None),
    ]
    machine = {"cpus": 2, "versions": {"tensorflow-cpu": "2.21.0"}}
    return {
        "machine": machine,
        "rounds": 7,
        "scenarios": {"dense": {"model": "dense.keras", "chosen": "glowplug-litert", "rows": rows}},
    }


def test_every_peer_has_a_column_and_the_soonest_is_in_bold(readme_table: ModuleType) -> None:
    lines = readme_table.scenarios(document())
    assert lines[0].startswith("| process start to first prediction | TensorFlow | Keras | LiteRT | ONNX Runtime |")
    assert lines[2] == (
        "| small dense network | 2.00 s | 3.00 s | **0.09 s** | other answers | fails | 0.10 s (litert) "
        "| **20.0x sooner** |"
    )
    assert all(line.count("|") == lines[0].count("|") for line in lines[1:3])
    assert "Medians of 7 fresh processes" in lines[-1]
    assert "OpenVINO cannot run some of them. " in f"{lines[-1]} "
    assert "ONNX Runtime answers something else for some of them." in lines[-1]


def test_a_dropped_page_cache_has_lines_of_its_own(readme_table: ModuleType) -> None:
    lines = readme_table.scenarios(document(cold=True))
    assert lines[3] == (
        "| small dense network, page cache dropped | 4.00 s | 5.00 s | 0.50 s | other answers | fails "
        "| **0.40 s** (litert) | **10.0x sooner** |"
    )


def test_without_an_answer_of_ours_there_is_no_table(readme_table: ModuleType) -> None:
    with pytest.raises(SystemExit, match="did not answer in scenario dense"):
        readme_table.scenarios(document(ours=None))


def test_every_scenario_has_a_title(readme_table: ModuleType) -> None:
    tree = (BENCH / "scenarios" / "sources.py").read_text(encoding="utf-8")
    for name in ("dense", "resnet50", "efficientnet_b0", "mobilenet_v3", "encoder", "lstm_text", "jpeg_image"):
        assert f'"{name}"' in tree
        assert name in readme_table.TITLES
