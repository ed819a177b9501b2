from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptRecordError
from kafkalog.format import varint
from tests.support import kafka_python

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)

# The last and first value of every length.
BOUNDARIES = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (-8192, "ff7f"),
    (8192, "808001"),
    (1048575, "feff7f"),
    (1048576, "80808001"),
    (134217727, "feffff7f"),
    (134217728, "8080808001"),
    (2147483647, "feffffff0f"),
    (-2147483648, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), BOUNDARIES)
def test_varint_has_kafkas_bytes_at_each_length_boundary(value: int, encoded: str) -> None:
    assert varint.pack_varint(value).hex() == encoded
    assert varint.pack_varlong(value).hex() == encoded
    assert varint.parse_varint(bytes.fromhex(encoded)) == (value, len(encoded) // 2)


@given(I64)
def test_varlong_equals_kafka_python(value: int) -> None:
    expected = bytearray()
    kafka_python.encode_varint(value, expected.append)
    assert varint.pack_varlong(value) == expected
    assert varint.parse_varlong(bytes(expected)) == kafka_python.decode_varint(expected)


@given(I32, st.binary(max_size=4), st.binary(max_size=4))
def test_varint_round_trip_at_any_position(value: int, before: bytes, after: bytes) -> None:
    packed = varint.pack_varint(value)
    data = before + packed + after
    assert varint.parse_varint(data, len(before)) == (value, len(before) + len(packed))


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varint_round_trip(value: int) -> None:
    packed = varint.pack_unsigned_varint(value)
    assert varint.parse_unsigned_varint(packed) == (value, len(packed))


def test_over_long_encoding_is_accepted() -> None:
    assert varint.parse_varint(bytes.fromhex("8280808000")) == (1, 5)
    assert varint.parse_varlong(bytes.fromhex("82808080808080808000")) == (1, 10)


def test_value_bits_past_the_width_are_shifted_out() -> None:
    # The fifth byte of a varint has room for 4 bits, the tenth of a varlong for one.
    assert varint.parse_varint(bytes.fromhex("ffffffff7f")) == (-(2**31), 5)
    assert varint.parse_varlong(bytes.fromhex("ffffffffffffffffff7f")) == (-(2**63), 10)


@pytest.mark.parametrize("parse", [varint.parse_varint, varint.parse_unsigned_varint])
def test_sixth_byte_of_a_varint_is_corrupt(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(CorruptRecordError, match="longer than 5 bytes") as caught:
        parse(b"\x00" + b"\x80" * 5 + b"\x00", 1)
    assert caught.value.position == 1


def test_eleventh_byte_of_a_varlong_is_corrupt() -> None:
    with pytest.raises(CorruptRecordError, match="longer than 10 bytes"):
        varint.parse_varlong(b"\x80" * 10 + b"\x00")


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_cut_number_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="cut off"):
        varint.parse_varint(data)


def test_end_bounds_the_read_even_if_bytes_follow() -> None:
    assert varint.parse_varint(b"\x80\x01", 0, 2) == (64, 2)
    with pytest.raises(CorruptRecordError, match="cut off"):
        varint.parse_varint(b"\x80\x01", 0, 1)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_packing_refuses_what_32_bits_cannot_hold(value: int) -> None:
    with pytest.raises(ValueError, match="32-bit"):
        varint.pack_varint(value)
