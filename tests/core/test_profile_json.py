"""The JSON form: what is written is read back, and what is wrong is named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from glowplug.core import profile as values
from glowplug.core import profile_json
from glowplug.core.errors import NewerSchemaError, OutputExistsError, ProfileDamagedError, StorageError


def sample() -> values.Profile:
    spans = (
        values.Span(1, None, 7, 7, "interpreter", "python", 0, 10, {"kind": "start"}),
        values.Span(2, None, 7, 7, "user_code", "__main__", 10, 90, {"kind": "main", "path": "t.py"}),
        values.Span(3, 2, 7, 7, "import", "tensorflow", 20, 60, {"kind": "module", "self_ns": 40}),
    )
    return values.Profile(
        command=("t.py", "caf\udce9"),
        exit_code=-9,
        wall_ns=100,
        environment={"cpu_count": 2, "versions": {"tensorflow": "2.21.0"}},
        spans=spans,
        phases=values.phase_totals(spans, 100),
        series=(values.Series("rss_bytes", ((0, 1), (50, 2))),),
        processes=(values.Process(7, 1, ("python", "t.py"), "root", 0, 100, -9, True, {"threads": 1}),),
        loops=(
            values.Loop(
                "t.py:3",
                "main",
                "fit",
                7,
                (values.Round(1, 2, 3, 4, 5, 6),),
                {"ns_per_round": 0.5},
                {"t.py:4": 8},
            ),
        ),
        calls=(values.UserCall(0, "<module>", "t.py:3", 50, 20), values.UserCall(1, "numpy.sum", "", 30, 30)),
        notes=("one",),
        findings=(values.Finding("rule", "title", {"n": 1}, 5, values.Remedy("text", command="glowplug"), 7, (3,)),),
        runs=values.Runs((100, 110), {"import": (40, 41)}, (1, 2)),
    )


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profile_json.write_profile(sample(), path)
    assert profile_json.read_profile(path) == sample()


def test_document_follows_the_published_schema() -> None:
    schema = json.loads(Path(values.__file__).with_name("profile.schema.json").read_text())
    jsonschema.validate(profile_json.encode(sample()), schema)
    assert tuple(schema["$defs"]["phase"]["enum"]) == values.PHASES


def test_phases_are_exclusive_and_sum_to_wall() -> None:
    phases = sample().phases
    assert phases["user_code"] == 40
    assert phases["import"] == 40
    assert phases["unaccounted"] == 10
    assert sum(phases.values()) == 100
    assert set(phases) == set(values.PHASES)


def test_existing_output_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("mine")
    with pytest.raises(OutputExistsError):
        profile_json.write_profile(sample(), path)
    assert path.read_text() == "mine"


def test_newer_schema() -> None:
    with pytest.raises(NewerSchemaError, match="schema 2"):
        profile_json.decode({**profile_json.encode(sample()), "schema": 2})


DAMAGE: dict[str, Any] = {
    "schema": "1",
    "command": [1],
    "exit_code": None,
    "wall_ns": 1.5,
    "environment": [],
    "spans": [{"id": 1}],
    "phases": {"import": "long"},
    "series": {"rss_bytes": [[1]]},
    "processes": [[]],
    "loops": [{"site": "x"}],
    "notes": "none",
    "findings": [{"rule": "r"}],
    "runs": {"wall_ns": 3},
}


@pytest.mark.parametrize("key", DAMAGE)
def test_damage_is_named(key: str) -> None:
    document = copy.deepcopy(profile_json.encode(sample()))
    document[key] = DAMAGE[key]
    with pytest.raises(ProfileDamagedError, match=key):
        profile_json.decode(document)


def test_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profile_json.write_profile(sample(), path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ProfileDamagedError, match="not JSON"):
        profile_json.read_profile(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        profile_json.read_profile(tmp_path / "none.json")
