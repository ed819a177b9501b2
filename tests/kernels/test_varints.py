from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import KafkaLogError
from kafkalog.format.varint import pack_varint, pack_varlong, parse_varint, parse_varlong
from kafkalog.kernels import varints
from kafkalog.kernels.varints import VARINT_CUT, VARINT_OVERLONG
from tests.kernels.arrays import read_only
from tests.kernels.helpers import from_python

read_varint = from_python(varints.read_varint)
read_varlong = from_python(varints.read_varlong)
varint_size = from_python(varints.varint_size)
write_varint = from_python(varints.write_varint)

# From the protocol's description of zigzag varints: value, bytes.
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
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]
LONG_BOUNDARIES = [
    (2**31, "8080808010"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "encoded"), BOUNDARIES)
def test_a_varint_reads_at_every_boundary(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert read_varint(read_only(data), 0, len(data)) == (value, len(data))


@pytest.mark.parametrize(("value", "encoded"), BOUNDARIES + LONG_BOUNDARIES)
def test_a_varlong_reads_and_writes_at_every_boundary(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert read_varlong(read_only(data), 0, len(data)) == (value, len(data))
    out = np.full(12, 0xEE, np.uint8)
    assert write_varint(out, 1, value) == 1 + len(data)
    assert out.tobytes() == b"\xee" + data + b"\xee" * (11 - len(data))
    assert varint_size(value) == len(data)


@pytest.mark.parametrize(("value", "encoded"), BOUNDARIES + LONG_BOUNDARIES)
def test_a_varint_cut_anywhere_is_not_read_past_its_end(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    for end in range(len(data)):
        assert read_varlong(read_only(data), 0, end)[1] == VARINT_CUT


def test_a_varint_of_too_many_bytes_is_overlong() -> None:
    data = read_only(b"\x80" * 20)
    assert read_varint(data, 0, 20)[1] == VARINT_OVERLONG
    assert read_varlong(data, 0, 20)[1] == VARINT_OVERLONG
    assert read_varint(data, 0, 4)[1] == VARINT_CUT
    assert read_varlong(data, 0, 9)[1] == VARINT_CUT


def test_bits_past_32_are_dropped_and_longer_encodings_accepted() -> None:
    assert read_varint(read_only(b"\x82\x80\x80\x80\x70"), 0, 5) == (1, 5)
    assert read_varint(read_only(b"\x82\x80\x00"), 0, 3) == (1, 3)


@given(st.binary(min_size=1, max_size=12))
def test_any_bytes_read_as_the_plain_codec_reads_them(data: bytes) -> None:
    for read, parse in ((read_varint, parse_varint), (read_varlong, parse_varlong)):
        value, next_pos = read(read_only(data), 0, len(data))
        try:
            expected = parse(data, 0)
        except KafkaLogError:
            assert next_pos < 0
        else:
            assert (value, next_pos) == expected


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_value_writes_as_the_plain_codec_packs_it(value: int) -> None:
    out = np.zeros(10, np.uint8)
    size = write_varint(out, 0, value)
    assert out[:size].tobytes() == pack_varlong(value)
    if -(2**31) <= value < 2**31:
        assert out[:size].tobytes() == pack_varint(value)
