"""Write the records of a cluster into a file in the form of a metadata snapshot: what
`bootstrap.checkpoint` is, and the snapshot `0-0` with which a dynamic quorum begins.

 control batch   SnapshotHeader, and of a dynamic quorum KRaftVersion and Voters
 data batches    metadata records, possibly none
 control batch   SnapshotFooter

Offsets count from 0 over all of them, the leader epoch is 0, nothing is compressed. A controller
that finds its metadata log empty writes the records of `bootstrap.checkpoint` into it, in one
transaction from metadata.version 3.6-IV1 on, in one batch before.

Source: Kafka BatchFileWriter, BootstrapDirectory, RecordsSnapshotWriter, BatchAccumulator; KIP-630,
KIP-853.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.messages.encoder import encode_message
from kafkalog.messages.kraft_control import MESSAGES

# Kafka starts a new batch at 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES); a record has its own
# length, offset and header count in front, which this leaves room for.
_BATCH_BYTES = 7 << 20
_LEADER_EPOCH = 0


def encode_kraft_control(kind: ControlRecordType, fields: Mapping[str, Any]) -> bytes:
    """The value of a KRaft control record; what is missing has its default."""
    return encode_message(MESSAGES[kind], 0, fields)


def pack_metadata_snapshot(
    values: Iterable[bytes],
    timestamp_ms: int,
    quorum: Sequence[tuple[ControlRecordType, Mapping[str, Any]]] = (),
    *,
    contained_ms: int = 0,
) -> bytes:
    """The bytes of a whole snapshot. values: of metadata records with their frames, in the order in
    which they count. timestamp_ms: of every record. quorum: KRaftVersion and Voters, if any.
    contained_ms: what the header says of the last record, 0 in a bootstrap.checkpoint.

    A snapshot lies in memory here, as it does in a controller.
    """
    header = (ControlRecordType.SNAPSHOT_HEADER, {"lastContainedLogTimestamp": contained_ms})
    parts = [_control_batch(0, timestamp_ms, [header, *quorum])]
    offset = 1 + len(quorum)
    for group in _batches(values):
        records = [Record(offset + n, timestamp_ms, None, value) for n, value in enumerate(group)]
        parts.append(pack_batch(records, partition_leader_epoch=_LEADER_EPOCH))
        offset += len(records)
    parts.append(_control_batch(offset, timestamp_ms, [(ControlRecordType.SNAPSHOT_FOOTER, {})]))
    return b"".join(parts)


def _batches(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    held = 0
    for value in values:
        if group and held + len(value) > _BATCH_BYTES:
            yield group
            group, held = [], 0
        group.append(value)
        held += len(value)
    if group:
        yield group


def _control_batch(
    offset: int, timestamp_ms: int, controls: Sequence[tuple[ControlRecordType, Mapping[str, Any]]]
) -> bytes:
    records = [
        Record(
            offset + n,
            timestamp_ms,
            struct.pack(">hh", 0, kind),
            encode_kraft_control(kind, fields),
        )
        for n, (kind, fields) in enumerate(controls)
    ]
    return pack_batch(records, partition_leader_epoch=_LEADER_EPOCH, is_control=True)
