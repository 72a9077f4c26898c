"""Against a real S3: one download per host, counted at a relay in front of it, and what happens when it fails."""

from __future__ import annotations

import contextlib
import random
import subprocess
from pathlib import Path

import pytest

from glowplug.core.errors import AccessError, ObjectNotFoundError, UnreachableError
from glowplug.store.node_cache.locks import try_exclusive
from glowplug.store.pull import pull
from glowplug.store.push import push
from tests.components.relay import Counts
from tests.store.conftest import MB, contents
from tests.store.test_node_cache import PULL, start

pytest.importorskip("obstore")

PUSH = "import sys, pathlib; from glowplug.store.push import push; push(pathlib.Path(sys.argv[1]), sys.argv[2])"


@pytest.fixture
def url(s3, tmp_path: Path) -> str:
    return s3.url(f"{tmp_path.name}/encoder/1")


def total(model: Path) -> int:
    return sum(map(len, contents(model).values()))


def test_what_was_pushed_comes_back(model, url):
    pushed = push(model, url)
    assert contents(pull(f"{url}@{pushed.digest}")) == contents(model)


def test_a_plain_directory_and_a_plain_file_need_no_push(model, s3, tmp_path):
    import obstore
    from obstore.store import S3Store

    store = S3Store("models", client_options={"allow_http": True})
    for path, data in contents(model).items():
        obstore.put(store, f"{tmp_path.name}/plain/{path}", data)
    assert contents(pull(s3.url(f"{tmp_path.name}/plain"))) == contents(model)
    single = pull(s3.url(f"{tmp_path.name}/plain/weights.bin"))
    assert single.read_bytes() == (model / "weights.bin").read_bytes()
    obstore.put(store, f"{tmp_path.name}/plain/bundle.json", b"changed")
    assert (pull(s3.url(f"{tmp_path.name}/plain")) / "bundle.json").read_bytes() == b"changed"


def test_processes_of_a_host_download_once(model, url, s3_relay):
    push(model, url)
    s3_relay.counts = Counts()
    children = [start(PULL, url) for _ in range(4)]
    outputs = [child.communicate(timeout=120) for child in children]
    assert {child.returncode for child in children} == {0}, outputs
    assert s3_relay.counts.received_bytes < 1.02 * total(model)
    s3_relay.counts = Counts()
    digest = push(model, url).digest
    s3_relay.counts = Counts()
    pull(f"{url}@{digest}")
    assert s3_relay.counts.requests == 0


def test_a_server_that_dies_half_way_and_comes_back(model, url, s3_relay, monkeypatch):
    push(model, url)
    s3_relay.counts = Counts()
    s3_relay.cut_after_bytes = total(model) // 2
    monkeypatch.setenv("GLOWPLUG_RETRIES", "1")
    with pytest.raises(UnreachableError) as caught:
        pull(url)
    assert caught.value.exit_code == 4
    s3_relay.cut_after_bytes = None
    s3_relay.counts = Counts()
    assert contents(pull(url)) == contents(model)
    assert s3_relay.counts.received_bytes < total(model)  # it went on from there


def test_a_cut_connection_is_tried_again(model, url, s3_relay, monkeypatch):
    from glowplug.store.transfer import retrying

    push(model, url)
    s3_relay.counts = Counts()
    s3_relay.cut_after_bytes = total(model) // 3
    monkeypatch.setenv("GLOWPLUG_RETRIES", "20")
    real = retrying.delay_s

    def delay_s(attempt: int) -> float:
        s3_relay.cut_after_bytes = None  # it is back
        return real(0)

    monkeypatch.setattr(retrying, "delay_s", delay_s)
    assert contents(pull(url)) == contents(model)


def test_refusals_are_told_apart(url, s3, s3_relay, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    with pytest.raises(ObjectNotFoundError, match="nothing under this URL"):
        pull(url)
    with pytest.raises(ObjectNotFoundError):
        pull("s3://no-such-bucket/m")
    s3_relay.refuses = True
    with pytest.raises(UnreachableError):
        pull(url)
    s3_relay.refuses = False
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(AccessError, match="AWS_ACCESS_KEY_ID"):
        pull(url)


def test_killed_pushes_and_pulls_leave_nothing_wrong(model, url, s3_relay, node_cache):
    """A few kills at random moments; `bench/store_kill.py` does it two hundred times."""
    choose = random.Random(7)
    s3_relay.bytes_per_s = 20e6
    for number in range(3):
        (model / "bundle.json").write_text(str(number))
        pushing = start(PUSH, str(model), url)
        with contextlib.suppress(subprocess.TimeoutExpired):
            pushing.wait(choose.uniform(0.1, 0.4))
        pushing.kill()
        pushing.communicate()
        push(model, url)
        pulling = [start(PULL, url) for _ in range(3)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            pulling[0].wait(choose.uniform(0.2, 0.5))
        for child in pulling[:2]:
            child.kill()
            child.communicate()
        out, err = pulling[2].communicate(timeout=120)
        assert pulling[2].returncode == 0, err
        assert contents(Path(out.strip())) == contents(model)
    for lock in [*(node_cache / "locks").iterdir(), *(node_cache / "slots").iterdir()]:
        with try_exclusive(lock) as free:
            assert free is not None


def test_a_version_that_changes_one_layer_moves_one_layer(model, url, s3_relay):
    layers = {"weights.bin": [MB * n for n in range(40)]}
    push(model, url, boundaries=layers)
    pull(url)
    with (model / "weights.bin").open("r+b") as stream:
        stream.seek(17 * MB)
        stream.write(b"another layer")
    push(model, url, boundaries=layers)
    s3_relay.counts = Counts()
    assert contents(pull(url)) == contents(model)
    assert s3_relay.counts.received_bytes < 2 * MB
