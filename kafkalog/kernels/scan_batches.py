"""Walk the batch headers of a range of a `.log` file, without looking at the records.

The order of the checks is Kafka's (FileLogInputStream, then DefaultRecordBatch.ensureValid): a
length below the smallest entry is corruption even at the end of the file; an entry that the file
does not hold in full is a torn tail whatever else is wrong with it; only then do magic and the
lengths of magic 1 and 2 matter.

Legacy entries (magic 0 and 1) become rows as well, with what their first bytes tell. A compressed
one, a wrapper, tells its last offset only: base_offset is that offset too, records_count and
base_timestamp are -1, until its content is looked at (`kernels.legacy_records`).

Source: Kafka FileLogInputStream, DefaultRecordBatch, AbstractLegacyRecordBatch.
"""

from __future__ import annotations

from typing import Any

from kafkalog.format import constants
from kafkalog.format.record_batch import HEADER, field_position
from kafkalog.kernels import status
from kafkalog.kernels.big_endian import read_i16, read_i32, read_i64, read_u32
from kafkalog.kernels.jit import (
    I64,
    ROW_OUT,
    U8_IN,
    RowArray,
    U8Array,
    helper,
    inlined,
    kernel,
)

_BASE_OFFSET = field_position("base_offset")
_BATCH_LENGTH = field_position("batch_length")
_LEADER_EPOCH = field_position("partition_leader_epoch")
_MAGIC = field_position("magic")
_CRC = field_position("crc")
_ATTRIBUTES = field_position("attributes")
_LAST_OFFSET_DELTA = field_position("last_offset_delta")
_BASE_TIMESTAMP = field_position("base_timestamp")
_MAX_TIMESTAMP = field_position("max_timestamp")
_PRODUCER_ID = field_position("producer_id")
_PRODUCER_EPOCH = field_position("producer_epoch")
_BASE_SEQUENCE = field_position("base_sequence")
_RECORDS_COUNT = field_position("records_count")
_HEADER_BYTES = HEADER.itemsize

_OVERHEAD = constants.LOG_OVERHEAD
_UP_TO_MAGIC = constants.HEADER_SIZE_UP_TO_MAGIC
_MIN_LENGTH = constants.LEGACY_RECORD_OVERHEAD_V0
_MIN_LENGTH_V2 = constants.RECORD_BATCH_OVERHEAD - constants.LOG_OVERHEAD
_MIN_LENGTH_V1 = constants.LEGACY_RECORD_OVERHEAD_V1
_MAGIC_V2 = constants.MAGIC_VALUE_V2
_MAGIC_V1 = constants.MAGIC_VALUE_V1
_CODEC_MASK = constants.COMPRESSION_CODEC_MASK
_LEGACY_MASK = constants.COMPRESSION_CODEC_MASK | constants.TIMESTAMP_TYPE_MASK
_NO_TIMESTAMP = constants.NO_TIMESTAMP
_LEGACY_CRC = constants.LOG_OVERHEAD
_LEGACY_ATTRIBUTES = constants.HEADER_SIZE_UP_TO_MAGIC
_LEGACY_TIMESTAMP = constants.HEADER_SIZE_UP_TO_MAGIC + 1


@inlined
def _all_zero(buf: U8Array, pos: int, end: int) -> bool:
    for p in range(pos, end):
        if buf[p] != 0:
            return False
    return True


@inlined
def copy_header(buf: U8Array, pos: int, rows_out: RowArray, b: int) -> None:
    base_offset = read_i64(buf, pos + _BASE_OFFSET)
    rows_out[b]["base_offset"] = base_offset
    rows_out[b]["last_offset"] = base_offset + read_i32(buf, pos + _LAST_OFFSET_DELTA)
    rows_out[b]["base_timestamp"] = read_i64(buf, pos + _BASE_TIMESTAMP)
    rows_out[b]["max_timestamp"] = read_i64(buf, pos + _MAX_TIMESTAMP)
    rows_out[b]["producer_id"] = read_i64(buf, pos + _PRODUCER_ID)
    rows_out[b]["crc"] = read_u32(buf, pos + _CRC)
    rows_out[b]["partition_leader_epoch"] = read_i32(buf, pos + _LEADER_EPOCH)
    rows_out[b]["base_sequence"] = read_i32(buf, pos + _BASE_SEQUENCE)
    rows_out[b]["attributes"] = read_i16(buf, pos + _ATTRIBUTES)
    rows_out[b]["producer_epoch"] = read_i16(buf, pos + _PRODUCER_EPOCH)
    rows_out[b]["records_count"] = read_i32(buf, pos + _RECORDS_COUNT)
    rows_out[b]["magic"] = _MAGIC_V2


