from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kafkalog.batches import batch_table
from kafkalog.format.record_batch import BATCH_ROW, sequence_at
from tests.batches.logs import LOG, rows_of


def rows_with(name: str, values: list[int]) -> NDArray[np.void]:
    rows = np.zeros(len(values), BATCH_ROW)
    rows["magic"] = 2
    rows[name] = values
    return rows


def test_each_attribute_bit_has_its_meaning() -> None:
    attributes = [0, 1, 4, 7, 0x08, 0x10, 0x20, 0x40, 0x7F, -1]
    rows = rows_with("attributes", attributes)
    assert batch_table.codecs(rows).tolist() == [a & 7 for a in attributes]
    assert batch_table.timestamp_types(rows).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 1, 1]
    for mask, function in (
        (0x10, batch_table.is_transactional),
        (0x20, batch_table.is_control),
        (0x40, batch_table.has_delete_horizon),
    ):
        assert function(rows).tolist() == [bool(a & mask) for a in attributes]


def test_unknown_high_attribute_bits_change_nothing() -> None:
    rows = rows_with("attributes", [0x7F00, -256])
    assert batch_table.codecs(rows).tolist() == [0, 0]
    assert not batch_table.is_control(rows).any()


def test_a_producer_is_known_by_its_id_not_by_its_sequence() -> None:
    rows = rows_with("producer_id", [-1, 0, 5])
    rows["base_sequence"] = [0, -1, 3]
    assert batch_table.has_producer_id(rows).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("base_sequence", "delta"),
    [(-1, 5), (0, 0), (7, 100), (2**31 - 1, 0), (2**31 - 1, 1), (2**31 - 3, 2**31 - 1)],
)
def test_last_sequences_wrap_to_zero(base_sequence: int, delta: int) -> None:
    rows = rows_with("base_sequence", [base_sequence])
    rows["base_offset"], rows["last_offset"] = 2**40, 2**40 + delta
    expected = sequence_at(base_sequence, delta)
    assert batch_table.last_sequences(rows).tolist() == [expected]


def test_checksums_are_verified_batch_by_batch() -> None:
    rows = rows_of(LOG)
    buf = np.frombuffer(LOG, np.uint8)
    assert batch_table.verify_checksums(buf, 0, rows).all()
    for b in range(len(rows)):
        # The last byte, and the first the CRC covers.
        for position in (
            int(rows["position"][b]) + int(rows["size_in_bytes"][b]) - 1,
            int(rows["position"][b]) + 21,
        ):
            damaged = buf.copy()
            damaged[position] ^= 1
            good = batch_table.verify_checksums(damaged, 0, rows)
            assert np.flatnonzero(~good).tolist() == [b]


def test_checksums_of_a_chunk_count_from_its_position() -> None:
    rows = rows_of(LOG)[2:]
    start = int(rows["position"][0])
    buf = np.frombuffer(LOG[start:], np.uint8)
    assert batch_table.verify_checksums(buf, start, rows).all()


def test_no_batches_have_no_checksums() -> None:
    assert batch_table.verify_checksums(np.empty(0, np.uint8), 0, rows_of(b"")).size == 0
