from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify
from glowplug.bundle.writer import BundleWriter
from glowplug.core import errors
from glowplug.core.disk.files import new_directory

from .samples import graph, node


def finish(writer):
    return writer.finish(engine="native", signatures={})


def test_arrays_of_any_layout_are_stored_in_row_order(tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    views = [array, array.T, array[::2], array[:, 1:1], np.float32(7), array.astype(">f4").astype("<f4")]
    with BundleWriter(tmp_path) as writer:
        writer.add_file("graph.pb", graph(*(node(f"n{i}", "Placeholder") for i in range(len(views)))))
        indices = [writer.add_tensor(f"n{i}", "v", "float32", np.shape(v), v) for i, v in enumerate(views)]
        manifest = finish(writer)
    assert indices == [0, 1, 2, 3, 4, 0]
    with open_bundle(tmp_path).map_weights() as weights:
        for index, view in zip(indices, views, strict=True):
            stored = manifest.tensors[index]
            assert weights[stored.offset : stored.offset + stored.nbytes] == view.tobytes()
    verify(tmp_path)


def test_same_bytes_of_another_dtype_or_shape_are_another_tensor(tmp_path):
    with BundleWriter(tmp_path) as writer:
        assert writer.add_tensor("a", "a", "float32", (2,), bytes(8)) == 0
        assert writer.add_tensor("b", "b", "int32", (2,), bytes(8)) == 1
        assert writer.add_tensor("c", "c", "float32", (2, 1), bytes(8)) == 2
        assert writer.add_tensor("d", "d", "float32", (2,), bytes(8)) == 0
        assert [one.node for one in writer.tensors] == ["a", "b", "c"]


def test_weights_are_not_kept_in_memory(tmp_path):
    with BundleWriter(tmp_path) as writer:
        block = np.zeros(4_000_000, np.uint8)
        tracemalloc.start()
        for i in range(12):
            block[0] = i
            writer.add_tensor(f"n{i}", "v", "uint8", block.shape, block)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (tmp_path / "weights.bin").stat().st_size == 48_000_000
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("error", "dtype", "shape", "data"),
    [
        (errors.UnknownDtypeError, "string", (1,), b"x"),
        (errors.UnknownDtypeError, "float7", (1,), b"x"),
        (errors.TensorSizeError, "float32", (2,), bytes(4)),
    ],
)
def test_a_tensor_that_cannot_be_stored_is_refused(error, dtype, shape, data, tmp_path):
    with BundleWriter(tmp_path) as writer, pytest.raises(error, match="kernel"):
        writer.add_tensor("n", "kernel", dtype, shape, data)


@pytest.mark.parametrize("name", ["graph.pb", "bundle.json", "weights.bin"])
def test_a_name_is_used_once(name, tmp_path):
    with BundleWriter(tmp_path) as writer:
        writer.add_file("graph.pb", b"")
        with pytest.raises(errors.UsageError, match=name):
            writer.add_file(name, b"")


def test_a_path_that_leaves_is_not_written(tmp_path):
    root = tmp_path / "bundle"
    root.mkdir()
    with BundleWriter(root) as writer, pytest.raises(errors.UnsafePathError):
        writer.add_file("../outside", b"")
    assert list(tmp_path.iterdir()) == [root]


def test_a_tree_is_copied_with_its_folders(tmp_path):
    source = tmp_path / "model"
    (source / "variables").mkdir(parents=True)
    (source / "saved_model.pb").write_bytes(b"graph")
    (source / "variables" / "variables.index").write_bytes(b"index")
    root = tmp_path / "bundle"
    with new_directory(root) as directory, BundleWriter(directory) as writer:
        writer.copy_tree("saved_model/", source)
        writer.finish(engine="savedmodel", signatures={})
    report = verify(root)
    assert sorted(report.manifest.files) == [
        "saved_model/saved_model.pb",
        "saved_model/variables/variables.index",
    ]


def test_an_unfinished_bundle_is_none(tmp_path):
    with BundleWriter(tmp_path) as writer:
        writer.add_file("graph.pb", graph())
        writer.add_tensor("n", "v", "uint8", (1,), b"x")
    with pytest.raises(errors.NotABundleError):
        open_bundle(tmp_path)


def test_finish_refuses_what_a_reader_would_refuse(tmp_path):
    with BundleWriter(tmp_path) as writer, pytest.raises(errors.ManifestMalformedError, match=r"graph\.pb"):
        finish(writer)
    assert not (tmp_path / "bundle.json").exists()
