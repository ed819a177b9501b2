"""Columns and masks over batch headers: what a `BATCH_ROW` array says, batch by batch.

Every function takes rows BATCH_ROW[b] and returns an array of b elements. Kafka looks at the low
byte of the attributes only, so unknown high bits change nothing here.

Source: Kafka DefaultRecordBatch.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.checksum import crc32
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    DELETE_HORIZON_FLAG_MASK,
    LEGACY_CRC_START,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V2,
    MAX_INT32,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    CompressionType,
    TimestampType,
)
from kafkalog.format.record_batch import CRC_START
from kafkalog.native.checksums import crc32c_of_ranges, extend_by_batches

Rows: TypeAlias = NDArray[np.void]
Mask: TypeAlias = NDArray[np.bool_]

WRONG_CHECKSUM = "stored checksum differs from the one of the bytes"


def codecs(rows: Rows) -> NDArray[np.int16]:
    """Codec ids (CompressionType, or 5 to 7, which nobody has assigned)."""
    result: NDArray[np.int16] = rows["attributes"] & COMPRESSION_CODEC_MASK
    return result


def timestamp_types(rows: Rows) -> NDArray[np.int16]:
    """TimestampType: 0 CREATE_TIME, 1 LOG_APPEND_TIME, -1 for magic 0, which has no timestamps."""
    # The bit means nothing in magic 0, whatever it is.
    types = _has_flag(rows, TIMESTAMP_TYPE_MASK).astype(np.int16)
    types[rows["magic"] == MAGIC_VALUE_V0] = TimestampType.NO_TIMESTAMP_TYPE
    return types


def is_legacy(rows: Rows) -> Mask:
    """Entries of magic 0 and 1, plain or wrappers."""
    result: Mask = rows["magic"] < MAGIC_VALUE_V2
    return result


def is_legacy_wrapper(rows: Rows) -> Mask:
    """Compressed entries of magic 0 and 1: until they are opened only their last offset is
    known.
    """
    result: Mask = is_legacy(rows) & (codecs(rows) != CompressionType.NONE)
    return result


def is_transactional(rows: Rows) -> Mask:
    """Batches of a transaction, its markers included."""
    return _has_flag(rows, TRANSACTIONAL_FLAG_MASK)


def is_control(rows: Rows) -> Mask:
    """Batches whose records are markers, not data."""
    return _has_flag(rows, CONTROL_FLAG_MASK)


def shows_compaction(rows: Rows, last_offset: int) -> Mask:
    """Batches as only compaction leaves them: with a delete horizon, with fewer records than
    offsets, or behind offsets that are missing. `last_offset` is that of the batch in front of
    them.
    """
    # Producers write offsets without gaps, within a batch and between batches: what has a gap was
    # compacted, or lost something.
    span = rows["last_offset"] - rows["base_offset"] + 1
    is_current = rows["magic"] >= MAGIC_VALUE_V2
    result: Mask = is_current & ((rows["records_count"] < span) | has_delete_horizon(rows))
    before = np.concatenate([[last_offset], rows["last_offset"][:-1]])
    # Where a legacy wrapper begins only its content tells.
    result |= ~is_legacy_wrapper(rows) & (rows["base_offset"] > before + 1)
    return result


def has_delete_horizon(rows: Rows) -> Mask:
    """Batches whose base timestamp is the time from which their tombstones may go."""
    return _has_flag(rows, DELETE_HORIZON_FLAG_MASK)


def has_producer_id(rows: Rows) -> Mask:
    """Batches of an idempotent producer; the base sequence does not tell (coordinators write 0)."""
    result: Mask = rows["producer_id"] > NO_PRODUCER_ID
    return result


def last_offset_deltas(rows: Rows) -> NDArray[np.int64]:
    """Last offset minus base offset: kept by compaction, so not records_count - 1."""
    result: NDArray[np.int64] = rows["last_offset"] - rows["base_offset"]
    return result


def last_sequences(rows: Rows) -> NDArray[np.int32]:
    """Sequence of the record at the last offset, -1 without; after 2147483647 comes 0."""
    # In 64 bits, so that the sum does not wrap before it is cut to 31 bits, as Kafka's
    # `incrementSequence` goes on with 0.
    base = rows["base_sequence"].astype(np.int64)
    last = (base + last_offset_deltas(rows)) & MAX_INT32
    return np.where(base >= 0, last, NO_SEQUENCE).astype(np.int32)


def extend_file_checksum(
    before: int, buf: NDArray[np.uint8], rows: Rows, known: Mask | None = None
) -> int:
    """CRC-32C of the bytes that gave `before` with buf behind them, which is the batches of rows
    and nothing else. `known` bool[b]: their stored checksums are those of their bytes; all are
    without it.
    """
    crcs = rows["crc"].astype(np.int64)
    if known is not None:
        crcs[~known] = -1
    # What a checksum of magic 0 and 1 covers, and its polynomial, are others.
    crcs[is_legacy(rows)] = -1
    return extend_by_batches(before, buf, rows["size_in_bytes"].astype(np.int64), crcs)


def verify_checksums(buf: NDArray[np.uint8], buf_position: int, rows: Rows) -> Mask:
    """Whether each batch has the CRC its header states: CRC-32C, of legacy entries CRC-32.

    Of a wrapper that is the outer CRC; those of the messages inside are not looked at, as in Kafka.

    buf uint8[n] holds the batches in full; buf_position is the position of buf[0] in the file, from
    whose start rows.position counts.
    """
    starts = rows["position"] - buf_position
    ends = starts + rows["size_in_bytes"]
    legacy = is_legacy(rows)
    if not legacy.any():
        found = crc32c_of_ranges(buf, starts + CRC_START, ends)
    else:
        found = np.empty(rows.size, np.int64)
        found[~legacy] = crc32c_of_ranges(buf, starts[~legacy] + CRC_START, ends[~legacy])
        view, ranges = buf.data, zip(starts[legacy].tolist(), ends[legacy].tolist(), strict=True)
        found[legacy] = [crc32(view[start + LEGACY_CRC_START : end]) for start, end in ranges]
    result: Mask = found == rows["crc"]
    return result


def _has_flag(rows: Rows, mask: int) -> Mask:
    result: Mask = (rows["attributes"] & mask) != 0
    return result
