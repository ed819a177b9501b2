from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kafkalog.format.record import Record, pack_records
from kafkalog.kernels import status
from kafkalog.kernels.record_facts import (
    HIDDEN,
    KEYLESS,
    RECORD_FACT,
    TOMBSTONE,
    TRANSACTIONAL,
    record_facts,
)
from tests.format.strategies import record_lists
from tests.kernels.arrays import batch_row, read_only
from tests.support.reference.siphash import siphash_1_3, siphash_2_4_128

SECRET = bytes(range(16))
NULL, HEADER = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
WORD = 2**64 - 1


def facts(
    payload: bytes, row: NDArray[np.void], *, flags: int = 0, previous: int = -1
) -> tuple[NDArray[np.void], int]:
    """(rows, status) of one batch whose records are `payload`."""
    row["last_offset"] = 2**62
    k0, k1 = np.frombuffer(SECRET, np.uint64)
    out = np.zeros(int(row["records_count"][0]), RECORD_FACT)
    spans = np.array([0], np.int64), np.array([len(payload)], np.int64)
    # A hash wraps around; interpreted numpy would warn.
    with np.errstate(over="ignore"):
        count, code, _, _ = record_facts(
            read_only(payload), row, *spans, np.array([flags], np.uint32), k0, k1,
            np.array([previous], np.int64), out,
        )  # fmt: skip
    return out[:count], code


def words(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")


def packed(first: int, second: int) -> bytes:
    return (first & WORD).to_bytes(8, "little") + (second & WORD).to_bytes(8, "little")


def expected(record: Record) -> tuple[tuple[int, int], int]:
    """(words of the key, hash of the rest), as the module's text says."""
    key, under = (0, 0), words(SECRET)
    if record.key is not None:
        key = under = words(siphash_2_4_128(packed(*under), record.key))
    second = under[1] ^ (NULL if record.value is None else 0)
    rest = siphash_1_3(packed(under[0] ^ (record.timestamp & WORD), second), record.value or b"")
    for name, value in record.headers:
        rest = siphash_1_3(packed(rest ^ HEADER, second), name)
        rest = siphash_1_3(packed(rest ^ (NULL if value is None else 0), second), value or b"")
    return key, rest


def test_the_plain_hash_is_the_one_of_pythons_own_tables() -> None:
    """Of which the secret is zeros with this seed; 0 and -1 stand for something else there."""
    assert sys.hash_info.algorithm == "siphash13"
    code = "print([hash(bytes(range(n))) for n in range(1, 40)])"
    asked = [sys.executable, "-c", code]
    told = subprocess.check_output(asked, env={**os.environ, "PYTHONHASHSEED": "0"})
    expected = [siphash_1_3(bytes(16), bytes(range(n))) for n in range(1, 40)]
    assert [each % 2**64 for each in json.loads(told)] == expected


@settings(max_examples=30)  # the plain hash is slow
@given(record_lists(), st.integers(-(2**40), 2**40))
def test_facts_are_hashes_of_the_parts(records: list[Record], base_timestamp: int) -> None:
    base = records[0].offset
    payload = pack_records(records, base, base_timestamp)
    found, code = facts(payload, batch_row(len(records), base, base_timestamp), flags=TRANSACTIONAL)
    assert code == status.OK
    for row, record in zip(found, records, strict=True):
        key, rest = expected(record)
        assert (int(row["offset"]), int(row["record"])) == (record.offset, rest)
        assert (int(row["key_first"]), int(row["key_second"])) == key
        flags = TRANSACTIONAL | KEYLESS * (record.key is None) | TOMBSTONE * (record.value is None)
        assert int(row["flags"]) == flags
    assert int(found["size"].sum()) == len(payload)


def test_a_record_is_the_same_in_any_batch_and_another_is_not() -> None:
    record = Record(7, 1000, b"key", b"value", ((b"h", None),))
    others = [
        Record(7, 1001, b"key", b"value", ((b"h", None),)),
        Record(7, 1000, b"keyv", b"alue", ((b"h", None),)),
        Record(7, 1000, b"key", b"valueh", ()),
        Record(7, 1000, b"key", b"value", ((b"h", b""),)),
        Record(7, 1000, None, b"value", ((b"h", None),)),
        Record(7, 1000, b"key", None, ((b"h", None),)),
        Record(7, 1000, b"key", b"", ((b"h", None),)),
    ]
    one = facts(pack_records([record], 7, 5), batch_row(1, 7, 5))[0]["record"][0]
    again = facts(pack_records([record], 0, 1000), batch_row(1, 0, 1000))[0]["record"][0]
    assert one == again
    hashes = {
        int(facts(pack_records([r], 7, 5), batch_row(1, 7, 5))[0]["record"][0]) for r in others
    }
    assert len(hashes | {int(one)}) == len(others) + 1


def test_log_append_time_counts_for_all_records_of_a_batch() -> None:
    payload = pack_records([Record(0, 5, b"k", b"v")], 0, 0)
    row = batch_row(1, 0, 0, log_append_timestamp=99)
    found, _ = facts(payload, row)
    assert int(found["record"][0]) == expected(Record(0, 99, b"k", b"v"))[1]


@pytest.mark.parametrize(
    ("payload", "count", "previous", "code"),
    [
        (pack_records([Record(3, 0, b"k", b"v")], 3, 0), 1, 3, status.OFFSET_ORDER),
        (pack_records([Record(3, 0, b"k", b"v")], 3, 0)[:-1], 1, -1, status.RECORD_TRUNCATED),
        (pack_records([Record(3, 0, b"k", b"v")], 3, 0) + b"\0", 1, -1, status.TRAILING_BYTES),
    ],
)
def test_what_breaks_the_format_is_a_status(
    payload: bytes, count: int, previous: int, code: int
) -> None:
    found, status_found = facts(payload, batch_row(count, 3), previous=previous, flags=HIDDEN)
    assert (found.size, status_found) == (0, code)
