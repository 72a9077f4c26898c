"""What is served is what is on the disk: versions that change, are incomplete, or do not work."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading

import pytest

from tests.serve.server import Server, copy_version

pytestmark = pytest.mark.tensorflow

ONE = {"instances": [1.0]}


MAKE = """
import sys
import tensorflow as tf

class Model(tf.Module):
    def __init__(self, added):
        self.half, self.added = tf.Variable(0.5), tf.Variable(added)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def __call__(self, x):
        return x * self.half + self.added

for added, path in ((2.0, sys.argv[1]), (3.0, sys.argv[2])):
    model = Model(added)
    tf.saved_model.save(model, path, signatures=model.__call__)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Two plain SavedModels that differ in their variables alone: `x / 2 + 2` and `x / 2 + 3`."""
    folder = tmp_path_factory.mktemp("plain")
    places = (folder / "two", folder / "three")
    subprocess.run([sys.executable, "-c", MAKE, *map(str, places)], check=True, capture_output=True)
    return places


def predictions(server):
    status, document = server.post("/v1/models/half:predict", ONE)
    assert status == 200, document
    return document["predictions"]


def copy_plain(source, target):
    """Copy a SavedModel file by file, each with the time of now."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def replace_variables(source, target):
    """Put other weights into a version, each file whole at once, and leave the graph."""
    for path in (source / "variables").iterdir():
        shutil.copyfile(path, target / f".{path.name}")
        (target / f".{path.name}").rename(target / "variables" / path.name)


def serve(base, cache, *more):
    return Server("--model_name=half", f"--model_base_path={base}", "--pack-cache", cache, "--poll-seconds", 0.1, *more)


def states(server):
    return {e["version"]: e["state"] for e in server.get("/v1/models/half")[1]["model_version_status"]}


def test_new_variables_under_an_unchanged_graph_are_served_after_a_restart(plain, tmp_path):
    two, three = plain
    copy_plain(two, tmp_path / "base" / "1")
    with serve(tmp_path / "base", tmp_path / "cache") as server:
        server.wait_event("packed")
        assert predictions(server) == [2.5]
    replace_variables(three, tmp_path / "base" / "1")
    with serve(tmp_path / "base", tmp_path / "cache") as server:
        assert predictions(server) == [3.5]
        server.wait_event("packed")
        assert predictions(server) == [3.5]


def test_a_version_that_changes_while_it_is_served_is_loaded_again(plain, tmp_path):
    two, three = plain
    copy_plain(two, tmp_path / "base" / "1")
    bad, stop = [], threading.Event()

    def ask():
        while not stop.wait(0.01):
            status, document = server.post("/v1/models/half:predict", ONE)
            if status != 200:
                bad.append(document)

    with serve(tmp_path / "base", tmp_path / "cache", "--no-pack") as server:
        assert predictions(server) == [2.5]
        asking = threading.Thread(target=ask)
        asking.start()
        try:
            replace_variables(three, tmp_path / "base" / "1")
            server.wait_event("reloaded", version=1)
        finally:
            stop.set()
            asking.join()
        assert predictions(server) == [3.5]
        assert bad == []
        assert len(server.workers()) == 1


def test_a_version_without_its_variables_ends_with_the_reason_and_is_served_once_they_are_there(plain, tmp_path):
    two, three = plain
    copy_plain(two, tmp_path / "base" / "1")
    with serve(tmp_path / "base", tmp_path / "cache", "--no-pack") as server:
        copy_plain(three, tmp_path / "new")
        shutil.move(tmp_path / "new" / "variables", tmp_path / "late")
        (tmp_path / "new").rename(tmp_path / "base" / "2")
        failed = server.wait_event("load_failed", version=2)
        assert "does not answer" in failed["error"]
        assert states(server) == {"1": "AVAILABLE", "2": "END"}
        assert predictions(server) == [2.5]
        shutil.move(tmp_path / "late", tmp_path / "base" / "2" / "variables")
        server.wait_event("available", version=2)
        assert predictions(server) == [3.5]


@pytest.mark.parametrize(
    "cut", ["saved_model.pb", "variables/variables.data-00000-of-00001", "variables/variables.index"]
)
def test_a_version_that_is_still_being_copied_is_not_loaded_yet(plain, tmp_path, cut):
    two, three = plain
    copy_plain(two, tmp_path / "base" / "1")
    with serve(tmp_path / "base", tmp_path / "cache", "--no-pack") as server:
        copy_plain(three, tmp_path / "new")
        part = tmp_path / "new" / cut
        whole = part.read_bytes()
        part.write_bytes(whole[: len(whole) // 2])
        (tmp_path / "new").rename(tmp_path / "base" / "2")
        waiting = server.wait_event("incomplete", version=2)
        assert part.name in waiting["reason"]
        assert states(server) == {"1": "AVAILABLE", "2": "START"}
        (tmp_path / "base" / "2" / cut).write_bytes(whole)
        server.wait_event("available", version=2)
        assert predictions(server) == [3.5]
        assert not [event for event in server.events if event["event"] == "load_failed"]


def test_a_bundle_that_is_still_being_copied_is_not_loaded_yet(half_plus_two, tmp_path):
    copy_version(half_plus_two, tmp_path / "new")
    weights = tmp_path / "new" / "weights.bin"
    whole = weights.read_bytes()
    weights.write_bytes(b"")
    (tmp_path / "new").rename(tmp_path / "1")
    with Server("--model_name=half", f"--model_base_path={tmp_path}", "--poll-seconds", 0.1, wait=False) as server:
        assert "weights.bin" in server.wait_event("incomplete", version=1)["reason"]
        weights = tmp_path / "1" / "weights.bin"
        weights.write_bytes(whole)
        server.wait_event("available", version=1)
        assert predictions(server) == [2.5]


def test_a_load_that_fails_is_tried_again_as_often_as_the_flags_say(half_plus_two, tmp_path):
    copy_version(half_plus_two, tmp_path / "new")
    graph = tmp_path / "new" / "graph.pb"
    graph.write_bytes(b"\xff" * graph.stat().st_size)
    (tmp_path / "new").rename(tmp_path / "1")
    flags = ("--max_num_load_retries=2", "--load_retry_interval_micros=1000")
    with Server(
        "--model_name=half", f"--model_base_path={tmp_path}", "--poll-seconds", 0.1, *flags, wait=False
    ) as server:
        server.wait_event("given_up", version=1)
        assert len([event for event in server.events if event["event"] == "load_failed"]) == 3
