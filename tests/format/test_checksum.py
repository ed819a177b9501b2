from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.buffers import BytesLike
from kafkalog.format.checksum import crc32, crc32c
from tests.support import kafka_python

CHECK = b"123456789"
SHAPES: list[BytesLike] = [
    CHECK,
    bytearray(CHECK),
    memoryview(CHECK),
    memoryview(bytearray(CHECK)),
    np.frombuffer(CHECK, np.uint8),
    np.frombuffer(b"xx" + CHECK, np.uint8)[2:].copy(),
]


@pytest.mark.parametrize("data", SHAPES, ids=lambda data: type(data).__name__)
def test_crcs_have_their_check_values_for_every_kind_of_buffer(data: BytesLike) -> None:
    assert crc32c(data) == 0xE3069283
    assert crc32(data) == 0xCBF43926


@given(st.binary(max_size=300))
def test_crcs_equal_other_implementations(data: bytes) -> None:
    assert crc32c(memoryview(data)) == kafka_python.crc32c(data)
    assert crc32(memoryview(data)) == zlib.crc32(data)
