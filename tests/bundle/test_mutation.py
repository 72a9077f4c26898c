"""Damage of every kind: nothing but a `BundleError` may come out, and `verify` misses no changed byte."""

from __future__ import annotations

import contextlib
import random

import pytest

from glowplug.bundle.reader import open_bundle
from glowplug.bundle.verify import verify
from glowplug.core.errors import BundleError

from .samples import GOLDEN, copy_golden

FILES = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*") if path.is_file())


def damages(data: bytes, seed: str):
    """Yield every kind of damage, every position of a small file and some of a larger one."""
    chance = random.Random(seed)
    positions = range(len(data)) if len(data) <= 128 else chance.sample(range(len(data)), 120)
    for position in positions:
        yield data[:position] + bytes([data[position] ^ 1 << chance.randrange(8)]) + data[position + 1 :]
    for position in chance.sample(range(len(data)), min(20, len(data))):
        yield data[:position]
        yield data[:position] + data[position + 1 :]
        yield data[:position] + b"\0" + data[position:]
        yield data[:position] + chance.randbytes(len(data) - position)


@pytest.mark.parametrize("path", FILES)
def test_no_damage_passes_and_none_surprises(path, tmp_path):
    root = copy_golden(tmp_path / "bundle")
    data = (root / path).read_bytes()
    count = 0
    for damaged in damages(data, path):
        if damaged == data:
            continue
        (root / path).write_bytes(damaged)
        with pytest.raises(BundleError):
            verify(root)
        with contextlib.suppress(BundleError):
            open_bundle(root)
        count += 1
    assert count > 50
    (root / path).write_bytes(data)
    verify(root)
