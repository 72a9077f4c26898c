"""The index of a checkpoint, written here by hand as TensorFlow writes it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glowplug.core.checkpoint_index import StoredEntry, measure_duplicates, read_index

MAGIC = 0xDB4775248B80FB57


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(entries: list[tuple[bytes, bytes]]) -> bytes:
    out, last = b"", b""
    for key, value in entries:
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return out + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def table(entries: list[tuple[str, bytes]]) -> bytes:
    data = block([(b"", b"header"), *((key.encode(), value) for key, value in entries)])
    body = data + b"\0" + bytes(4)
    index = block([(b"z", varint(0) + varint(len(data)))])
    handle = varint(0) + varint(0) + varint(len(body)) + varint(len(index))
    footer = handle + bytes(40 - len(handle)) + MAGIC.to_bytes(8, "little")
    return body + index + b"\0" + bytes(4) + footer


def entry(size: int, crc: int) -> bytes:
    return b"\x08\x01" + b"\x12\x04\x12\x02\x08\x02" + b"\x28" + varint(size) + b"\x35" + crc.to_bytes(4, "little")


def test_entries_and_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "variables.index"
    path.write_bytes(
        table(
            [
                ("_all/0/VALUE", entry(100, 1)),
                ("_all/1/VALUE", entry(50, 9)),
                ("_all/2/VALUE", entry(50, 9)),
                ("variables/0/VALUE", entry(100, 1)),
                ("variables/1/VALUE", entry(70, 3)),
            ]
        )
    )
    entries = read_index(path)
    assert [item.key for item in entries][:2] == ["_all/0/VALUE", "_all/1/VALUE"]
    assert (entries[0].size, entries[0].crc32c, entries[0].dtype, entries[0].top) == (100, 1, 1, "_all")
    assert measure_duplicates(entries) == (370, 100)


def test_equal_values_of_one_attribute_are_no_copy() -> None:
    zeros = [StoredEntry(f"variables/{number}", 1, b"", 40, 7) for number in range(5)]
    assert measure_duplicates(zeros) == (200, 0)


@pytest.mark.parametrize("damage", ["empty", "magic", "short", "compressed"])
def test_what_is_no_index_is_refused(tmp_path: Path, damage: str) -> None:
    whole = table([("a/0", entry(4, 1))])
    data = {
        "empty": b"",
        "magic": whole[:-1] + b"\0",
        "short": whole[20:],
        "compressed": whole.replace(b"\0" + bytes(4), b"\1" + bytes(4)),
    }[damage]
    path = tmp_path / "variables.index"
    path.write_bytes(data)
    with pytest.raises(ValueError):
        read_index(path)


@settings(max_examples=200)
@given(st.data())
def test_flipped_bytes_never_do_worse_than_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(table([("a/0", entry(4, 1)), ("a/1", entry(8, 2)), ("b/0", entry(4, 1))]))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(whole) - 9))
        whole[position] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("flip") / "variables.index"
    path.write_bytes(bytes(whole))
    with contextlib.suppress(ValueError):
        measure_duplicates(read_index(path))
