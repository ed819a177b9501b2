"""A digest of replicas: for each record a row of hashes under a key, no byte of what was hashed.

Numbers are big-endian. A header, then frames to the file's end:

    header     magic `KLDIGEST`, version uint16 (1), most bytes of a record uint16 (48),
               most records of a block uint32, check of the key (16 bytes),
               CRC-32C of all that uint32
    frame      type uint8, length of the payload uint32, CRC-32C of the payload uint32, payload

    PARTITION      JSON: what the small files say of the copy that the next frames are of
    DAMAGE         JSON: {"first": n, "ranges": […]}: unreadable ranges from the nth on
    ROWS           up to where cleaned int64, first offset int64, records uint32, codec uint8
                   (0 none, 4 zstd), then columns one behind the other:
                       offset less the one before   uint64     key's hash       2 x uint64
                       record's hash                uint64     producer id      int64
                       size                         uint32     flags            uint32
    PARTITION_END  up to where cleaned int64, records uint64
    END            partitions uint64; nothing follows

So a record takes 48 bytes at most, and about 26 where columns compress as they mostly do; a block
takes 30 more. `kernels.record_facts` says what the hashes are of.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.checksum import crc32c
from kafkalog.format.compression import compress, decompress
from kafkalog.format.constants import MAX_INT64, CompressionType
from kafkalog.kernels.record_facts import HIDDEN, RECORD_FACT

Rows = NDArray[np.void]

MAGIC = b"KLDIGEST"
VERSION = 1
ROW_BYTES = 48
BLOCK_ROWS = 64 * 1024
PARTITION, DAMAGE, ROWS, PARTITION_END, END = 1, 2, 3, 4, 5
FRAME_TYPES = (PARTITION, DAMAGE, ROWS, PARTITION_END, END)

_HEADER = struct.Struct(">8sHHI16sI")
HEADER_BYTES = _HEADER.size
FRAME = struct.Struct(">BII")
ROWS_HEAD = struct.Struct(">qqIB")
_PARTITION_END = struct.Struct(">qQ")
_END = struct.Struct(">Q")
# No payload is longer: a block of rows has 3 MiB, the facts of a partition mostly 1 KiB.
MOST_PAYLOAD_BYTES = 16 * 1024 * 1024
_COLUMNS = tuple((name, RECORD_FACT[name].newbyteorder(">")) for name in RECORD_FACT.names or ())
_ALL_FLAGS = 2 * HIDDEN - 1


def pack_header(check: bytes) -> bytes:
    """The bytes of a header."""
    known = _HEADER.pack(MAGIC, VERSION, ROW_BYTES, BLOCK_ROWS, check, 0)[:-4]
    return known + struct.pack(">I", crc32c(known))


def parse_header(data: bytes) -> bytes:
    """The key's check. CorruptRecordError for what is no digest; KafkaLogError for another version,
    or larger blocks than this one's.
    """
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise CorruptRecordError(
            f"no digest: it begins with {data[:8]!r}, {MAGIC!r} expected", position=0
        )
    _, version, row_bytes, block_rows, check, crc = _HEADER.unpack_from(data)
    if version != VERSION:
        raise KafkaLogError(f"a digest of version {version}, {VERSION} is read here", position=8)
    if crc != crc32c(data[: HEADER_BYTES - 4]):
        raise CorruptRecordError("CRC of the header is not the stored one", position=0)
    if (row_bytes, block_rows) != (ROW_BYTES, BLOCK_ROWS):
        raise CorruptRecordError(
            f"records of {row_bytes} bytes in blocks of {block_rows}, {ROW_BYTES} and {BLOCK_ROWS} "
            "expected",
            position=10,
        )
    return bytes(check)


def pack_frame(frame_type: int, payload: bytes) -> bytes:
    """A frame. KafkaLogError for a payload that no reader would take."""
    if len(payload) > MOST_PAYLOAD_BYTES:
        raise KafkaLogError(
            f"{len(payload)} bytes of facts, a digest has room for {MOST_PAYLOAD_BYTES}"
        )
    return FRAME.pack(frame_type, len(payload), crc32c(payload)) + payload


def pack_json(frame_type: int, value: Any) -> bytes:
    """A frame of JSON."""
    return pack_frame(frame_type, json.dumps(value, separators=(",", ":")).encode())


def pack_rows(rows: Rows, cleaned_end_offset: int) -> bytes:
    """A frame of up to BLOCK_ROWS rows, in the order of offsets."""
    columns = []
    for name, kind in _COLUMNS:
        values = rows[name]
        if name == "offset":
            values = np.diff(values, prepend=values[:1])
        columns.append(values.astype(kind).tobytes())
    body = b"".join(columns)
    codec, packed = CompressionType.ZSTD, compress(CompressionType.ZSTD, body)
    if len(packed) >= len(body):
        codec, packed = CompressionType.NONE, body
    head = ROWS_HEAD.pack(cleaned_end_offset, int(rows["offset"][0]), rows.size, codec)
    return pack_frame(ROWS, head + packed)


def pack_partition_end(cleaned_end_offset: int, rows: int) -> bytes:
    """The frame behind a partition's rows."""
    return pack_frame(PARTITION_END, _PARTITION_END.pack(cleaned_end_offset, rows))


