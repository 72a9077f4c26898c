from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.bundle.allowlist import allowed_ops, check_graph
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify
from glowplug.bundle.writer import BundleWriter
from glowplug.core import errors
from glowplug.core.disk.unfinished import DISPLACED, hidden_name
from tests.core.test_regular_files import KINDS, make

from .samples import copy_golden, field, function, graph, node, replace_file, write_golden


def test_the_map_is_shared_and_read_only(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    with open_bundle(root).map_weights() as weights:
        assert isinstance(weights, mmap.mmap)
        with pytest.raises(TypeError, match="readonly"):
            weights[0] = 1
        with (root / "weights.bin").open("r+b") as stream:
            stream.write(b"\xee")
        assert weights[0] == 0xEE


@pytest.mark.parametrize("tensors", [0, 1])
def test_a_bundle_without_weight_bytes_has_a_map_too(tensors, tmp_path):
    with BundleWriter(tmp_path) as writer:
        writer.add_file("graph.pb", graph(node("n", "Placeholder")))
        for _ in range(tensors):
            writer.add_tensor("n", "empty", "float32", (0, 3), b"")
        writer.finish(engine="native", signatures={})
    bundle = open_bundle(tmp_path)
    with bundle.map_weights() as weights, memoryview(weights) as view:
        assert view.readonly
    assert verify(tmp_path).manifest == bundle.manifest


def test_weights_cut_off_after_opening_are_not_mapped(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    bundle = open_bundle(root)
    (root / "weights.bin").write_bytes(b"")
    with pytest.raises(errors.FileSizeError):
        bundle.map_weights()


def test_a_graph_changed_after_opening_is_not_returned(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    bundle = open_bundle(root)
    (root / "graph.pb").write_bytes(bytes((root / "graph.pb").stat().st_size))
    with pytest.raises(errors.DigestError):
        bundle.graph_bytes()


def test_a_graph_the_bundle_lacks_is_named(tmp_path):
    with BundleWriter(tmp_path) as writer:
        writer.add_file("graph.pb", graph())
        writer.finish(engine="native", signatures={})
    with pytest.raises(errors.MissingFileError, match=r"graph\.portable\.pb"):
        open_bundle(tmp_path).graph_bytes(portable=True)


def test_links_that_stay_inside_and_an_alias_of_the_directory_are_fine(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    (root / "graph.portable.pb").unlink()
    (root / "graph.portable.pb").symlink_to("graph.pb")
    (tmp_path / "current").symlink_to(root)
    assert open_bundle(tmp_path / "current").root == root


def test_unlisted_files_are_ignored_by_open_and_reported_by_verify(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    (root / "assets" / "extra.so").write_bytes(b"?")
    assert "assets/extra.so" not in open_bundle(root).manifest.files
    assert verify(root).unlisted == ("assets/extra.so",)


def test_the_portable_graph_is_scanned_too(tmp_path):
    root = copy_golden(tmp_path / "bundle")
    data = (root / "graph.pb").read_bytes()
    replace_file(root, "graph.portable.pb", data + field(1, node("n", "ReadFile")))
    open_bundle(root)
    with pytest.raises(errors.OpNotAllowedError, match="ReadFile"):
        verify(root)


def test_ops_of_chosen_libraries_and_calls_by_function_name_are_allowed(tmp_path):
    manifest = write_golden(tmp_path)
    data = (tmp_path / "graph.pb").read_bytes()
    called = data + graph(node("call", "Scope_double_12"), functions=(function("Scope_double_12", node("n", "Mul")),))
    assert set(check_graph(called, manifest).functions) == {"Scope_double_12"}
    custom = data + field(1, node("n", "TokenizeText"))
    with pytest.raises(errors.OpNotAllowedError, match="TokenizeText"):
        check_graph(custom, manifest)
    check_graph(custom, manifest, extra_ops={"TokenizeText"})


def test_a_file_name_with_an_explicit_output_is_the_same(tmp_path):
    manifest = write_golden(tmp_path)
    data = (tmp_path / "graph.pb").read_bytes()
    check_graph(data + field(1, node("n", "InitializeTableFromTextFileV2", "table", "vocab_path:0")), manifest)
    with pytest.raises(errors.OpNotAllowedError):
        check_graph(data + field(1, node("n", "InitializeTableFromTextFileV2", "table", "vocab_path:1")), manifest)


def test_the_list_is_sorted_within_its_sections_and_names_each_op_once():
    from glowplug.bundle import allowlist

    text = allowlist.OPS_FILE.read_text()
    sections = [part.splitlines() for part in text.split("\n\n")]
    assert all(part[0].startswith("# ") for part in sections)
    names = [name for part in sections for name in part[1:]]
    assert len(names) == len(set(names)) == len(allowed_ops())
    for part in sections:
        assert part[1:] == sorted(part[1:]), part[0]


def test_opening_a_bundle_imports_nothing_heavy(tmp_path):
    write_golden(tmp_path)
    code = (
        "import sys; from pathlib import Path; from glowplug.bundle import allowlist, verify\n"
        "verify.verify(Path(sys.argv[1]))\n"
        "print(sorted({'numpy', 'tensorflow', 'google', 'rich'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bundle.json", "graph.pb", "weights.bin", "assets/vocab.txt"])
def test_what_is_no_ordinary_file_is_refused_without_being_opened(kind: str, name: str, tmp_path: Path) -> None:
    directory = copy_golden(tmp_path / "bundle")
    (directory / name).unlink()
    make(kind, directory / name)
    with pytest.raises(errors.BundleError) as caught:
        open_bundle(directory)
    assert "\n" not in str(caught.value)


def test_a_bundle_that_is_replaced_is_the_old_one_or_an_error(tmp_path: Path) -> None:
    directory = copy_golden(tmp_path / "bundle")
    weights, graph = (directory / "weights.bin").read_bytes(), (directory / "graph.pb").read_bytes()
    bundle = open_bundle(directory)
    directory.rename(tmp_path / "old")
    shutil.copytree(tmp_path / "old", directory)
    (directory / "weights.bin").write_bytes(b"\xff" * len(weights))
    (directory / "assets" / "vocab.txt").write_text("other")
    with bundle.map_weights() as mapped:
        assert mapped[:] == weights
    assert bundle.graph_bytes() == graph
    assert bundle.asset_path(bundle.manifest.assets[0]).read_bytes() == b"red\ngreen\nblue\n"
    shutil.rmtree(tmp_path / "old")
    with pytest.raises(errors.MissingFileError):
        bundle.graph_bytes()
    with pytest.raises(errors.MissingFileError):
        bundle.map_weights()


def test_a_bundle_that_a_killed_writer_had_moved_aside_is_found(tmp_path: Path) -> None:
    directory = copy_golden(tmp_path / "bundle")
    hidden = Path(hidden_name(str(directory), DISPLACED))
    directory.rename(hidden)
    assert open_bundle(directory).root == directory
    assert not hidden.exists()


def test_hard_links_and_holes_are_files_like_others(tmp_path: Path) -> None:
    directory = copy_golden(tmp_path / "bundle")
    (directory / "graph.pb").rename(tmp_path / "first name")
    os.link(tmp_path / "first name", directory / "graph.pb")
    open_bundle(directory)
    with (directory / "weights.bin").open("r+b") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(errors.FileSizeError):
        open_bundle(directory)
