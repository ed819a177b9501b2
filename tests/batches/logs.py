"""A small log with every codec, and its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.record import Record
from kafkalog.format.record_batch import BATCH_ROW, pack_batch
from kafkalog.kernels.scan_batches import scan_batches
from kafkalog.kernels.status import OK

RECORDS = [
    Record(100 + 3 * i, 1000 - i, b"key-%d" % (i % 4), None if i == 5 else b"value" * i)
    for i in range(12)
]
EMPTY_BATCH = pack_batch([], base_offset=140, last_offset=149, producer_id=7, producer_epoch=0)
BATCHES = [
    pack_batch(RECORDS, codec=0),
    EMPTY_BATCH,
    *(pack_batch(RECORDS, codec=codec) for codec in (1, 2, 3, 4)),
    pack_batch(RECORDS[:1], codec=0),
]
LOG = b"".join(BATCHES)
UNCOMPRESSED = BATCHES[0] + EMPTY_BATCH + BATCHES[-1]


def rows_of(data: bytes, file_position: int = 0) -> NDArray[np.void]:
    """The rows of a log that is sound."""
    rows = np.zeros(len(data) // 61, BATCH_ROW)
    buf = np.frombuffer(data, np.uint8)
    count, status, _ = scan_batches(buf, 0, buf.size, buf.size, file_position, rows)
    assert status == OK
    return rows[:count]
