"""Wherever a user names a file, what is no ordinary file is refused in one line, without waiting for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from glowplug.cli.arrays import read_input
from glowplug.core.errors import GlowplugError
from glowplug.core.profile_json import read_profile
from glowplug.serve.wire.text_config import read_text
from tests.core.test_regular_files import KINDS, make

READERS: dict[str, Callable[[Path], object]] = {
    "input.npy": lambda path: read_input(path, None),
    "input.json": lambda path: read_input(path, None),
    "profile.json": read_profile,
    "models.config": functools.partial(read_text, name="ModelServerConfig"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_it_is_refused_in_one_line(name: str, kind: str, tmp_path: Path) -> None:
    make(kind, tmp_path / name)
    with pytest.raises(GlowplugError) as caught:
        READERS[name](tmp_path / name)
    assert "\n" not in str(caught.value)
    assert "not a file" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.tensorflow
def test_weights_and_warm_up_files(kind: str, tmp_path: Path) -> None:
    from glowplug.convert.calls.warmup_files import read_requests
    from glowplug.train.weights.regions import RegionFile

    make(kind, tmp_path / "x.npz")
    with pytest.raises(GlowplugError, match="warm-up file"):
        read_requests(tmp_path / "x.npz", {})
    with pytest.raises(GlowplugError, match="not a file"):
        RegionFile(tmp_path / "x.npz")


def test_an_array_that_says_it_is_huge(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "x.npy"
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)})
    with pytest.raises(GlowplugError, match="cannot be read"):
        read_input(path, None)