@helper
def _copy_legacy(buf: U8Array, pos: int, magic: int, rows_out: RowArray, b: int) -> None:
    """What the entry at `pos` says of itself; the fields that it does not have get sentinels."""
    offset = read_i64(buf, pos)
    timestamp: Any = I64(_NO_TIMESTAMP)
    # Magic 0 has no timestamp, so its timestamp-type bit means nothing and is left out.
    attributes = I64(buf[pos + _LEGACY_ATTRIBUTES]) & _CODEC_MASK
    if magic == _MAGIC_V1:
        attributes = I64(buf[pos + _LEGACY_ATTRIBUTES]) & _LEGACY_MASK
        timestamp = read_i64(buf, pos + _LEGACY_TIMESTAMP)
    # A compressed entry wraps others: how many there are, and the first one's offset, only its
    # content says. Its own offset is that of the last message in it.
    is_wrapper = (attributes & _CODEC_MASK) != 0
    rows_out[b]["base_offset"] = offset
    rows_out[b]["last_offset"] = offset
    rows_out[b]["base_timestamp"] = _NO_TIMESTAMP if is_wrapper else timestamp
    rows_out[b]["max_timestamp"] = timestamp
    rows_out[b]["producer_id"] = -1
    rows_out[b]["crc"] = read_u32(buf, pos + _LEGACY_CRC)
    rows_out[b]["partition_leader_epoch"] = -1
    rows_out[b]["base_sequence"] = -1
    rows_out[b]["records_count"] = -1 if is_wrapper else 1
    rows_out[b]["attributes"] = attributes
    rows_out[b]["producer_epoch"] = -1
    rows_out[b]["magic"] = magic


@inlined
def check_entry(buf: U8Array, pos: int, end: int, file_end: int) -> tuple[int, int]:
    """(status, bytes of the entry at `pos`); (OK, 0) where its header is not in hand.

    The order of these checks is the order of Kafka's: each of them decides alone, and what is
    behind it is not looked at any more.
    """
    if file_end - pos <= _UP_TO_MAGIC:
        return status.NEED_MORE, 0
    if end - pos < _UP_TO_MAGIC:
        return status.OK, 0
    length = read_i32(buf, pos + _BATCH_LENGTH)
    if length < _MIN_LENGTH:
        is_preallocated = length == 0 and _all_zero(buf, pos, end)
        return status.ZERO_TAIL if is_preallocated else status.CORRUPT_LENGTH, 0
    if length > file_end - pos - _OVERHEAD:
        return status.NEED_MORE, 0
    magic = buf[pos + _MAGIC]
    if magic > _MAGIC_V2:  # read unsigned, so a negative one is as well
        return status.UNSUPPORTED_MAGIC, 0
    if (magic == _MAGIC_V1 and length < _MIN_LENGTH_V1) or (
        magic == _MAGIC_V2 and length < _MIN_LENGTH_V2
    ):
        return status.CORRUPT_LENGTH, 0
    # The header goes on behind what is in hand: not an error, the caller reads more.
    if end - pos < min(length + _OVERHEAD, _HEADER_BYTES):
        return status.OK, 0
    if magic == _MAGIC_V2 and read_i32(buf, pos + _RECORDS_COUNT) < 0:
        return status.NEGATIVE_COUNT, 0
    return status.OK, length + _OVERHEAD


@kernel((U8_IN, I64, I64, I64, I64, ROW_OUT))
def scan_batches(
    buf: U8Array, pos: int, end: int, file_end: int, file_position: int, rows_out: RowArray
) -> tuple[int, int, int]:
    """Decode the headers of the batches that start in buf[pos:end].

    in   buf uint8[n] read-only; 0 <= pos <= end <= n
         file_end: where the file, or the range to read, ends, in buf's coordinates, >= end. A batch
         must end there or before; of the batch only the header needs to be in buf
         file_position: what to add to a position in buf to get a position in the file
    out  rows_out BATCH_ROW[], owned by the caller; rows past `count` are undefined
    returns (count, status, next_pos)
         OK           all headers in hand are done; next_pos is where the next batch starts, maybe
                      past `end`; at file_end everything is done
         NEED_MORE    torn tail: the range ends inside the batch at next_pos (17 bytes or fewer
                      count as torn)
         ZERO_TAIL    buf[next_pos:end] is zero, as in a preallocated file (the caller looks at end
                      to file_end)
         OUTPUT_FULL  rows_out is full, the next header is at next_pos
         else         corrupt: the batch at next_pos cannot be walked over (or not understood:
                      UNSUPPORTED_MAGIC)
    """
    count = 0
    while pos < file_end:
        code, size = check_entry(buf, pos, end, file_end)
        if code != status.OK:
            return count, code, pos
        # Not in hand: the next call begins here.
        if size == 0:
            break
        if count == rows_out.size:
            return count, status.OUTPUT_FULL, pos
        # The magic byte is at the same place in all three layouts, and says which one it is.
        magic = I64(buf[pos + _MAGIC])
        if magic == _MAGIC_V2:
            copy_header(buf, pos, rows_out, count)
        else:
            _copy_legacy(buf, pos, magic, rows_out, count)
        rows_out[count]["position"] = I64(pos + file_position)
        rows_out[count]["size_in_bytes"] = size
        count += 1
        pos += size
    return count, status.OK, pos
