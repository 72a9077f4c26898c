"""Descriptions of what is stored: a canonical form, and one hostile text for each thing that is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.errors import DamagedObjectError
from glowplug.store import tree as trees
from glowplug.store.cutting import LARGEST_BYTES
from glowplug.store.tree import Chunk, StoredFile, Tree

A, B = "a" * 64, "b" * 64
GOOD = {
    "format": 1,
    "kind": "directory",
    "files": [{"path": "x/y", "chunks": [[A, 5], [B, 7]]}, {"path": "z", "chunks": []}],
}

names = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=8)
chunks = st.builds(Chunk, st.sampled_from([A, B]), st.integers(1, LARGEST_BYTES))


def parse(document: object) -> Tree:
    return trees.parse(json.dumps(document).encode(), "somewhere")


@given(st.dictionaries(names, st.lists(chunks, max_size=4), min_size=1, max_size=5))
def test_a_description_comes_back_as_it_was(files):
    tree = Tree(tuple(StoredFile(path, tuple(some)) for path, some in sorted(files.items())))
    assert trees.parse(trees.dump(tree), "here") == tree
    assert trees.digest_of(tree) == trees.digest_of(trees.parse(trees.dump(tree), "here"))


def test_the_canonical_form_does_not_change():
    assert trees.dump(parse(GOOD)) == (
        b'{"files":[{"chunks":[["' + A.encode() + b'",5],["' + B.encode() + b'",7]],"path":"x/y"},'
        b'{"chunks":[],"path":"z"}],"format":1,"kind":"directory"}'
    )


def test_offsets_and_sizes_follow_from_the_chunks():
    first = parse(GOOD).files[0]
    assert first.size == 12
    assert list(first.spans()) == [(0, Chunk(A, 5)), (5, Chunk(B, 7))]


def one_file(**changes: object) -> dict[str, object]:
    return {**GOOD, "files": [{**{"path": "a", "chunks": [[A, 5]]}, **changes}]}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "not the JSON"),
        ({}, "not the JSON"),
        ({**GOOD, "format": 2}, "its format is 2"),
        ({**GOOD, "kind": "link"}, "neither file nor directory"),
        ({**GOOD, "kind": "file"}, "lists 2 files"),
        ({**GOOD, "files": []}, "lists 0 files"),
        ({**GOOD, "files": 3}, "not the JSON"),
        (one_file(path="../a"), "not safe"),
        (one_file(path="/etc/passwd"), "not safe"),
        (one_file(path="a\\b"), "not safe"),
        (one_file(path=["a"]), "not safe"),
        (one_file(path="x" * 2000), "not safe"),
        (one_file(chunks=[["../../x", 5]]), "no digest"),
        (one_file(chunks=[[A.upper(), 5]]), "no digest"),
        (one_file(chunks=[[A, 0]]), "a chunk of 0 bytes"),
        (one_file(chunks=[[A, -1]]), "a chunk of -1 bytes"),
        (one_file(chunks=[[A, LARGEST_BYTES + 1]]), "a chunk of"),
        (one_file(chunks=[[A, True]]), "a chunk of"),
        (one_file(chunks=[[A]]), "not the JSON"),
        ({**GOOD, "files": GOOD["files"][::-1]}, "not in order"),
        ({**GOOD, "files": [GOOD["files"][0]] * 2}, "not in order"),
        ({**GOOD, "files": [{"path": "x", "chunks": []}, {"path": "x/y", "chunks": []}]}, "a file and a folder"),
    ],
)
def test_what_is_not_of_the_format_is_refused(document, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        parse(document)


def test_text_that_is_no_json_or_too_large_is_refused():
    for data in (b"", b"\xff", b"[" * 100_000, b'"' + b"x" * trees.MAX_BYTES + b'"'):
        with pytest.raises(DamagedObjectError):
            trees.parse(data, "here")
