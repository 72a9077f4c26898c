"""What is no model is refused before TensorFlow is imported."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from glowplug.convert.source.sources import check_path
from glowplug.core.errors import NotAModelError, UsageError


def make(folder: Path, kind: str) -> Path:
    path = folder / kind
    if kind.startswith("saved_model"):
        path.mkdir()
        (path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00" if kind == "saved_model" else b"hello")
    elif kind == "folder":
        path.mkdir()
    elif kind == "zip.keras":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("config.json", "{}")
    elif kind != "missing":
        block = b"\0" * 1024 if kind == "block.h5" else b""
        path.write_bytes(block + b"\x89HDF\r\n\x1a\n" if kind.endswith(("file.h5", "block.h5")) else b"hello")
    return path


@pytest.mark.parametrize("kind", ["saved_model", "zip.keras", "file.h5", "block.h5"])
def test_what_may_be_a_model(tmp_path, kind):
    check_path(make(tmp_path, kind))


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("saved_model_of_text", "its saved_model.pb is no SavedModel"),
        ("folder", "give a SavedModel directory"),
        ("text.keras", "a .keras file is a zip archive"),
        ("text.h5", "this is no HDF5 file"),
        ("text.hdf5", "this is no HDF5 file"),
        ("text.onnx", "give a SavedModel directory"),
    ],
)
def test_what_is_no_model(tmp_path, kind, part):
    with pytest.raises(NotAModelError, match=part):
        check_path(make(tmp_path, kind))


def test_a_path_that_leads_nowhere(tmp_path):
    with pytest.raises(UsageError, match="there is no such model"):
        check_path(make(tmp_path, "missing"))


def test_pack_refuses_before_it_imports_tensorflow(tmp_path):
    code = (
        "import sys, glowplug\nfrom glowplug.core.errors import NotAModelError\n"
        "try:\n    glowplug.pack(sys.argv[1], sys.argv[2])\n"
        "except NotAModelError:\n    print('tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, make(tmp_path, "text.keras"), tmp_path / "out.glow"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert not (tmp_path / "out.glow").exists()
