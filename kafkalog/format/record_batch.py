"""Record batch, magic 2: the 61-byte header in front of every batch.

 base_offset i64 | batch_length i32 | partition_leader_epoch i32 | magic i8 | crc u32
 attributes i16  | last_offset_delta i32 | base_timestamp i64 | max_timestamp i64
 producer_id i64 | producer_epoch i16 | base_sequence i32 | records_count i32

The CRC-32C covers attributes to the end, so a new leader epoch costs no new CRC.
Compaction keeps base_offset, last_offset_delta and base_sequence even when records go: brokers
rebuild producer state from them. Hence last offset is always base_offset + last_offset_delta, never
base_offset + records_count - 1.

base_timestamp is what record deltas count from, not the first record's timestamp: with attribute
bit 6 it is the delete horizon, in an empty batch it is -1. With LOG_APPEND_TIME every record's
timestamp is max_timestamp.

Source: Kafka DefaultRecordBatch; KIP-98, KIP-534 (delete horizon).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from kafkalog.errors import CorruptRecordError, UnsupportedMagicError
from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.checksum import crc32c
from kafkalog.format.compression import compress, decompress
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    DELETE_HORIZON_FLAG_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_RECORD_OVERHEAD_V0,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    MAX_BATCH_BYTES,
    MAX_INT32,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    CompressionType,
    TimestampType,
)
from kafkalog.format.record import Record, pack_records, parse_records

# The layout on disk. Offsets of single fields are derived from it, never written twice.
HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)


def field_position(name: str) -> int:
    """Byte position of a header field from the start of the batch."""
    return int(HEADER.fields[name][1])  # type: ignore[index]


CRC_POSITION = field_position("crc")
CRC_START = field_position("attributes")

# A decoded header: one row per batch in native byte order, what the scan kernels write and
# everything above reads. Legacy entries (magic 0 and 1) use the same row with the sentinels of
# constants.py.
BATCH_ROW = np.dtype(
    [
        ("position", np.int64),  # byte position in the file
        ("base_offset", np.int64),
        ("last_offset", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("crc", np.int64),
        ("size_in_bytes", np.int32),  # header included
        ("partition_leader_epoch", np.int32),
        ("base_sequence", np.int32),
        ("records_count", np.int32),
        ("attributes", np.int16),
        ("producer_epoch", np.int16),
        ("magic", np.int8),
    ],
    align=True,
)

_STRUCT_CODES = {"i1": "b", "i2": "h", "i4": "i", "u4": "I", "i8": "q"}
_HEADER_STRUCT = struct.Struct(
    ">" + "".join(_STRUCT_CODES[HEADER[name].str[1:]] for name in HEADER.names or ())
)


@dataclass(frozen=True, slots=True)
class RecordBatchHeader:
    """One header as a value; the fields are HEADER's, in its order."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_in_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        # Not the count: compaction takes records out, and leaves the offsets of the batch.
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def codec(self) -> int:
        """0 to 7; 5 to 7 are not assigned."""
        return self.attributes & COMPRESSION_CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(bool(self.attributes & TIMESTAMP_TYPE_MASK))

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG_MASK)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG_MASK)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_FLAG_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        # Never inferred from base_sequence: coordinators write -1, -1, 0.
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        return sequence_at(self.base_sequence, self.last_offset_delta)


def sequence_at(base_sequence: int, offset_delta: int) -> int:
    """The sequence of a record, -1 without one; after 2147483647 comes 0."""
    if base_sequence < 0:
        return NO_SEQUENCE
    # By the offset delta, not by the count: records that compaction took keep their numbers.
    return (base_sequence + offset_delta) % (MAX_INT32 + 1)


