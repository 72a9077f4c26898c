"""Traces travel: to a URL and back, into one file and out of it. Made by hand: no TensorFlow is needed for it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from glowplug.cli.main import main
from glowplug.core.errors import SignatureError, StorageError
from glowplug.store.location import parse
from glowplug.store.signature import make_key_pair
from glowplug.train.notes import Notes
from glowplug.train.trace import entry
from glowplug.train.trace.entry_store import DirectoryStore
from glowplug.train.trace.key import from_texts
from glowplug.train.travel import archive
from glowplug.train.travel.elsewhere import RemoteCache
from glowplug.train.travel.remote import RemoteTraces
from glowplug.train.travel.terms import Terms
from tests.components.seaweedfs import SeaweedFS

Run = Callable[..., tuple[int, dict[str, object], str]]


def make(store: DirectoryStore, number: int) -> str:
    key = from_texts({"model": {"model.rate": str(number)}})
    info = {"label": f"step {number}", "function": "train", "inputs": [], "because": [], "nodes": 1, "captures": 0}
    store.write(key.digest, entry.encode(key, info, {}, {"f": bytes(100)}))
    return key.digest


@pytest.fixture
def here(tmp_path: Path) -> Path:
    store = DirectoryStore(tmp_path / "here")
    for number in (1, 2):
        make(store, number)
    return store.path


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "storage" / "traces").as_uri()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key_pair(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("GLOWPLUG_TRUSTED_KEYS", raising=False)

    def call(folder: Path, *words: object) -> tuple[int, dict[str, object], str]:
        code = main(["cache", *map(str, words), "--cache-dir", str(folder), "--json"])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if printed.out else {}, printed.err

    return call


def entries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.trace")}


@pytest.mark.parametrize("way", ["url", "file"])
def test_there_and_back_with_a_signature(way: str, run: Run, here: Path, there: Path, url: str, key: Path) -> None:
    place = url if way == "url" else here.parent / "traces.tar"
    out, back = ("push", "pull") if way == "url" else ("export", "import")
    code, told, _ = run(here, out, place, "--sign", key)
    assert (code, len(told["taken"])) == (0, 2)
    code, told, _ = run(there, back, place, "--trust", f"{key}.pub")
    assert (code, len(told["taken"]), told["refused"]) == (0, 2, {})
    assert entries(there) == entries(here)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in there.glob("*.trace"))


def test_over_s3(run: Run, here: Path, there: Path, s3: SeaweedFS, key: Path) -> None:
    assert run(here, "push", s3.url("traces"), "--sign", key)[0] == 0
    assert run(there, "pull", s3.url("traces"), "--trust", f"{key}.pub")[0] == 0
    assert entries(there) == entries(here)
    assert len(run(here, "push", s3.url("traces"), "--sign", key)[1]["known"]) == 2


@pytest.mark.parametrize("way", ["url", "file"])
def test_without_a_signature_it_takes_a_word(way: str, run: Run, here: Path, there: Path, url: str, key: Path) -> None:
    place = url if way == "url" else here.parent / "traces.tar"
    out, back = ("push", "pull") if way == "url" else ("export", "import")
    assert run(here, out, place)[0] == 0
    for trusting in ([], ["--trust", f"{key}.pub"]):
        code, told, err = run(there, back, place, *trusting)
        assert (code, len(told["refused"])) == (4, 2)
        assert "signed" in err
        assert entries(there) == {}
    assert run(there, back, place, "--no-signature")[0] == 0
    assert entries(there) == entries(here)


def test_only_what_is_missing_is_moved(run: Run, here: Path, there: Path, url: str, key: Path) -> None:
    run(here, "push", url, "--sign", key)
    make(DirectoryStore(here), 3)
    code, told, _ = run(here, "push", url, "--sign", key)
    assert (len(told["taken"]), len(told["known"])) == (1, 2)
    run(there, "pull", url, "--trust", f"{key}.pub")
    assert len(run(there, "pull", url, "--trust", f"{key}.pub")[1]["known"]) == 3
    assert code == 0


def test_traces_that_are_there_can_be_signed_later(run: Run, here: Path, there: Path, url: str, key: Path) -> None:
    run(here, "push", url)
    assert len(run(here, "push", url, "--sign", key)[1]["taken"]) == 2
    assert run(there, "pull", url, "--trust", f"{key}.pub")[0] == 0


def test_an_altered_trace_is_refused_and_the_others_come(
    run: Run, here: Path, there: Path, url: str, key: Path, tmp_path: Path
) -> None:
    run(here, "push", url, "--sign", key)
    first, second = sorted((tmp_path / "storage" / "traces").glob("*.trace"))
    data = first.read_bytes()
    first.unlink()
    first.write_bytes(data[:-1] + b"!")
    code, told, _ = run(there, "pull", url, "--trust", f"{key}.pub")
    assert code == 0
    assert told["taken"] == [second.stem]
    assert list(told["refused"]) == [first.stem]


def test_a_signed_trace_under_another_name_is_refused(
    run: Run, here: Path, there: Path, url: str, key: Path, tmp_path: Path
) -> None:
    run(here, "push", url, "--sign", key)
    first, second = sorted((tmp_path / "storage" / "traces").glob("*.trace"))
    second.unlink()
    second.write_bytes(first.read_bytes())
    _, told, _ = run(there, "pull", url, "--trust", f"{key}.pub")
    assert "another key" in told["refused"][second.stem]


def member(name: str, data: bytes = b"x", **values: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in values.items():
        setattr(info, field, value)
    return info, data


HOSTILE = {
    "a path outside": member("../evil.trace"),
    "an absolute path": member("/tmp/evil"),
    "a link": member("a" * 64 + ".trace", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "something else": member("readme.txt"),
    "an empty entry": member("a" * 64 + ".trace", b""),
    "a long signature": member(f"signatures/{'a' * 64}.{'b' * 16}", bytes(1000)),
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_a_hostile_file_is_refused(case: str, run: Run, there: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.tar"
    with tarfile.open(path, "w") as made:
        info, data = HOSTILE[case]
        made.addfile(info, io.BytesIO(data))
    code, _, err = run(there, "import", path, "--no-signature")
    assert code == 4
    assert "something else" in err
    assert list(there.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"noise" * 300, b"\0" * 10])
def test_what_is_no_file_of_traces(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "traces.tar"
    path.write_bytes(data)
    store = DirectoryStore(tmp_path / "there")
    with pytest.raises(StorageError):
        archive.take_in(path, store, Terms(unsigned=True))
    assert store.items() == []


def test_a_file_that_is_cut_off_gives_no_half_trace(here: Path, there: Path, tmp_path: Path) -> None:
    path = tmp_path / "traces.tar"
    archive.export(DirectoryStore(here), path, Terms())
    whole = path.read_bytes()
    for end in range(0, len(whole), 300):
        path.write_bytes(whole[:end])
        store = DirectoryStore(there)
        with contextlib.suppress(StorageError):
            archive.take_in(path, store, Terms(unsigned=True))
        assert entries(there).items() <= entries(here).items()


def test_equal_traces_make_equal_files_which_are_not_replaced_unasked(run: Run, here: Path, tmp_path: Path) -> None:
    path = tmp_path / "traces.tar"
    assert run(here, "export", path)[0] == 0
    first = path.read_bytes()
    assert run(here, "export", path)[0] == 2
    assert run(here, "export", path, "--force")[0] == 0
    assert path.read_bytes() == first


def test_what_cannot_be_said_is_said(run: Run, here: Path, tmp_path: Path) -> None:
    for words, code in (
        (["push"], 2),
        (["import"], 2),
        (["push", "made-up://host/a"], 4),
        (["push", "https://user:hunter2@host/a"], 4),
        (["import", tmp_path / "none"], 4),
        (["export", tmp_path / "no" / "folder"], 4),
        (["push", tmp_path.as_uri(), "--sign", tmp_path / "none"], 4),
    ):
        found, _, err = run(here, *words)
        assert found == code, words
        assert "hunter2" not in err
        assert len(err.splitlines()) == 1


def test_a_damaged_trace_stays_here(run: Run, here: Path, url: str) -> None:
    next(here.glob("*.trace")).write_bytes(b"garbage")
    code, told, err = run(here, "push", url)
    assert code == 0
    assert len(told["taken"]) == len(told["refused"]) == 1
    assert "left out" in err


def test_an_upload_that_fails_meanwhile_does_not_end_the_program(tmp_path: Path) -> None:
    """The thread that stores may give up while the program waits for an answer."""
    notes = Notes()
    remote = RemoteTraces(parse((tmp_path / "traces").as_uri()), Terms(unsigned=True))
    cache = RemoteCache(remote, notes, Counter(), read_only=True)

    def fetch(name: str) -> bytes | None:
        cache._give_up(StorageError("the other thread failed"))
        raise SignatureError("not signed")

    remote.fetch = fetch  # type: ignore[method-assign]
    assert cache.find("a" * 64) is None
    assert cache.find("b" * 64) is None
    assert cache.headers(5) == []


def test_a_program_does_not_wait_for_its_traces_as_long_as_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    location = parse("http://127.0.0.1:9/traces")
    monkeypatch.setenv("GLOWPLUG_RETRIES", "8")
    assert RemoteTraces(location, Terms(), retries=2)._place.backend._retries == 2
    assert RemoteTraces(location, Terms())._place.backend._retries == 8


def test_a_named_pipe_is_no_file_of_traces(run: Run, there: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code, out, err = run(there, "import", tmp_path / "pipe", "--no-signature")
    assert (code, out) == (4, {})
    assert "a named pipe, not a file" in err


@pytest.mark.parametrize("action", ["push", "export"])
def test_without_a_trace_cache_there_is_nothing_to_take_elsewhere(action: str, run: Run, tmp_path: Path) -> None:
    code, out, err = run(tmp_path / "none", action, tmp_path / "out")
    assert (code, out) == (2, {})
    assert "there is no trace cache yet" in err
    assert list(tmp_path.iterdir()) == []
