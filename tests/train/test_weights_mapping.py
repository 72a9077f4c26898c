"""Mapped weights: no copy until training, and a file that never changes. Saving: whole files, and readable ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from glowplug import train
from glowplug.core.errors import OutputExistsError, StorageError, UsageError

from . import weight_models as models

pytestmark = pytest.mark.tensorflow


def maps_of(path: Path) -> list[range]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    spans = [line.split()[0].split("-") for line in lines if line.endswith(str(path))]
    return [range(int(begin, 16), int(end, 16)) for begin, end in spans]


def address(variable) -> int:
    return variable.value.read_value()._numpy().ctypes.data


def dense_pair(odd=False):
    import keras

    return keras.Sequential([keras.Input((64,)), keras.layers.Dense(64), keras.layers.Dense(3 if odd else 16)])


def test_variables_use_the_mapped_file_until_they_are_trained(tmp_path):
    saved = models.randomize(dense_pair())
    path = tmp_path / "w.safetensors"
    train.save_weights(saved, path)
    content = path.read_bytes()
    model = dense_pair()
    train.load_weights(model, path)
    inside = maps_of(path)
    for variable in model.weights:
        assert any(address(variable) in one for one in inside), variable.path
        assert address(variable) % 64 == 0
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 64)), np.ones((4, 16)), verbose=0)
    for variable in model.weights:
        assert not any(address(variable) in one for one in inside)
    assert not models.same(models.values(model), models.values(saved))
    assert path.read_bytes() == content
    again = dense_pair()
    train.load_weights(again, path)
    assert models.same(models.values(again), models.values(saved))


def test_two_models_of_one_file_do_not_share_what_they_learn(tmp_path):
    saved = models.randomize(dense_pair())
    path = tmp_path / "w.safetensors"
    train.save_weights(saved, path)
    first, second = dense_pair(), dense_pair()
    train.load_weights(first, path)
    train.load_weights(second, path)
    first.weights[0].value.assign_add(np.ones((64, 64), "float32"))
    first.weights[1].assign(np.zeros(64, "float32"))
    assert models.same(models.values(second), models.values(saved))


def test_unmapped_on_request(tmp_path):
    path = tmp_path / "w.safetensors"
    saved = models.randomize(dense_pair())
    train.save_weights(saved, path)
    model = dense_pair()
    train.load_weights(model, path, mapped=False)
    assert not maps_of(path)
    assert models.same(models.values(model), models.values(saved))


def test_weights_outlive_the_file(tmp_path):
    path = tmp_path / "w.safetensors"
    saved = models.randomize(dense_pair())
    train.save_weights(saved, path)
    model = dense_pair()
    train.load_weights(model, path)
    train.save_weights(models.randomize(dense_pair(), seed=5), path, force=True)
    assert models.same(models.values(model), models.values(saved))
    path.unlink()
    assert models.same(models.values(model), models.values(saved))


def test_the_safetensors_library_reads_our_file_and_we_read_its(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    saved = models.randomize(dense_pair(odd=True))
    path = tmp_path / "w.safetensors"
    train.save_weights(saved, path)
    arrays = library.load_file(path)
    assert set(arrays) == {variable.path for variable in saved.weights}
    for variable in saved.weights:
        assert np.array_equal(arrays[variable.path], variable.numpy())
    library.save_file(arrays, tmp_path / "theirs.safetensors")
    models.randomize(saved, seed=9)
    train.load_weights(saved, tmp_path / "theirs.safetensors")
    assert all(np.array_equal(arrays[variable.path], variable.numpy()) for variable in saved.weights)


def test_golden_header(tmp_path):
    import keras

    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(3, name="d")], name="m")
    train.save_weights(model, tmp_path / "w.safetensors")
    data = (tmp_path / "w.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    names = [variable.path for variable in model.weights]
    assert (8 + length) % 64 == 0
    assert json.loads(header["__metadata__"]["glowplug.variables"]) == names
    assert header[names[0]] == {"dtype": "F32", "shape": [16, 3], "data_offsets": [0, 192]}
    assert header[names[1]] == {"dtype": "F32", "shape": [3], "data_offsets": [192, 204]}


def test_the_state_of_random_generators_comes_along(tmp_path):
    saved = models.functional()
    state = next(one for one in saved.variables if "seed" in one.path)
    state.assign(np.array([7, 9], state.dtype))
    train.save_weights(saved, tmp_path / "w.safetensors")
    second = models.functional()
    train.load_weights(second, tmp_path / "w.safetensors")
    assert [one.numpy().tolist() for one in second.variables if "seed" in one.path] == [[7, 9]]


def test_saving_refuses_to_overwrite_and_leaves_no_litter(tmp_path):
    path = tmp_path / "w.safetensors"
    train.save_weights(dense_pair(), path)
    before = path.read_bytes()
    with pytest.raises(OutputExistsError):
        train.save_weights(dense_pair(), path)
    with pytest.raises(UsageError, match="safetensors"):
        train.save_weights(dense_pair(), tmp_path / "w.h5")
    with pytest.raises(StorageError, match="could not be written"):
        train.save_weights(dense_pair(), tmp_path / "no" / "w.safetensors")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["w.safetensors"]  # noqa: PTH208


def test_a_save_that_fails_half_way_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "w.safetensors"
    model = dense_pair()
    train.save_weights(model, path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        train.save_weights(models.randomize(model), path, force=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["w.safetensors"]  # noqa: PTH208