def parse_header(
    data: BytesLike, position: int = 0, *, path: str | None = None, file_position: int = 0
) -> RecordBatchHeader:
    """The header at `data[position:]`, whose batch may be longer than `data`.

    Raises CorruptRecordError if there are not 61 bytes or the lengths cannot be true,
    UnsupportedMagicError for anything but magic 2. `file_position` is where `data[0]` is in `path`;
    errors add it to `position`.
    """
    # The first 17 bytes are the same in all three layouts: offset, length, four bytes, magic. Only
    # when the magic is known the rest can be read.
    view = as_view(data)[position:]
    at = file_position + position
    if len(view) < HEADER_SIZE_UP_TO_MAGIC:
        raise CorruptRecordError(f"{len(view)} bytes are no batch header", path=path, position=at)
    base_offset, batch_length, _, magic = struct.unpack_from(">qiib", view)
    corrupt = partial(CorruptRecordError, path=path, position=at, offset=base_offset)
    if batch_length < LEGACY_RECORD_OVERHEAD_V0:
        raise corrupt(f"batch length {batch_length} is below {LEGACY_RECORD_OVERHEAD_V0}")
    if magic != MAGIC_VALUE_V2:
        raise UnsupportedMagicError(
            f"magic {magic} is not handled", path=path, position=at, offset=base_offset
        )
    # The length counts what lies behind it, so offset and length themselves are not in it.
    smallest = RECORD_BATCH_OVERHEAD - LOG_OVERHEAD
    if batch_length < smallest or len(view) < RECORD_BATCH_OVERHEAD:
        found = f"batch length {batch_length}, {len(view)} bytes in hand"
        raise corrupt(f"{found}: a header has {RECORD_BATCH_OVERHEAD} bytes")
    header = RecordBatchHeader(*_HEADER_STRUCT.unpack_from(view))
    if header.records_count < 0:
        raise corrupt(f"record count is {header.records_count}")
    return header


def pack_header(header: RecordBatchHeader) -> bytes:
    """The 61 bytes of `header`, its crc and batch_length taken as they are."""
    return _HEADER_STRUCT.pack(*(getattr(header, field.name) for field in fields(header)))


def pack_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """A whole magic 2 batch: records encoded, compressed, under a header with length and CRC.

    Offsets and timestamps that are not given come from the records, as a producer fills them;
    without records `base_offset` must be given and the timestamps are -1. A delete horizon becomes
    the base timestamp.
    """
    if base_offset is None:
        if not records:
            raise ValueError("a batch without records needs a base_offset")
        base_offset = records[0].offset
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    elif base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    # Deltas count from the base timestamp, which is the delete horizon if there is one: timestamps
    # stay what they are, only the deltas change.
    packed = pack_records(records, base_offset, base_timestamp)
    # A batch without records has no payload and no codec, as Kafka's cleaner leaves it.
    payload = compress(codec, packed) if records else b""
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(payload),
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC_VALUE_V2,
        crc=0,
        attributes=(codec & COMPRESSION_CODEC_MASK if records else 0)
        | (TIMESTAMP_TYPE_MASK if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_FLAG_MASK if is_transactional else 0)
        | (CONTROL_FLAG_MASK if is_control else 0)
        | (DELETE_HORIZON_FLAG_MASK if delete_horizon_ms is not None else 0),
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    return with_crc(pack_header(header) + payload)


def with_crc(batch: BytesLike) -> bytes:
    """`batch` with the CRC-32C its bytes ask for."""
    patched = bytearray(batch)
    struct.pack_into(">I", patched, CRC_POSITION, crc32c(patched[CRC_START:]))
    return bytes(patched)


def parse_batch(
    data: BytesLike,
    position: int = 0,
    *,
    path: str | None = None,
    file_position: int = 0,
    max_bytes: int = MAX_BATCH_BYTES,
) -> tuple[RecordBatchHeader, list[Record]]:
    """Header and records of the whole batch at `data[position:]`, its CRC verified.

    `max_bytes` caps the uncompressed payload. Arguments and errors as in `parse_header` and
    `decompress`; a batch that `data` does not hold to its end is a CorruptRecordError here.
    """
    header = parse_header(data, position, path=path, file_position=file_position)
    batch = as_view(data)[position : position + header.size_in_bytes]
    at, offset = file_position + position, header.base_offset
    corrupt = partial(CorruptRecordError, path=path, position=at, offset=offset)
    if len(batch) < header.size_in_bytes:
        raise corrupt(f"batch of {header.size_in_bytes} bytes, but {len(batch)} are there")
    # From the attributes on: the leader epoch in front of them is set by each broker that takes
    # over.
    crc = crc32c(batch[CRC_START:])
    if crc != header.crc:
        raise corrupt(f"CRC {header.crc:08x}, computed {crc:08x}")
    payload: BytesLike = b""
    if header.records_count > 0:
        payload = decompress(
            header.codec,
            batch[RECORD_BATCH_OVERHEAD:],
            max_bytes=max_bytes,
            path=path,
            position=at,
            offset=offset,
        )
    records = parse_records(
        payload,
        header.records_count,
        offset,
        header.base_timestamp,
        log_append_timestamp=(
            header.max_timestamp if header.timestamp_type == TimestampType.LOG_APPEND_TIME else None
        ),
        path=path,
        position=at,
    )
    return header, records
