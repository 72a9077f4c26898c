"""Rows of several calls: they count together only if one state of the code made them."""

from __future__ import annotations

from pathlib import Path

from . import keras_tests
from .harness import document_of
from .rows import Rows, digest, state_of_code
from .table import PROGRAMS

ROW = {"outcome": "identical", "trained_by_keras": True, "train_step_restored": True}


def test_rows_of_several_calls_are_together(tmp_path: Path):
    path = tmp_path / "kept" / "rows.json"
    wanted = {"b.py": digest("b"), "a.py": digest("a")}
    Rows(path, "state").put("a.py", wanted["a.py"], {"outcome": "identical"})
    assert list(Rows(path, "state").of(wanted)) == ["a.py"]
    Rows(path, "state").put("b.py", wanted["b.py"], {"outcome": "the first run differs"})
    found = Rows(path, "state").of(wanted)
    assert found == {"b.py": {"outcome": "the first run differs"}, "a.py": {"outcome": "identical"}}
    assert list(found) == list(wanted)


def test_calls_beside_each_other_keep_the_rows_of_both(tmp_path: Path):
    one, other = (Rows(tmp_path / "rows.json", "state") for _ in range(2))
    one.put("a.py", digest("a"), {"outcome": "identical"})
    other.put("b.py", digest("b"), {"outcome": "identical"})
    assert list(one.of({"a.py": digest("a"), "b.py": digest("b")})) == ["a.py", "b.py"]


def test_a_row_of_another_state_or_of_another_text_does_not_count(tmp_path: Path):
    path = tmp_path / "rows.json"
    Rows(path, "state").put("a.py", digest("a"), {"outcome": "identical"})
    assert Rows(path, "state").get("a.py", digest("a")) == {"outcome": "identical"}
    assert Rows(path, "state").get("a.py", digest("edited otherwise")) is None
    later = Rows(path, "another state")
    assert later.get("a.py", digest("a")) is None
    later.put("b.py", digest("b"), {"outcome": "identical"})
    assert list(later.of({"a.py": digest("a"), "b.py": digest("b")})) == ["b.py"]
    assert Rows(path, "state").get("b.py", digest("b")) is None


def test_a_row_that_is_made_again_takes_the_place_of_the_first(tmp_path: Path):
    rows = Rows(tmp_path / "rows.json", "state")
    rows.put("a.py", digest("a"), {"outcome": "the first run differs"})
    rows.put("a.py", digest("a"), {"outcome": "identical"})
    assert rows.of({"a.py": digest("a")}) == {"a.py": {"outcome": "identical"}}


def test_the_results_file_is_that_of_all_programs(tmp_path: Path):
    path = tmp_path / "rows.json"
    texts = dict.fromkeys(PROGRAMS, "the same for all")
    first, *rest = PROGRAMS
    for name in rest:
        Rows(path, "state").put(name, digest(texts[name]), ROW)
    assert document_of(Rows(path, "state"), texts) is None
    so_far = document_of(Rows(path, "state"), texts, so_far=True)
    assert so_far is not None
    assert (so_far["not_run"], list(so_far["programs"])) == ([first], rest)
    Rows(path, "state").put(first, digest(texts[first]), ROW | {"outcome": "the second run differs"})
    document = document_of(Rows(path, "state"), texts)
    assert document is not None
    assert list(document["programs"]) == list(PROGRAMS)
    assert "not_run" not in document
    assert document["summary"]["programs"] == len(PROGRAMS) == document["summary"]["identical"] + 1
    cannot_be_edited = {name: text for name, text in texts.items() if name != first}
    assert document_of(Rows(path, "state"), cannot_be_edited) is None


def test_so_does_the_one_of_keras_tests(tmp_path: Path):
    path = tmp_path / "rows.json"
    row = {"tests": 3, "failed_under_stock": ["one"], "different": {}}
    for name in keras_tests.FOLDERS[1:]:
        Rows(path, "state").put(name, digest(name), row)
    assert keras_tests.document_of(Rows(path, "state")) is None
    so_far = keras_tests.document_of(Rows(path, "state"), so_far=True)
    assert so_far is not None
    assert so_far["not_run"] == [keras_tests.FOLDERS[0]]
    Rows(path, "state").put(keras_tests.FOLDERS[0], digest(keras_tests.FOLDERS[0]), row)
    document = keras_tests.document_of(Rows(path, "state"))
    assert document is not None
    assert document["summary"] == {"tests": 15, "failed_under_stock": 5, "different": 0}


def test_every_file_of_the_source_is_part_of_the_state(tmp_path: Path):
    package = tmp_path / "package"
    (package / "train").mkdir(parents=True)
    (package / "train" / "step.py").write_text("first = 1\n", encoding="utf-8")
    alone = tmp_path / "alone.py"
    alone.write_text("", encoding="utf-8")
    before = state_of_code([package, alone])
    assert state_of_code([package, alone]) == before
    (package / "train" / "notes.txt").write_text("no source", encoding="utf-8")
    assert state_of_code([package, alone]) == before
    (package / "train" / "step.py").write_text("first = 2\n", encoding="utf-8")
    changed = state_of_code([package, alone])
    (package / "train" / "step.py").rename(package / "train" / "steps.py")
    renamed = state_of_code([package, alone])
    alone.write_text("x = 1\n", encoding="utf-8")
    assert len({before, changed, renamed, state_of_code([package, alone])}) == 4
