"""Every kind of model that users bring becomes a `litert` bundle with the same answers, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert")

from tests import zoo

from glowplug.convert.job import Job, Order
from glowplug.convert.litert import bundles
from glowplug.core.disk.files import new_directory
from glowplug.core.errors import OutputMismatchError, UnsupportedModelError

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

TAKEN = ("dense", "conv_bn", "attention", "two_in_two_out", "normalization", "uint8_image", "counter", "control_flow")


@pytest.mark.parametrize("name", sorted(zoo.BUILDERS))
def test_a_model_is_taken_or_refused_with_the_reason(
    name: str, saved_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "SMALL_BYTES", 0)  # so that LiteRT's faster interface is tried on every one
    refusal = ""
    try:
        with new_directory(tmp_path / "m.glow") as unfinished:
            Job(Order(unfinished, saved_model(name), engine="litert"), lambda stage: None).run()
    except (UnsupportedModelError, OutputMismatchError) as error:
        refusal = str(error)
    assert not (refusal and name in TAKEN), refusal
    assert "\n" not in refusal
    assert "died" not in refusal
    assert (tmp_path / "m.glow").exists() is not bool(refusal)
