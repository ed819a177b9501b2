"""Segments as `__remote_log_metadata` tells them: which state each has come to, and how far what is
read of that topic can be relied on.

Source: Kafka RemoteLogMetadataCache, RemotePartitionMetadataStore; KIP-405.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.messages.remote_log_records import RemoteLogSegmentState, RemotePartitionDeleteState
from kafkalog.reading.message_views import read_messages
from kafkalog.reading.remote_log_events import CHANGED, SEGMENT
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.views import select_columns

_DELETION = "RemotePartitionDeleteMetadataRecord"
_COLUMNS = ("offset", "messageType", "value", "keyBytes", "valueBytes", "error")


@dataclass(frozen=True, slots=True)
class SegmentCopy:
    """A segment by its records. Offsets (the end included), size, largest timestamp and leader
    epochs are None, -1 and empty where the record that has them is not there; begun_ms, changed_ms:
    when the first and the last record was written; broker_id: of the broker that did the last."""

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    state: RemoteLogSegmentState
    begun_ms: int
    changed_ms: int
    start_offset: int | None = None
    end_offset: int | None = None
    size_in_bytes: int = -1
    max_timestamp_ms: int = -1
    leader_epochs: tuple[tuple[int, int], ...] = ()
    broker_id: int = -1

    @property
    def is_finished(self) -> bool:
        """Whether it is there to be read."""
        return self.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED

    @property
    def is_deleted(self) -> bool:
        """Whether its deletion was begun."""
        return self.state >= RemoteLogSegmentState.DELETE_SEGMENT_STARTED


@dataclass(slots=True)
class MetadataPartition:
    """One partition of the topic. deletions: of partitions of topics, (topic id, partition) → state
    and when; newest_ms: of the newest record, -1 without one; incomplete: why what it says may not
    be all, None if it is."""

    path: str
    copies: dict[str, SegmentCopy] = field(default_factory=dict)
    deletions: dict[tuple[str, int], tuple[RemotePartitionDeleteState, int]] = field(
        default_factory=dict
    )
    newest_ms: int = -1
    incomplete: str | None = None


def read_metadata_partitions(
    inventory: Iterable[PartitionInventory], max_batch_bytes: int
) -> dict[int, MetadataPartition]:
    """By number, of each the replica that goes furthest."""
    replicas: dict[int, list[PartitionInventory]] = {}
    for partition in inventory:
        name = partition.topic_partition
        if name.topic == REMOTE_LOG_TOPIC and partition.kind is PartitionKind.LIVE:
            replicas.setdefault(name.partition, []).append(partition)
    return {number: _read(own, max_batch_bytes) for number, own in sorted(replicas.items())}


def _read(replicas: list[PartitionInventory], max_batch_bytes: int) -> MetadataPartition:
    best = max(replicas, key=lambda each: each.log_end_offset)
    marks = [r.checkpoints.high_watermark for r in replicas]
    known = [mark for mark in marks if mark is not None]
    found = MetadataPartition(best.path)
    if not known:
        found.incomplete = f"no checkpoint has the high watermark of {best.path}"
    elif best.log_end_offset < max(known):
        found.incomplete = (
            f"{best.path} ends at offset {best.log_end_offset}, and its high watermark is"
            f" {max(known)}"
        )
    elif best.log_start_offset > 0:
        found.incomplete = (
            f"{best.path} begins at offset {best.log_start_offset}: the records before are deleted"
        )
    try:
        for kind, fields, error in _records(best, max_batch_bytes):
            if error is not None:
                found.incomplete = found.incomplete or f"{best.path}: {error}"
            else:
                _note(found, kind, fields)
    except (KafkaLogError, OSError, ValueError) as error:
        found.incomplete = found.incomplete or str(error)
    return found


def _records(
    partition: PartitionInventory, max_batch_bytes: int
) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """(kind, fields, None), or what is wrong with a record, a batch or what lies between two.
    Tombstones, of a topic that is compacted, say nothing that the records before them did not."""
    expected = partition.log_start_offset
    columns = select_columns("messages", _COLUMNS, with_error=True)
    request = ReadRequest.of(columns, mode=ReadMode.PERMISSIVE, max_batch_bytes=max_batch_bytes)
    for batch in read_messages(
        plan_splits([partition], PartitionSelection()), request, ReadCounts()
    ):
        for row in batch.to_pylist():
            # A record that is not there may be the one that has a segment as finished.
            if row["offset"] is not None and row["offset"] > expected:
                yield "", {}, f"offsets {expected} to {row['offset'] - 1} are not there"
            expected = expected if row["offset"] is None else row["offset"] + 1
            if row["keyBytes"] is not None and row["valueBytes"] is None:
                continue
            if row["error"] is not None:
                yield "", {}, f"offset {row['offset']}: {row['error']}"
            elif row["value"] is not None:
                yield row["messageType"], json.loads(row["value"]), None


def _note(found: MetadataPartition, kind: str, fields: dict[str, Any]) -> None:
    at_ms = int(fields.get("eventTimestampMs", -1))
    found.newest_ms = max(found.newest_ms, at_ms)
    if kind == _DELETION:
        place = fields["topicIdPartition"]
        deletion = RemotePartitionDeleteState(fields["remotePartitionDeleteState"])
        found.deletions[place["id"], place["partition"]] = deletion, at_ms
    if kind not in (SEGMENT, CHANGED):
        return
    segment = fields["remoteLogSegmentId"]
    place, segment_id = segment["topicIdPartition"], segment["id"]
    state = RemoteLogSegmentState(fields["remoteLogSegmentState"])
    known = found.copies.get(segment_id)
    if known is None:
        known = SegmentCopy(
            place["name"], place["id"], place["partition"], segment_id, state, at_ms, at_ms
        )
    known = replace(known, state=state, changed_ms=at_ms, broker_id=int(fields["brokerId"]))
    if kind == SEGMENT:
        epochs = fields["segmentLeaderEpochs"]
        known = replace(
            known,
            start_offset=int(fields["startOffset"]),
            end_offset=int(fields["endOffset"]),
            size_in_bytes=int(fields["segmentSizeInBytes"]),
            max_timestamp_ms=int(fields["maxTimestampMs"]),
            leader_epochs=tuple(sorted((e["leaderEpoch"], e["offset"]) for e in epochs)),
        )
    found.copies[segment_id] = known
