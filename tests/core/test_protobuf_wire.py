"""Numbers of variable length, against protobuf's own encoder, and what is none."""

from __future__ import annotations

import pytest
from google.protobuf.internal import encoder
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.protobuf_wire import bytes_field, integer_field, read_varint, write_varint


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_comes_back_and_what_stands_around_it_is_not_read(value: int, before: bytes, after: bytes) -> None:
    written = write_varint(value)
    data = before + written + after
    assert read_varint(data, len(before), len(data)) == (value, len(before) + len(written))
    with pytest.raises(ValueError):
        read_varint(data, len(before), len(before) + len(written) - 1)


@given(st.integers(-(2**63), 2**64 - 1))
def test_numbers_are_written_as_protobuf_writes_them(value: int) -> None:
    assert write_varint(value) == encoder._VarintBytes(value % 2**64)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"]
)
def test_what_is_cut_off_or_too_large_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="byte 0"):
        read_varint(data, 0, len(data))


def test_a_longer_form_is_read_as_protobuf_reads_it() -> None:
    assert read_varint(b"\x81\x80\x00", 0, 3) == (1, 3)
    assert read_varint(b"\xff" * 9 + b"\x01", 0, 10) == (2**64 - 1, 10)


def test_fields() -> None:
    assert integer_field(3, -1) == b"\x18" + b"\xff" * 9 + b"\x01"
    assert bytes_field(16, b"ab") == b"\x82\x01\x02ab"
