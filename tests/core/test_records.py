"""Values without `dataclasses`, which take them for its own."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from glowplug.core.manifest import LiteRTSettings, Manifest, PackedWeights, Port, TensorSpec
from glowplug.core.records import Record

_NOTHING: Mapping[str, Any] = {}


class Point(Record):
    """Two numbers and what is known of them."""

    x: int
    y: int = 0
    notes: Mapping[str, Any] = _NOTHING


def test_fields_come_by_place_or_by_name() -> None:
    assert Point(1, 2) == Point(y=2, x=1)
    assert Point(1) == Point(1, 0, {})
    assert Point(1) != Point(1, 1)
    assert Point(1) != (1, 0, {})
    assert repr(Point(1)) == "Point(x=1, y=0, notes={})"
    assert hash(TensorSpec("int8", (1,))) == hash(TensorSpec("int8", (1,)))


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, {}, 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})]
)
def test_a_wrong_call_is_a_type_error(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_nothing_changes() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.other = 2  # type: ignore[attr-defined]
    assert point == Point(1)


def test_dataclasses_and_others_take_them() -> None:
    settings = LiteRTSettings("compiled", packed=PackedWeights("m", 3, "d"))
    assert dataclasses.is_dataclass(settings)
    assert dataclasses.replace(settings, largest=1e12).largest == 1e12
    assert dataclasses.asdict(settings)["packed"] == {"machine": "m", "size": 3, "sha256": "d"}
    assert [one.name for one in dataclasses.fields(Manifest)] == list(Manifest.__match_args__)
    port = Port(TensorSpec("float32", (None, 3)), "x:0")
    assert pickle.loads(pickle.dumps(port)) == copy.deepcopy(port) == port
    match port:
        case Port(TensorSpec(dtype), tensor):
            assert (dtype, tensor) == ("float32", "x:0")


def test_a_load_of_litert_brings_little_with_it() -> None:
    """What a small model would wait for: each of these takes a millisecond or more."""
    code = (
        "import sys, numpy; before = set(sys.modules);"
        "import glowplug.loader.open, glowplug.loader.model, glowplug.loader.arguments, glowplug.loader.engines.litert;"
        "print(*sorted(set(sys.modules) - before))"
    )
    brought = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"dataclasses", "pathlib", "hashlib", "_hashlib", "threading", "numpy.typing", "urllib.parse", "shutil"}
    assert not heavy & set(brought)
    assert len([name for name in brought if name.startswith("glowplug")]) <= 33
