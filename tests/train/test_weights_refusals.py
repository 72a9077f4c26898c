"""What does not fit is refused with names, and the model stays as it was."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from glowplug import train
from glowplug.core.errors import GlowplugError, NotAModelError, UnsupportedModelError, UsageError, WeightsError

from . import test_weights_formats as formats
from . import weight_models as models

pytestmark = pytest.mark.tensorflow


def refused(model, path, message, error=WeightsError):
    before = models.values(model)
    with pytest.raises(error, match=message):
        train.load_weights(model, path)
    assert models.same(models.values(model), before)


def build(units=(16, 16), extra=False, dtype="float32"):
    import keras

    model = keras.Sequential([keras.Input((8,))])
    for count in (*units, *((4,) if extra else ())):
        model.add(keras.layers.Dense(count, dtype=dtype))
    return model


@pytest.mark.parametrize("save", formats.FORMATS)
def test_missing_extra_and_different_variables(save, tmp_path):
    path = save(build(), tmp_path)
    refused(build(extra=True), path, "missing|different numbers of layers")
    refused(build(units=(16,)), path, "extra|different numbers of layers")
    refused(build(units=(16, 24)), path, r"is float32\[16, 24\], stored as float32\[16, 16\]")
    refused(build(dtype="float16"), path, r"is float16\[8, 16\], stored as float32\[8, 16\]")


FILES = [formats.save_safetensors, formats.save_weights_h5, formats.save_keras, formats.save_legacy_h5]


@pytest.mark.parametrize("save", FILES)
@pytest.mark.parametrize("kept", [0, 1, 7, 40, 0.3, 0.9, -1])
def test_truncated_files(save, kept, tmp_path):
    path = save(build(), tmp_path)
    size = path.stat().st_size
    os.truncate(path, int(size * kept) if isinstance(kept, float) else kept % size)
    refused(build(), path, "damaged or incomplete")


@pytest.mark.parametrize("save", [formats.save_checkpoint, formats.save_saved_model])
@pytest.mark.parametrize("part", ["index", "data-00000-of-00001"])
def test_truncated_checkpoints(save, part, tmp_path):
    path = save(build(), tmp_path)
    for file in tmp_path.rglob(f"*.{part}"):
        os.truncate(file, file.stat().st_size // 2)
    refused(build(), path, "damaged or incomplete")


def safetensors_file(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def tensor(begin, end, shape=(1,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "header",
    [
        b"no json",
        b"[]",
        {"a": {"dtype": "F32"}},
        {"a": tensor(0, 4, dtype="F31")},
        {"a": tensor(0, 8)},
        {"a": tensor(0, 4), "b": tensor(0, 4)},
        {"a": tensor(4, 8)},
        {"a": tensor(0, 4, shape=(-1,))},
        {"a": tensor("0", "4")},
        {"a": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": 1, "data_offsets": [0, 4]}},
        {"a": 3},
    ],
)
def test_hostile_safetensors(header, tmp_path):
    refused(build(), safetensors_file(tmp_path / "x.safetensors", header, bytes(8)), "is no safetensors file|damaged")


def test_a_header_of_many_gigabytes(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    refused(build(), path, "a header of 1099511627776 bytes")


def test_a_file_that_is_none(tmp_path):
    refused(build(), tmp_path / "nothing.safetensors", "cannot be read", GlowplugError)
    refused(build(), tmp_path / "nothing", "there is nothing here", NotAModelError)
    (tmp_path / "x.txt").write_text("x")
    refused(build(), tmp_path / "x.txt", "no weights that Glowplug knows", NotAModelError)
    refused(build(), tmp_path, "no weights that Glowplug knows", NotAModelError)


def test_h5_that_points_elsewhere(tmp_path):
    import h5py

    path = formats.save_weights_h5(build(), tmp_path)
    with h5py.File(path, "a") as file:
        del file["layers/dense/vars/0"]
        file["layers/dense/vars/0"] = h5py.ExternalLink("/etc/passwd", "/x")
    refused(build(), path, r"1 missing \(.*kernel\)")
    with h5py.File(path, "a") as file:
        del file["layers/dense/vars/0"]
        file.create_dataset("layers/dense/vars/0", (8, 16), "f4", external=[(str(tmp_path / "raw"), 0, 512)])
    refused(build(), path, "lies in another file")


def test_a_model_without_variables(tmp_path):
    import keras

    with pytest.raises(WeightsError, match="no variables yet"):
        train.load_weights(keras.Sequential([keras.layers.Dense(2)]), tmp_path)
    with pytest.raises(UsageError, match="not a Keras 3 model"):
        train.load_weights(object(), tmp_path)


def test_a_layer_with_its_own_way_is_left_to_keras(tmp_path):
    import keras

    class Transposed(keras.layers.Dense):
        def load_own_variables(self, store):
            self.kernel.assign(np.transpose(store["0"]))

    def model():
        return keras.Sequential([keras.Input((4,)), Transposed(4)])

    path = formats.save_weights_h5(model(), tmp_path)
    refused(model(), path, "its own way", UnsupportedModelError)


def test_another_name_is_not_matched_by_position(tmp_path):
    """By position only where every name agrees but for its counter."""
    import keras

    path = formats.save_safetensors(keras.Sequential([keras.Input((4,)), *map(keras.layers.Dense, (4, 4))]), tmp_path)
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), keras.layers.Dense(4, name="head")])
    refused(other, path, "missing.*head/kernel.*extra")


def test_a_callback_that_fails_changes_nothing(tmp_path):
    path = formats.save_safetensors(build(), tmp_path)
    model = build()
    before = models.values(model)

    def stop(done, total):
        raise KeyError(total)

    with pytest.raises(KeyError):
        train.load_weights(model, path, progress=stop)
    assert models.same(models.values(model), before)
    with pytest.raises(UsageError, match="progress"):
        train.load_weights(model, path, progress=3)


def test_progress_ends_at_the_size_of_the_weights(tmp_path):
    model = build()
    seen = []
    train.load_weights(model, formats.save_keras(model, tmp_path), progress=lambda *one: seen.append(one))
    total = sum(value.nbytes for value in models.values(model))
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def packed(model, folder, *, keep_variables=False):
    import glowplug

    model.export(folder / "exported", verbose=False)
    glowplug.pack(folder / "exported", folder / "x.glow", engine="native", keep_variables=keep_variables)
    shutil.rmtree(folder / "exported")
    return folder / "x.glow"


@pytest.mark.slow
def test_a_bundle_that_kept_the_variables(tmp_path):
    saved = models.randomize(build(units=(32, 32)))
    path = packed(saved, tmp_path)
    import keras

    keras.backend.clear_session()
    second = build(units=(32, 32))
    train.load_weights(second, path)
    assert models.same(models.values(second), models.values(saved))


@pytest.mark.slow
def test_a_bundle_whose_batch_norms_were_folded(tmp_path):
    saved = models.randomize(models.functional())
    refused(models.functional(), packed(saved, tmp_path), "does not hold the variables.*--keep-variables")


@pytest.mark.slow
def test_a_bundle_that_was_told_to_keep_the_variables(tmp_path):
    saved = models.randomize(models.functional())
    path = packed(saved, tmp_path, keep_variables=True)
    second = models.functional()
    train.load_weights(second, path)
    assert models.same(models.values(second), models.values(saved))
