"""A cache that is damaged, foreign or cannot be written never breaks a run."""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow


def _run(cache, caplog, models, train):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(cache):
        result = models.trained(models.small())
        return result, train.counts(), [record.message for record in caplog.records]


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "not ours"])
def test_a_damaged_entry_is_ignored_and_replaced(damage, tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    cache = tmp_path / "cache"
    expected, counts, _ = _run(cache, caplog, models, train)
    assert counts == {"traced": 1, "stored": 1}
    (entry,) = cache.glob("*.trace")
    whole = entry.read_bytes()
    middle = len(whole) // 2
    entry.write_bytes(
        {
            "truncated": whole[:-10],
            "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "empty": b"",
            "not ours": b"#!/bin/sh\n" + whole,
        }[damage]
    )
    result, counts, said = _run(cache, caplog, models, train)
    assert (result, counts) == (expected, {"traced": 1, "stored": 1})
    assert len(said) == 1
    assert "damaged" in said[0]
    assert _run(cache, caplog, models, train) == (expected, {"restored": 1}, [])


def test_a_directory_that_others_can_reach_is_not_used(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    cache = tmp_path / "cache"
    cache.mkdir(mode=0o755)
    cache.chmod(0o755)
    result, counts, said = _run(cache, caplog, models, train)
    assert counts == {"traced": 1, "stored": 1}
    assert ["others can reach" in text for text in said] == [True]
    assert not list(cache.iterdir())
    assert result == models.trained(models.small())


def test_an_entry_that_others_can_write_is_not_used(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    cache = tmp_path / "cache"
    _run(cache, caplog, models, train)
    (entry,) = cache.glob("*.trace")
    entry.chmod(0o666)
    _, counts, said = _run(cache, caplog, models, train)
    assert counts["traced"] == 1
    assert "others can reach" in said[0]


def test_a_link_instead_of_an_entry_is_not_followed(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    cache = tmp_path / "cache"
    _run(cache, caplog, models, train)
    (entry,) = cache.glob("*.trace")
    elsewhere = tmp_path / "elsewhere"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)
    _, counts, said = _run(cache, caplog, models, train)
    assert counts["traced"] == 1
    assert said


def test_a_cache_that_cannot_be_written_still_serves_this_process(tmp_path, caplog, monkeypatch):
    from glowplug import train
    from glowplug.core.disk import files
    from tests.train import models

    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(files, "write_file", refuse)
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        first = models.trained(models.small())
        assert models.trained(models.small()) == first
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert ["for this process alone" in record.message for record in caplog.records] == [True]


def test_a_folder_that_cannot_be_made(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    (tmp_path / "file").write_text("")
    result, counts, said = _run(tmp_path / "file" / "cache", caplog, models, train)
    assert counts == {"traced": 1, "stored": 1}
    assert len(said) == 1
    assert result == models.trained(models.small())


def test_what_is_written_is_private(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    previous = os.umask(0)
    try:
        _run(tmp_path / "cache", caplog, models, train)
    finally:
        os.umask(previous)
    for path in [tmp_path / "cache", *(tmp_path / "cache").glob("*.trace")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_a_graph_that_does_not_fit_is_traced_instead(tmp_path, caplog, monkeypatch):
    from glowplug import train
    from glowplug.train.trace import cached, restore
    from tests.train import models

    cache = tmp_path / "cache"
    expected, _, _ = _run(cache, caplog, models, train)
    stored = set(cache.glob("*.trace"))
    monkeypatch.setattr(cached, "add_functions", lambda entry: "a_function_that_is_not_there")
    result, counts, said = _run(cache, caplog, models, train)
    assert result == expected
    assert counts == {"traced": 1}
    assert "did not fit" in said[0]
    assert len(stored - set(cache.glob("*.trace"))) == 1, "the one that did not fit is removed"
    assert restore.add_functions is not cached.add_functions


def test_a_graph_with_an_operation_that_is_not_loaded_is_traced_instead(tmp_path, caplog):
    from glowplug import train
    from glowplug.train.trace import entry
    from tests.train import models

    cache = tmp_path / "cache"
    expected, _, _ = _run(cache, caplog, models, train)
    (path,) = cache.glob("*.trace")
    stored = entry.decode(path.read_bytes())
    plan = {**stored.plan, "operations": [*stored.plan["operations"], "OfAnotherLibrary"]}
    path.write_bytes(entry.encode(stored.key(), stored.header.info, plan, stored.blobs))
    result, counts, said = _run(cache, caplog, models, train)
    assert result == expected
    assert counts == {"traced": 1}
    assert "needs the operation OfAnotherLibrary" in said[0]


def test_verify_traces_and_compares(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    cache = tmp_path / "cache"
    expected, _, _ = _run(cache, caplog, models, train)
    with train.enabled(cache, verify=True):
        assert models.trained(models.small()) == expected
        assert train.counts() == {"traced": 1, "verified": 1}


def test_verify_removes_a_trace_that_differs(tmp_path, caplog, monkeypatch):
    from glowplug import train
    from glowplug.train.trace.key import Key
    from tests.train import models

    cache = tmp_path / "cache"
    with monkeypatch.context() as patched, train.enabled(cache):
        # A key that cannot tell two models apart is the mistake that verifying must find.
        patched.setattr(Key, "plus", lambda self, name, value: Key({name: "blind"}, {}))
        models.trained(models.small())
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(cache, verify=True):
        monkeypatch.setattr(Key, "plus", lambda self, name, value: Key({name: "blind"}, {}))
        changed = models.trained(models.small(activation="tanh"))
        assert train.counts() == {"traced": 1, "different": 1}
    monkeypatch.undo()
    assert changed == models.trained(models.small(activation="tanh"))
    assert any("differs" in record.message for record in caplog.records)
    assert not list(cache.glob("*.trace"))


SCRIPT = """
import json, sys
from glowplug import train
train.enable(sys.argv[1])
from tests.train import models
result = models.trained(models.small())
print(json.dumps([result, train.counts()]))
"""


def start(cache, *before):
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    command = [*before, sys.executable, "-c", SCRIPT, str(cache)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(process):
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]
    return *json.loads(printed.splitlines()[-1]), said


def test_two_processes_that_trace_the_same_step_at_once(tmp_path):
    both = [start(tmp_path / "cache") for _ in range(2)]
    (first, _, _), (second, _, _) = map(result_of, both)
    assert first == second
    assert len(list((tmp_path / "cache").glob("*.trace"))) == 1
    assert result_of(start(tmp_path / "cache"))[:2] == (first, {"restored": 1})


def test_a_read_only_folder_serves_what_it_has_and_takes_nothing(tmp_path):
    cache = tmp_path / "cache"
    expected, _, _ = result_of(start(cache))
    shutil.rmtree(cache / "glowplug-xla", ignore_errors=True)
    if os.geteuid() == 0:  # for root only a mount is read-only
        mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        before = ["unshare", "-m", "sh", "-c", mount, str(cache)]
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
            pytest.skip("no mounts here")
    else:
        before = []
        cache.chmod(0o500)
    restored, counts, said = result_of(start(cache, *before))
    assert (restored, counts) == (expected, {"restored": 1})
    assert "glowplug:" not in said
    if before:
        (entry,) = cache.glob("*.trace")
        entry.unlink()
        traced, counts, said = result_of(start(cache, *before))
        assert (traced, counts) == (expected, {"traced": 1, "stored": 1})
        assert "for this process alone" in said
        assert not list(cache.glob("*.trace"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_a_folder_of_someone_else_is_not_used(tmp_path, caplog):
    from glowplug import train
    from tests.train import models

    cache = tmp_path / "cache"
    expected, _, _ = _run(cache, caplog, models, train)
    os.chown(cache, 12345, 12345)
    result, counts, said = _run(cache, caplog, models, train)
    assert (result, counts) == (expected, {"traced": 1, "stored": 1})
    assert ["others can reach" in text for text in said] == [True]
