"""Producer snapshot: what the log knows of each producer after all offsets below the file's.

 version i16 = 1 | crc u32 | entries_count i32 | then 46 bytes an entry:
 producer_id i64 | producer_epoch i16 | last_sequence i32 | last_offset i64 | offset_delta i32
 timestamp i64 | coordinator_epoch i32 | current_txn_first_offset i64

The CRC-32C covers everything after itself to the end of the file. Only the last batch of each
producer is kept: it covers offsets last_offset - offset_delta to last_offset. -1 stands for: no
data batch at this epoch (last_sequence, last_offset), no marker yet (coordinator_epoch), no open
transaction (current_txn_first_offset). The order of entries means nothing.

Source: Kafka ProducerStateManager, ProducerSnapshot.json (version 1, the same since 0.11).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from kafkalog.errors import CorruptSnapshotError
from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.checksum import crc32c

PRODUCER_SNAPSHOT_VERSION = 1

_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_START = 6


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """One producer; the fields are the file's, in its order. Timestamp in ms."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def parse_producer_snapshot(data: BytesLike, path: str | None = None) -> list[ProducerEntry]:
    """The entries in the file's order. Raises CorruptSnapshotError."""
    view = as_view(data)
    if len(view) < _HEADER.size:
        raise CorruptSnapshotError(f"{len(view)} bytes are no producer snapshot", path=path)
    version, crc, count = _HEADER.unpack_from(view)
    if version != PRODUCER_SNAPSHOT_VERSION:
        raise CorruptSnapshotError(f"version {version}, not 1", path=path, position=0)
    # The checksum first: the count behind it is only then worth a look.
    computed = crc32c(view[_CRC_START:])
    if crc != computed:
        raise CorruptSnapshotError(f"CRC {crc:08x}, computed {computed:08x}", path=path, position=2)
    # Bytes behind the last entry are covered by the CRC and read past.
    end = _HEADER.size + count * _ENTRY.size
    if count < 0 or end > len(view):
        raise CorruptSnapshotError(
            f"{count} entries, but {len(view) - _HEADER.size} bytes for them",
            path=path,
            position=_CRC_START,
        )
    return [ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(view[_HEADER.size : end])]


def pack_producer_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The file's bytes; entries in the order given."""
    packed = [_ENTRY.pack(*astuple(entry)) for entry in entries]
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", PRODUCER_SNAPSHOT_VERSION, crc32c(body)) + body
