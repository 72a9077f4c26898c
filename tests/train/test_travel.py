"""The second machine restores what the first one traced: a trace cache at a URL, and one that can only be read."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from glowplug.store.signature import make_key_pair
from glowplug.train.verify import probation
from glowplug.train.verify.probation import Probation

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key_pair(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "storage").as_uri()


class Machine:
    """A machine: a cache folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self._folder, self._monkeypatch, self._caplog = folder, monkeypatch, caplog
        self.said: list[str] = []

    def train(self, place: Any, *, width: int = 5, **options: Any) -> tuple[Any, dict[str, int]]:
        from glowplug import train
        from tests.train import models

        self._monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(self._folder))
        self._caplog.clear()
        with self._caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(place, **options):
            result = models.trained(models.small(width=width))
            counts = train.counts()
        self.said = [record.message for record in self._caplog.records]
        return result, counts


@pytest.fixture
def machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> tuple[Machine, Machine]:
    monkeypatch.delenv("GLOWPLUG_TRUSTED_KEYS", raising=False)
    return tuple(Machine(tmp_path / name, monkeypatch, caplog) for name in ("first", "second"))  # type: ignore[return-value]


TRACED = {"traced": 1, "stored": 1}


def test_the_second_machine_restores(machines: tuple[Machine, Machine], url: str, key: Path) -> None:
    first, second = machines
    expected, counts = first.train(url, sign_key=key)
    assert counts == TRACED
    assert second.train(url, trusted_keys=[f"{key}.pub"]) == (expected, {"restored": 1, "fetched": 1})
    assert second.said == []
    assert second.train(url, trusted_keys=[f"{key}.pub"]) == (expected, {"restored": 1})  # from its own folder


def test_an_unsigned_trace_is_not_used_unless_the_user_says_so(
    machines: tuple[Machine, Machine], url: str, key: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = machines
    expected, _ = first.train(url, trust=True)
    stored = sorted((tmp_path / "storage").rglob("*"))
    assert second.train(url, read_only=True, trusted_keys=[f"{key}.pub"], sign_key=key) == (expected, TRACED)
    (said,) = second.said
    assert "signed" in said
    assert sorted((tmp_path / "storage").rglob("*")) == stored  # it is only read
    monkeypatch.setenv("GLOWPLUG_TRACE_CACHE_DIR", url)  # as `glowplug run` finds it
    assert second.train(None, trust=True) == (expected, {"restored": 1, "fetched": 1})


def test_a_miss_says_what_differs_from_the_nearest_trace_there(
    machines: tuple[Machine, Machine], url: str, key: Path
) -> None:
    first, second = machines
    first.train(url, sign_key=key)
    _, counts = second.train(url, width=7, trusted_keys=[f"{key}.pub"])
    assert counts == TRACED
    assert len(second.said) == 1
    assert "traced again, because the key changed: model" in second.said[0]


@pytest.mark.parametrize("place", ["made-up://host/traces", "https://user:hunter2@host/traces"])
def test_a_url_that_cannot_be_used_does_not_stop_a_program(place: str, caplog: pytest.LogCaptureFixture) -> None:
    from glowplug import train

    train.enable(place)
    (said,) = [record.message for record in caplog.records]
    assert "for this process alone" in said
    assert "hunter2" not in said


def test_a_storage_that_fails_does_not_stop_a_program(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    first, _ = machines
    assert first.train((tmp_path / "file" / "traces").as_uri(), trust=True)[1] == TRACED
    assert any("on this machine alone" in text for text in first.said)


def test_a_folder_that_is_only_read_restores_and_takes_nothing(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    """As in a container image: others may read it, nobody may write."""
    first, second = machines
    folder = tmp_path / "baked"
    expected, _ = first.train(folder)
    folder.chmod(0o555)
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted((path, path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in folder.rglob("*"))
    assert second.train(folder) == (expected, {"restored": 1})
    assert second.train(folder, width=7)[1] == TRACED
    assert sorted((path, path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in folder.rglob("*")) == before


def test_counts_in_a_folder_that_is_only_read_stay_as_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "probation")
    monkeypatch.setattr(probation, "is_chosen", lambda: False)
    assert Probation(tmp_path, "a", read_only=True).restored()  # nobody has looked at it
    verified = Probation(tmp_path, "a")
    verified.restored()
    verified.found_right()
    kept = (tmp_path / "a.restores").read_bytes()
    for _ in range(30):
        assert not Probation(tmp_path, "a", read_only=True).restored()
    monkeypatch.setattr(probation, "is_chosen", lambda: True)
    chosen = Probation(tmp_path, "a", read_only=True)
    assert chosen.restored()
    chosen.found_right()
    chosen.forget()
    assert (tmp_path / "a.restores").read_bytes() == kept


WORKER = """
import sys, time
from collections import Counter
from pathlib import Path
from glowplug.store.location import parse
from glowplug.train.notes import Notes
from glowplug.train.trace.entries import Entries
from glowplug.train.trace.entry_store import DirectoryStore
from glowplug.train.trace.key import Key
from glowplug.train.travel.elsewhere import RemoteCache
from glowplug.train.travel.remote import RemoteTraces
from glowplug.train.travel.terms import Terms

url, folder = sys.argv[1:]
counts = Counter()
elsewhere = RemoteCache(RemoteTraces(parse(url), Terms(unsigned=True)), Notes(), counts, read_only=False)
entries = Entries(DirectoryStore(Path(folder)), Notes(), 1 << 30, elsewhere)
key = Key({"graph": "1"})
if "first" in folder:
    entries.keep(key, {}, {}, {"graph": bytes(50_000_000)})
    elsewhere.finish()
else:
    print("ready", flush=True)
    sys.stdin.readline()
    print(len(entries.find(key).blobs["graph"]), counts["fetched"])
"""


def test_of_many_workers_on_a_machine_one_fetches(tmp_path: Path, url: str) -> None:
    def start(folder: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, url, str(tmp_path / folder)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with start("first") as first:
        assert first.wait(60) == 0
    workers = [start("second") for _ in range(4)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    told = [worker.communicate(timeout=60)[0].split() for worker in workers]
    assert [size for size, _ in told] == ["50000000"] * 4
    assert sorted(int(fetched) for _, fetched in told) == [0, 0, 0, 1]
