"""A model in the forms that others take, and what one installs for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from glowplug.bench.contestant import Contestant
from glowplug.bench.peers import PEERS, find_interpreter
from glowplug.bench.preparation import NotPreparedError, Preparation, Source, disk_bytes, installed

_NOWHERE = Path("/nonexistent")


def test_names_of_peers_are_distinct_and_their_scripts_are_there():
    import glowplug.bench.contestants as scripts

    assert len({peer.name for peer in PEERS}) == len(PEERS)
    folder = Path(scripts.__path__[0])
    assert {peer.script for peer in PEERS} <= {path.stem for path in folder.glob("*.py")}


def test_an_environment_of_its_own_comes_first(tmp_path):
    python = tmp_path / "peers-some" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert find_interpreter("some", "json", tmp_path) == python
    assert find_interpreter("other", "json", tmp_path) == Path(sys.executable)
    assert find_interpreter("", "json", tmp_path) == Path(sys.executable)
    assert find_interpreter("other", "no_such_module", tmp_path) is None


def test_a_peer_that_is_not_installed_is_a_row(tmp_path):
    openvino = next(peer for peer in PEERS if peer.name == "openvino")
    preparation = Preparation(Source(tmp_path, tmp_path, "s"), tmp_path, _NOWHERE, limit_s=10)
    row = preparation.contestant(openvino)
    if isinstance(row, Contestant):
        pytest.skip("openvino is installed here")
    assert row.outcome == "absent"
    assert "openvino is not installed" in row.reason


def test_a_conversion_that_fails_is_tried_once_and_a_row(tmp_path):
    tries = tmp_path / "tries"
    python = tmp_path / "peers-litert" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    converter = tmp_path / "peers-tf2onnx" / "bin" / "python"
    converter.parent.mkdir(parents=True)
    converter.write_text(f"#!/bin/sh\necho x >> {tries}\necho 'no such op' >&2\nexit 1\n")
    converter.chmod(0o755)
    preparation = Preparation(Source(tmp_path, tmp_path, "s"), tmp_path, tmp_path, limit_s=60)
    for _ in range(2):
        with pytest.raises(NotPreparedError, match="tf2onnx: no such op"):
            preparation.form("onnx")
    assert tries.read_text() == "x\n"


def test_a_conversion_that_hangs_is_ended(tmp_path):
    converter = tmp_path / "peers-tf2onnx" / "bin" / "python"
    converter.parent.mkdir(parents=True)
    converter.write_text("#!/bin/sh\nexec cat /dev/zero > /dev/null\n")
    converter.chmod(0o755)
    preparation = Preparation(Source(tmp_path, tmp_path, "s"), tmp_path, tmp_path, limit_s=0.2)
    with pytest.raises(NotPreparedError, match="did not end within"):
        preparation.form("onnx")


def test_sizes_on_disk(tmp_path):
    (tmp_path / "model.xml").write_bytes(b"12")
    (tmp_path / "model.bin").write_bytes(b"345")
    assert disk_bytes(tmp_path / "model.xml") == 5
    assert disk_bytes(tmp_path / "model.bin") == 3
    assert disk_bytes(tmp_path) == 5


def test_what_is_installed_counts_with_what_it_asks_for():
    def size(*distributions: str) -> tuple[int | None, dict[str, str]]:
        return installed(Path(sys.executable), distributions)

    numpy, versions = size("numpy")
    ours, _ = size("no-such-thing|glowplug")
    assert set(versions) == {"numpy"}
    assert numpy is not None
    assert ours is not None
    assert numpy > 1_000_000
    assert ours > numpy + 100_000
