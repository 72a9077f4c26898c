"""Connections to one origin are bounded over all that share a node cache."""

from __future__ import annotations

import threading

from glowplug.store.node_cache.folder import Folder, open_folder
from glowplug.store.transfer.slots import Slots


def most_at_once(slots: list[Slots], rounds: int = 5) -> int:
    inside, most, lock = 0, 0, threading.Lock()

    def connect(one: Slots) -> None:
        nonlocal inside, most
        for _ in range(rounds):
            with one.one():
                with lock:
                    inside += 1
                    most = max(most, inside)
                threading.Event().wait(0.005)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=connect, args=(one,)) for one in slots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most


def test_no_more_connect_than_may(node_cache):
    folder = open_folder(node_cache)
    assert most_at_once([Slots(folder, "s3://bucket", 2) for _ in range(6)]) == 2


def test_origins_do_not_share_a_bound(node_cache):
    folder = open_folder(node_cache)
    assert most_at_once([Slots(folder, f"s3://{name}", 1) for name in "abc"]) > 1


def test_where_no_lock_can_be_kept_everybody_connects(tmp_path):
    assert most_at_once([Slots(Folder(tmp_path, writable=False), "s3://bucket", 1) for _ in range(3)]) > 1


def test_whoever_holds_all_and_does_nothing_is_waited_for_once(node_cache, monkeypatch):
    monkeypatch.setattr("glowplug.store.transfer.slots._LONGEST_S", 0.05)
    folder = open_folder(node_cache)
    slots, naps = Slots(folder, "s3://bucket", 1), []
    with Slots(folder, "s3://bucket", 1).one():
        with slots.one():
            pass
        monkeypatch.setattr("glowplug.store.transfer.slots.time.sleep", naps.append)
        for _ in range(3):
            with slots.one():
                pass
    assert naps == []
