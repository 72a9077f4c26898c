"""A model in another process answers as one in this process does."""

from __future__ import annotations

import os
import select
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import glowplug
from glowplug.core.errors import (
    ClosedError,
    InputError,
    MissingFileError,
    NotABundleError,
    StandbyError,
    TensorFlowError,
)
from glowplug.loader import channel
from glowplug.standby.client import control

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def standby_directory():
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        Path(directory).chmod(0o700)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GLOWPLUG_STANDBY_DIR", directory)
            yield directory
            for one in control.standbys():
                control.stop(one)


@pytest.mark.parametrize("name", ["two_in_two_out", "string_lookup"])
def test_answers_are_the_same(standby_directory, bundle, name):
    path = bundle(name)
    with glowplug.load(path) as here, glowplug.load(path, standby=True) as there:
        assert isinstance(there, glowplug.RemoteModel)
        assert there.pid != os.getpid()
        assert (there.signatures, there.engine) == (here.signatures, here.engine)
        mine, theirs = _call(here), _call(there)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_errors_are_the_same(standby_directory, bundle, tmp_path):
    with pytest.raises(NotABundleError):
        glowplug.load(tmp_path, standby=True)
    model = glowplug.load(bundle("two_in_two_out"), standby=True)
    with pytest.raises(InputError, match="input names"):
        model({"no": 1})
    with pytest.raises(InputError, match="no such signature"):
        model.signature("other")
    model.close()
    model.close()
    with pytest.raises(ClosedError):
        _call(model)


def test_a_host_that_dies_is_an_error_and_the_next_load_works(standby_directory, bundle):
    model = glowplug.load(bundle("two_in_two_out"), standby=True)
    process = os.pidfd_open(model.pid)
    os.kill(model.pid, signal.SIGKILL)
    assert select.select([process], [], [], 20)[0]
    os.close(process)
    with pytest.raises(StandbyError, match="is gone"):
        _call(model)
    model.close()
    with glowplug.load(bundle("two_in_two_out"), standby=True) as again:
        _call(again)


def test_the_host_ends_with_its_owner(standby_directory, bundle):
    model = glowplug.load(bundle("two_in_two_out"), standby=True)
    process = os.pidfd_open(model.pid)
    model.close()
    assert select.select([process], [], [], 20)[0]
    os.close(process)


def test_a_standby_that_cannot_be_means_a_model_in_this_process(bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_STANDBY_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    with glowplug.load(bundle("two_in_two_out"), standby=True) as model:
        assert not isinstance(model, glowplug.RemoteModel)
        assert "open to others" in model.info.notes[-1]
        _call(model)


def test_arrays_of_every_kind_survive_the_shared_memory():
    arena = channel.Arena(os.memfd_create("test"))
    arrays = [
        np.arange(6, dtype="int64").reshape(2, 3)[:, ::-1],
        np.array(True),
        np.empty((0, 4), "float32"),
        np.array([[b"a", "b"], [b"", b"\xff"]], object),
        np.ones(100_000, "complex128"),
    ]
    dtypes = ["int64", "bool", "float32", "string", "complex128"]
    for _ in range(2):
        found = arena.get(arena.put(arrays, dtypes), copy=True)
        assert [one.shape for one in found] == [one.shape for one in arrays]
        assert found[3].tolist() == [[b"a", b"b"], [b"", b"\xff"]]
        assert all(np.array_equal(a, b) for a, b in zip(found, arrays, strict=True) if a.dtype != object)
    arena.close()


def test_errors_survive_the_way():
    for error in (MissingFileError("a", seen=Path("b"), remedy="c"), TensorFlowError("t", code="ABORTED")):
        rebuilt = channel.rebuild_error(channel.describe_error(error))
        assert (type(rebuilt), str(rebuilt)) == (type(error), str(error))
    assert rebuilt.code == "ABORTED"


def _call(model):
    """Call the model with an input that fits, and return its outputs in order."""
    inputs = {}
    for name, port in model.signatures["serving_default"].inputs.items():
        shape = [size or 2 for size in port.spec.shape]
        inputs[name] = (
            np.full(shape, b"one", object) if port.spec.dtype == "string" else np.ones(shape, port.spec.dtype)
        )
    answer = model(inputs)
    return list(answer.values()) if isinstance(answer, dict) else [answer]


def _spare() -> int | None:
    (one,) = control.standbys()
    found = one.described()["spare"]
    return None if found is None else int(found)


def _threads(pid: int) -> list[int]:
    return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]


def _wait_for_spare() -> int:
    for _ in range(600):
        if (found := _spare()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("no child waits")


def test_the_child_that_waits_has_begun_and_hosts_the_next_model(standby_directory, bundle):
    glowplug.load(bundle("two_in_two_out"), standby=True).close()
    waiting = _wait_for_spare()
    assert len(_threads(waiting)) > 1
    with glowplug.load(bundle("two_in_two_out"), standby=True) as model:
        assert model.pid == waiting
        _call(model)


@pytest.mark.parametrize("wish", ["threads", "processors"])
def test_who_wants_other_threads_gets_another_child(standby_directory, bundle, wish):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    glowplug.load(bundle("two_in_two_out"), standby=True).close()
    waiting = _wait_for_spare()
    before = os.sched_getaffinity(0)
    try:
        if wish == "processors":
            os.sched_setaffinity(0, {min(before)})
        options = {"intra_op_threads": 1} if wish == "threads" else {}
        with glowplug.load(bundle("two_in_two_out"), standby=True, **options) as model:
            assert model.pid != waiting
            _call(model)
            wanted = os.sched_getaffinity(0)
            assert all(os.sched_getaffinity(thread) == wanted for thread in _threads(model.pid))
    finally:
        os.sched_setaffinity(0, before)
    assert _spare() == waiting
