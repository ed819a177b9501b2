from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptSnapshotError
from kafkalog.format.checksum import crc32c
from kafkalog.format.producer_snapshot import (
    ProducerEntry,
    pack_producer_snapshot,
    parse_producer_snapshot,
)
from tests.format.vectors import SPEC_SNAPSHOT

ENTRY = ProducerEntry(7, 3, 43, 203, 3, 5000, 9, -1)
i16, i32, i64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
entries = st.builds(ProducerEntry, i64, i16, i32, i64, i32, i64, i32, i64)


def with_crc(body: bytes, version: int = 1) -> bytes:
    return struct.pack(">hI", version, crc32c(body)) + body


def test_snapshot_of_the_specification_parses_and_packs() -> None:
    assert parse_producer_snapshot(SPEC_SNAPSHOT) == [ENTRY]
    assert pack_producer_snapshot([ENTRY]) == SPEC_SNAPSHOT


@given(st.lists(entries, max_size=8))
def test_snapshot_round_trip(producers: list[ProducerEntry]) -> None:
    data = pack_producer_snapshot(producers)
    assert len(data) == 10 + 46 * len(producers)
    assert parse_producer_snapshot(bytearray(data)) == producers


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are no producer snapshot"),
        (SPEC_SNAPSHOT[:9], "9 bytes are no producer snapshot"),
        (SPEC_SNAPSHOT[:-1], "CRC"),
        (SPEC_SNAPSHOT + b"\0", "CRC"),
        (b"\0\2" + SPEC_SNAPSHOT[2:], "version 2, not 1"),
        (with_crc(SPEC_SNAPSHOT[6:-1]), "1 entries, but 45 bytes"),
        (with_crc(struct.pack(">i", 2**31 - 1)), "2147483647 entries, but 0 bytes"),
        (with_crc(struct.pack(">i", -1)), "-1 entries"),
    ],
)
def test_malformed_snapshot_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptSnapshotError, match=reason) as caught:
        parse_producer_snapshot(data, "t-0/5.snapshot")
    assert caught.value.path == "t-0/5.snapshot"


def test_every_flipped_bit_is_noticed() -> None:
    for bit in range(8 * len(SPEC_SNAPSHOT)):
        damaged = bytearray(SPEC_SNAPSHOT)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptSnapshotError):
            parse_producer_snapshot(damaged)


@given(st.binary(max_size=120))
def test_body_of_garbage_is_parsed_or_corrupt(body: bytes) -> None:
    with contextlib.suppress(CorruptSnapshotError):
        assert len(parse_producer_snapshot(with_crc(body))) * 46 <= len(body)
