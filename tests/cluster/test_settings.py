"""What a replica is told, and how a URL becomes a model with a name and a number. No Ray is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from glowplug.cluster.application import generation_of
from glowplug.cluster.ledger import Record
from glowplug.cluster.settings import Generation, ReplicaSettings
from glowplug.core.errors import UsageError


@pytest.mark.parametrize(
    ("url", "name", "version"),
    [
        ("s3://bucket/models/encoder/3", "encoder", 3),
        ("s3://bucket/models/encoder.glow", "encoder", 1),
        ("https://host/encoder/12", "encoder", 12),
    ],
)
def test_a_url_says_name_and_version(url: str, name: str, version: int) -> None:
    (choice,) = generation_of(url).models
    assert (choice.name, choice.url, choice.version) == (name, url, version)


def test_a_digest_stays_with_the_url() -> None:
    pinned = f"s3://bucket/encoder/3@{'a' * 64}"
    (choice,) = generation_of({"other": pinned}).models
    assert (choice.name, choice.url, choice.version) == ("other", pinned, 3)


def test_without_a_number_in_the_url_the_generation_counts() -> None:
    (choice,) = generation_of("s3://bucket/encoder", number=5).models
    assert choice.version == 5


def test_wrong_settings_are_named() -> None:
    with pytest.raises(UsageError, match="no such setting"):
        ReplicaSettings.from_json({"batches": True})
    with pytest.raises(UsageError, match="out of range"):
        ReplicaSettings.from_json({"resident": -1})
    with pytest.raises(UsageError, match="no model"):
        generation_of({})
    with pytest.raises(UsageError, match="cannot have spaces"):
        generation_of({"a b": "s3://bucket/m"})


def test_a_record_is_the_same_after_json() -> None:
    generation = Generation(4, generation_of({"a": "s3://b/c/2", "d": "s3://b/e"}).models)
    record = Record(generation, ReplicaSettings(batching=True, op_libraries=("x",)), 2, None, "/r", {"max": 1})
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_importing_the_cluster_loads_neither_ray_nor_numpy() -> None:
    code = "import sys, glowplug.cluster; print(sorted({'ray', 'numpy', 'tensorflow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
