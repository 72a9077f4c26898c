"""Event files: what is written is read, and what a killed process left half written is not."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from glowplug.probe import entry_files, events

ENTRY = Path(entry_files.__file__).parent / "entry"


@pytest.fixture
def recorder_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ENTRY))
    yield importlib.import_module("_glowplug_shim.recorder")
    for name in [name for name in sys.modules if name.startswith("_glowplug_shim")]:
        del sys.modules[name]


def test_codes_agree(recorder_module: ModuleType) -> None:
    for name in ("BEGIN", "END", "SPAN", "FACT", "ROUND", "OPS", "ASSIGNED", "EVENT"):
        assert getattr(recorder_module, name) == getattr(events, name)


def test_round_trip(recorder_module: ModuleType, tmp_path: Path) -> None:
    recorder = recorder_module.Recorder(str(tmp_path), "exec")
    number = recorder.begin("import", "json", {"kind": "module"})
    recorder.end(number, {"file": "json.py"})
    recorder.span(5, 9, "build", "layer", {"kind": "layer"})
    recorder.note("something")
    (image,) = events.read_images(tmp_path)
    assert image.pid == recorder.pid
    assert image.fact("process")["how"] == "exec"
    assert list(image.facts("note")) == ["something"]
    begin, end, span = (event for event in image.events if event[0] != events.FACT)
    assert (begin[0], begin[1], begin[4], begin[5]) == (events.BEGIN, number, "import", "json")
    assert (end[0], end[1], end[3]) == (events.END, number, {"file": "json.py"})
    assert span[2:] == (5, 9, "build", "layer", {"kind": "layer"})


def test_many_chunks(recorder_module: ModuleType, tmp_path: Path) -> None:
    recorder = recorder_module.Recorder(str(tmp_path), "exec")
    for number in range(3000):
        recorder.fact("n", (number, "x" * 900))
    assert len(list(tmp_path.iterdir())) == 3
    (image,) = events.read_images(tmp_path)
    assert [value[0] for value in image.facts("n")] == list(range(3000))


def test_too_large_or_odd_events_are_dropped(recorder_module: ModuleType, tmp_path: Path) -> None:
    recorder = recorder_module.Recorder(str(tmp_path), "exec")
    recorder.fact("large", "x" * (2 << 20))
    recorder.fact("odd", object())
    recorder.fact("good", 1)
    (image,) = events.read_images(tmp_path)
    assert [event[1] for event in image.events] == ["process", "good"]


def test_recording_stops_where_there_is_no_room(recorder_module: ModuleType, tmp_path: Path) -> None:
    recorder = recorder_module.Recorder(str(tmp_path / "missing"), "exec")
    recorder.fact("nobody", "sees this")
    assert not (tmp_path / "missing").exists()


def test_threads_write_whole_events(recorder_module: ModuleType, tmp_path: Path) -> None:
    recorder = recorder_module.Recorder(str(tmp_path), "exec")

    def write(thread: int) -> None:
        for number in range(2000):
            recorder.fact("n", (thread, number))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.note("last")  # takes along what was still queued
    (image,) = events.read_images(tmp_path)
    assert sorted(image.facts("n")) == [(thread, number) for thread in range(4) for number in range(2000)]


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 17])
def test_a_torn_frame_ends_the_file(recorder_module: ModuleType, tmp_path: Path, cut: int) -> None:
    recorder = recorder_module.Recorder(str(tmp_path), "exec")
    recorder.note("whole")
    (path,) = tmp_path.iterdir()
    end = recorder._position
    recorder.note("torn apart by a signal")
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[: end + cut])
    (image,) = events.read_images(tmp_path)
    assert list(image.facts("note")) == ["whole"]


def test_foreign_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "1.2.0").write_bytes(b"\xff\xff\xff\xff garbage")
    (image,) = events.read_images(tmp_path)
    assert image.events == ()
