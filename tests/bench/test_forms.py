"""Forms that an earlier benchmark made, and when they are made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowplug.bench.forms import KeptForms, identity_of, package_identity
from glowplug.bench.preparation import NotPreparedError, Preparation, Source
from glowplug.convert import example as examples


def test_what_was_kept_is_found_by_the_next_who_looks(tmp_path: Path) -> None:
    made = tmp_path / "model.onnx"
    made.write_bytes(b"x")
    KeptForms(tmp_path).put("onnx", "a", path=str(made))
    KeptForms(tmp_path).put("openvino", "a", failed="no such op")
    kept = KeptForms(tmp_path)
    assert kept.get("onnx", "a") == {"identity": "a", "path": str(made)}
    assert kept.get("openvino", "a") == {"identity": "a", "failed": "no such op"}
    assert kept.get("onnx", "b") is None
    assert kept.get("tflite", "a") is None
    made.unlink()
    assert kept.get("onnx", "a") is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 1}', '{"version": 2, "forms": {}}', '{"version": 1, "forms": 3}']
)
def test_a_record_that_cannot_be_understood_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "forms.json").write_text(text)
    assert KeptForms(tmp_path).get("onnx", "a") is None


def test_an_identity_follows_the_files(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a").write_bytes(b"1")
    before = identity_of(tmp_path / "m", "signature")
    assert identity_of(tmp_path / "m", "signature") == before
    assert identity_of(tmp_path / "m", "other") != before
    assert identity_of(tmp_path / "m", None, "signature") != before
    (tmp_path / "m" / "b").write_bytes(b"")
    assert identity_of(tmp_path / "m", "signature") != before
    assert package_identity() == package_identity()


def converter(folder: Path, said: str) -> Path:
    tries = folder / "tries"
    python = folder / "peers-tf2onnx" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho x >> {tries}\n{said}\n")
    python.chmod(0o755)
    return tries


@pytest.mark.parametrize("said", ['for last; do :; done; echo model > "$last"', "echo 'no such op' >&2; exit 1"])
def test_a_conversion_is_not_repeated_by_the_next_benchmark(tmp_path: Path, said: str) -> None:
    tries = converter(tmp_path, said)
    model = tmp_path / "model"
    model.mkdir()
    (model / "saved_model.pb").write_bytes(b"1")
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def form() -> str:
        preparation = Preparation(Source(model, model, "s"), scratch, tmp_path, limit_s=60)
        try:
            return preparation.form("onnx").read_text()
        except NotPreparedError as error:
            return str(error)

    assert form() == form()
    assert tries.read_text() == "x\n"
    (model / "saved_model.pb").write_bytes(b"22")
    form()
    assert tries.read_text() == "x\nx\n"


def test_an_example_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def make(model: Path, scratch: Path, **_: object) -> examples.Example:
        made.append(scratch)
        (scratch / "example.json").write_text('{"saved_model": "m", "signature": "s", "inputs": []}')
        return examples.Example(Path("m"), "s", ())

    monkeypatch.setattr(examples, "make_example", make)
    model = tmp_path / "model.keras"
    model.write_bytes(b"1")
    kept = tmp_path / "kept"
    first = examples.make_kept_example(model, kept, limit_s=5.0)
    assert examples.make_kept_example(model, kept, limit_s=5.0) == first
    assert len(made) == 1
    (first[0] / "example.json").unlink()
    (first[0] / "half").write_bytes(b"of an export that was interrupted")
    assert examples.make_kept_example(model, kept, limit_s=5.0) == first
    assert not (first[0] / "half").exists()
    model.write_bytes(b"22")
    assert examples.make_kept_example(model, kept, limit_s=5.0)[0] != first[0]
    assert len(made) == 3