def pack_end(partitions: int) -> bytes:
    """The last frame."""
    return pack_frame(END, _END.pack(partitions))


@dataclass(frozen=True, slots=True)
class RowsHead:
    """What stands in front of the columns of a block."""

    cleaned_end_offset: int
    first_offset: int
    count: int
    codec: int


def parse_rows_head(payload: bytes) -> RowsHead:
    """CorruptRecordError for one that no block has."""
    if len(payload) < ROWS_HEAD.size:
        raise CorruptRecordError(f"a block of {len(payload)} bytes, {ROWS_HEAD.size} expected")
    head = RowsHead(*ROWS_HEAD.unpack_from(payload))
    if not 1 <= head.count <= BLOCK_ROWS:
        raise CorruptRecordError(f"{head.count} records in a block, 1 to {BLOCK_ROWS} expected")
    if head.codec not in (CompressionType.NONE, CompressionType.ZSTD):
        raise CorruptRecordError(f"codec {head.codec} of a block, 0 or 4 expected")
    if head.first_offset < 0 or head.cleaned_end_offset < 0:
        raise CorruptRecordError(f"offset {min(head.first_offset, head.cleaned_end_offset)}")
    return head


def parse_rows(payload: bytes, after: int) -> tuple[RowsHead, Rows]:
    """A block's head and rows, whose offsets have to rise from `after` on. CorruptRecordError for
    any other; no more is decompressed than the records take.
    """
    head, size = parse_rows_head(payload), ROW_BYTES
    body: bytes | memoryview = payload[ROWS_HEAD.size :]
    if head.codec == CompressionType.ZSTD:
        body = decompress(CompressionType.ZSTD, body, max_bytes=head.count * size)
    if len(body) != head.count * size:
        raise CorruptRecordError(
            f"{len(body)} bytes of {head.count} records, {head.count * size} expected"
        )
    rows = np.empty(head.count, RECORD_FACT)
    at = 0
    for name, kind in _COLUMNS:
        values = np.frombuffer(body, kind, head.count, at)
        at += values.nbytes
        if name == "offset":
            _check_steps(values, head, after)
            rows[name] = head.first_offset + np.cumsum(values)
        else:
            rows[name] = values
    if (rows["flags"] & np.uint32(~_ALL_FLAGS & 0xFFFFFFFF)).any():
        raise CorruptRecordError(f"flags of a record are none of {_ALL_FLAGS:#x}")
    return head, rows


def _check_steps(steps: NDArray[np.int64], head: RowsHead, after: int) -> None:
    # As floats: forged steps may add up past 64 bits.
    total = float(np.sum(steps, dtype=np.float64)) + head.first_offset
    is_rising = steps[0] == 0 and bool((steps[1:] > 0).all()) and head.first_offset > after
    if not is_rising or total >= MAX_INT64:
        raise CorruptRecordError(
            f"offsets of a block do not rise from behind {after}", offset=head.first_offset
        )


def parse_partition_end(payload: bytes) -> tuple[int, int]:
    """(up to where cleaned, records)."""
    cleaned_end_offset, records = _exactly(_PARTITION_END, payload)
    return int(cleaned_end_offset), int(records)


def parse_end(payload: bytes) -> int:
    """How many partitions there are."""
    (count,) = _exactly(_END, payload)
    return int(count)


def _exactly(layout: struct.Struct, payload: bytes) -> tuple[Any, ...]:
    if len(payload) != layout.size:
        raise CorruptRecordError(f"a frame of {len(payload)} bytes, {layout.size} expected")
    return layout.unpack(payload)
