"""Batches that are checked in one go: what is said of them is what the way step by step says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkalog.batches.arena import Arena
from kafkalog.batches.checked_records import check_compressed
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import CompressionType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import field_position, pack_batch
from kafkalog.kernels.check_records import check_records
from kafkalog.kernels.status import OK
from tests.batches.logs import BATCHES, EMPTY_BATCH, LOG, RECORDS, rows_of
from tests.support.packing import pack_legacy_entries

CAP = 1 << 20
LZ4, ZSTD = CompressionType.LZ4, CompressionType.ZSTD
OF_CODEC = {codec: pack_batch(RECORDS, codec=codec) for codec in CompressionType}
WHOLE = [*OF_CODEC.values(), EMPTY_BATCH]


def at_once(data: bytes, cap: int = CAP, position: int = 0) -> list[tuple[int, int]]:
    """(largest timestamp, fold) of each batch that was checked."""
    buf, rows = np.frombuffer(data, np.uint8), rows_of(data, position)
    return list(zip(*map(np.ndarray.tolist, check_compressed(buf, position, rows, Arena(), cap)),
                    strict=True))  # fmt: skip


def step_by_step(data: bytes, cap: int = CAP) -> list[tuple[int, int]]:
    """The same of all batches in front of the first that is not sound."""
    buf, rows = np.frombuffer(data, np.uint8), rows_of(data)
    found: list[tuple[int, int]] = []
    for b in range(rows.size):
        largest, fold = np.empty((2, 1), np.int64)
        try:
            areas = open_record_areas(buf, 0, rows[b : b + 1], Arena(), max_bytes=cap)
        except KafkaLogError:
            break
        if check_records(areas.buf, areas.rows, areas.starts, areas.ends, largest, fold)[1] != OK:
            break
        found.append((int(largest[0]), int(fold[0])))
    return found


@given(st.lists(st.sampled_from([OF_CODEC[LZ4], OF_CODEC[ZSTD], EMPTY_BATCH]), min_size=1))
def test_zstd_lz4_and_empty_batches_are_checked_to_the_last(batches: list[bytes]) -> None:
    data = b"".join(batches)
    expected = step_by_step(data)
    assert len(expected) == len(batches)
    # Where nothing is compressed the step by step way is the short one.
    is_left = all(batch == EMPTY_BATCH for batch in batches)
    assert at_once(data) == ([] if is_left else expected)
    assert at_once(data, position=1000) == at_once(data)


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_every_changed_byte_is_judged_as_step_by_step(codec: int) -> None:
    batch = OF_CODEC[codec]
    lost = 0
    # Lengths, magic and counts are the scan's; counts have a test of their own.
    for at in {*range(len(batch))} - _looked_at(0):
        for bits in (1, 0x80, 0xFF):
            data = batch + batch[:at] + bytes([batch[at] ^ bits]) + batch[at + 1 :] + batch
            expected = step_by_step(data)
            found = at_once(data)
            # What is odd may be left to the other way, what is not sound is never passed.
            assert found == expected[: len(found)]
            assert len(found) >= 1
            lost += len(found) < 3
    assert lost > 10


@given(
    st.lists(st.sampled_from(WHOLE), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3),
)
@example([OF_CODEC[ZSTD]] * 2, [])
def test_no_batch_is_passed_that_is_not_sound(
    batches: list[bytes], xors: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join(batches))
    starts = np.cumsum([0, *map(len, batches)])[:-1].tolist()
    scanned = {at for start in starts for at in _looked_at(start)}
    for at, bits in xors:
        if at < len(data) and at not in scanned:
            data[at] ^= bits
    found, expected = at_once(bytes(data)), step_by_step(bytes(data))
    assert found == expected[: len(found)]


def _looked_at(start: int) -> set[int]:
    """What `scan_batches` looks at of a batch."""
    places = [*range(8, 17), *range(field_position("records_count"), 61)]
    return {start + at for at in places}


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
@pytest.mark.parametrize("count", [11, 13, 5000, 2**31 - 1])
def test_a_forged_count_is_left_to_the_way_that_says_so(codec: int, count: int) -> None:
    data = bytearray(OF_CODEC[codec] * 2)
    at = len(OF_CODEC[codec]) + field_position("records_count")
    data[at : at + 4] = count.to_bytes(4, "big")
    assert len(at_once(bytes(data))) == 1


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_what_is_above_the_cap_or_large_is_left(codec: int) -> None:
    small, large = OF_CODEC[codec], pack_batch([Record(5, 0, None, bytes(2_000_000))], codec=codec)
    assert len(at_once(small + large + small)) == 1
    assert at_once(small, cap=100) == []


@pytest.mark.parametrize("codec", [0, 1, 2])
def test_other_codecs_are_left(codec: int) -> None:
    assert at_once(OF_CODEC[CompressionType(codec)]) == []
    assert len(at_once(OF_CODEC[ZSTD] + OF_CODEC[CompressionType(codec)])) == 1


def test_legacy_entries_are_left() -> None:
    assert at_once(pack_legacy_entries(RECORDS, 1, codec=LZ4) + OF_CODEC[ZSTD]) == []
    assert at_once(LOG) == []
    assert at_once(b"".join(BATCHES[4:6])) == step_by_step(LOG)[4:6]
