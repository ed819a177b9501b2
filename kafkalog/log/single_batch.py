"""One batch at a place of a file: what its header says, and whether its checksum is right.

The bytes are summed up by windows, so a batch of any size costs little memory.

Source: Kafka DefaultRecordBatch.ensureValid, LegacyRecord.ensureValid.
"""

from __future__ import annotations

import numpy as np

from kafkalog.format.checksum import extend_crc32, extend_crc32c
from kafkalog.format.constants import LEGACY_CRC_START, MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD
from kafkalog.format.record_batch import BATCH_ROW, CRC_START
from kafkalog.kernels.scan_batches import scan_batches
from kafkalog.kernels.status import NEED_MORE, OK
from kafkalog.log.storage import SourceFile

_WINDOW_BYTES = 1024 * 1024


def whole_batch_at(file: SourceFile, position: int, end: int) -> np.void | None:
    """The row (BATCH_ROW) of the whole batch that begins at `position` and ends at `end` or before,
    by its header alone; None if none does. OSError, LogChangedError as from reading.
    """
    return header_at(file, position, end)[0]


def header_at(file: SourceFile, position: int, end: int) -> tuple[np.void | None, int]:
    """The same, and the status of kernels.status that says why there is none."""
    if not 0 <= position < end:
        return None, NEED_MORE
    # The same walk as over whole files, given the bytes of one header: one place says what a header
    # may be.
    head = np.empty(min(RECORD_BATCH_OVERHEAD, end - position), np.uint8)
    file.read_into(head, position, head.size)
    rows = np.zeros(1, BATCH_ROW)
    count, status, _ = scan_batches(head, 0, head.size, end - position, position, rows)
    row: np.void = rows[0]
    return (row, OK) if count else (None, int(status))


def sound_batch_at(file: SourceFile, position: int, end: int) -> np.void | None:
    """The same of a batch that has the checksum it states."""
    row = whole_batch_at(file, position, end)
    return row if row is not None and has_right_checksum(file, row) else None


def has_right_checksum(file: SourceFile, row: np.void) -> bool:
    """Whether the bytes of a batch have the checksum that its header states."""
    is_current = row["magic"] == MAGIC_VALUE_V2
    extend = extend_crc32c if is_current else extend_crc32
    at = int(row["position"]) + (CRC_START if is_current else LEGACY_CRC_START)
    end, crc = int(row["position"]) + int(row["size_in_bytes"]), 0
    buf = np.empty(min(_WINDOW_BYTES, end - at), np.uint8)
    while at < end:
        length = min(buf.size, end - at)
        file.read_into(buf, at, length)
        crc = extend(crc, buf[:length].data)
        at += length
    return crc == int(row["crc"])
