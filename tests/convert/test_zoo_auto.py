"""Every model of the zoo under `--engine auto`: proven equal, and a reason wherever LiteRT is no candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests import zoo

import glowplug

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.mark.parametrize("name", sorted(zoo.BUILDERS))
def test_auto_chooses_and_says_why(name: str, saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    if name == "legacy_keras":
        pytest.importorskip("tf_keras")
    packed = glowplug.pack(saved_model(name), tmp_path / "m.glow")
    assert packed.manifest.equivalence["calls"]
    if packed.manifest.engine == "savedmodel":
        assert packed.reason
        return
    litert = packed.manifest.measured["engines"]["litert"]
    assert litert.get("failed") or litert["first_ns"] > 0
    if packed.manifest.engine == "litert":
        assert packed.manifest.measured["engines"]["native"]
    with glowplug.load(tmp_path / "m.glow") as model:
        assert model.engine == packed.manifest.engine
