"""What the call itself holds against its arrays; what it finds is in tests/batches."""

from __future__ import annotations

import numpy as np
import pytest

from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType
from kafkalog.format.record import Record, pack_records
from kafkalog.native.checked_records import check_compressed_records
from tests.kernels.arrays import batch_row

ZSTD = int(CompressionType.ZSTD)
RECORDS = [Record(5, 7, b"k", b"v" * 50)]
PLAIN = pack_records(RECORDS, 5, 0)
BUF = np.frombuffer(compress(ZSTD, PLAIN) * 2, np.uint8)
SIZE = BUF.size // 2


def check(
    starts: tuple[int, int] = (0, SIZE),
    ends: tuple[int, int] = (SIZE, 2 * SIZE),
    room: int = len(PLAIN),
    memory_bytes: int = len(PLAIN),
    count: int = 1,
    short: int = 0,
) -> int:
    """Of two batches; a byte behind the memory must stay as it is."""
    row = batch_row(1, 5)
    row["last_offset"] = 5
    rows = np.concatenate([row, row])
    rows["records_count"][1] = count
    memory = np.full(memory_bytes + 1, 0xEE, np.uint8)
    arrays = [np.array(each, np.int64) for each in ((ZSTD, ZSTD), starts, ends, (len(PLAIN), room))]
    arrays[3] = arrays[3][: 2 - short]
    with np.errstate(over="ignore"):  # folds wrap around
        done = check_compressed_records(
            BUF, rows, *arrays, memory[:-1], *np.empty((2, 2), np.int64)
        )
    assert memory[-1] == 0xEE
    return done


def test_it_stops_where_there_is_no_room_or_no_block() -> None:
    assert check() == 2
    assert check(room=0) == 1
    assert check(room=-1) == 1
    assert check(room=len(PLAIN) - 1) == 1
    assert check(room=len(PLAIN) + 1) == 1
    assert check(memory_bytes=len(PLAIN) - 1) == 0
    assert check(ends=(SIZE, 2 * SIZE - 1)) == 1
    assert check(count=-1) == 1
    assert check(count=2) == 1


def test_of_an_empty_batch_nobody_looks_at_the_bytes() -> None:
    assert check(count=0, room=0) == 2


@pytest.mark.parametrize(
    ("start", "end"), [(-1, 4), (0, 1 << 40), (1 << 40, (1 << 40) + 9), (5, 4), (0, -1)]
)
def test_a_batch_outside_its_buffer_is_an_index_error(start: int, end: int) -> None:
    with pytest.raises(IndexError, match="batch 1 is not within"):
        check(starts=(0, start), ends=(SIZE, end))


def test_arrays_of_different_lengths_are_an_index_error() -> None:
    with pytest.raises(IndexError, match="different lengths"):
        check(short=1)
