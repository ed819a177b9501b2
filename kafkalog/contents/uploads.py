"""What the partitions of tiered topics have in remote storage, as the records of
`__remote_log_metadata` on these disks tell it.

Source: Kafka RemoteLogManager.RLMCopyTask, by UnifiedLog.updateHighestOffsetInRemoteStorage;
RemoteLogMetadataCache.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionKind
from kafkalog.messages.remote_log_records import (
    RemoteLogRecord,
    RemoteLogSegmentState,
    decode_remote_log_record,
)
from kafkalog.planning.remote_retention import CopyStage, RemoteSegment

_logger = logging.getLogger(__name__)

# Topic id, partition.
Place = tuple[str, int]

# One whose deletion has ended is not there any more.
_STAGES = {
    RemoteLogSegmentState.COPY_SEGMENT_STARTED: CopyStage.STARTED,
    RemoteLogSegmentState.COPY_SEGMENT_FINISHED: CopyStage.FINISHED,
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED: CopyStage.DELETING,
}


def uploaded_offset(segments: tuple[RemoteSegment, ...]) -> int:
    """The last offset of any segment whose copy is finished, -1 for nothing."""
    finished = (s.end_offset for s in segments if s.stage is CopyStage.FINISHED)
    return max(finished, default=-1)


def read_uploads(
    everything: LogInventory, max_batch_bytes: int = MAX_BATCH_BYTES
) -> Mapping[Place, tuple[RemoteSegment, ...]] | None:
    """The segments of each partition; None without that topic. A record that cannot be read says
    nothing, so that less counts as uploaded; how many is a warning.
    """
    sources = [
        partition.path
        for partition in everything
        if partition.topic_partition.topic == REMOTE_LOG_TOPIC
        and partition.kind is PartitionKind.LIVE
    ]
    if not sources:
        return None
    known = _Known()
    for path in sources:
        unreadable = 0
        for batch in _values(path, max_batch_bytes):
            for value in batch.column(0):
                unreadable += not known.note(value.as_py())
        if unreadable:
            _logger.warning("%d records of %s cannot be read: not counted", unreadable, path)
    return known.by_partition()


def _values(path: str, max_batch_bytes: int) -> pa.RecordBatchReader:
    # Where nothing is tiered nothing of this is needed.
    from kafkalog.reading.tables import read_records

    return read_records(
        path, columns=["value"], mode="DROPMALFORMED", max_batch_bytes=max_batch_bytes
    )


@dataclass(slots=True)
class _Known:
    """By segment id, in the order in which they were announced."""

    segments: dict[str, tuple[Place, RemoteSegment]] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)

    def note(self, value: bytes | None) -> bool:
        """Whether the record can be read."""
        try:
            record = decode_remote_log_record(value)
        except KafkaLogError:
            return False
        if not isinstance(record, RemoteLogRecord) or "remoteLogSegmentId" not in record.fields:
            return True
        fields = record.fields
        segment_id = str(fields["remoteLogSegmentId"]["id"])
        self.states[segment_id] = fields["remoteLogSegmentState"]
        if "endOffset" in fields:
            place = fields["remoteLogSegmentId"]["topicIdPartition"]
            key = str(place["id"]), int(place["partition"])
            self.segments[segment_id] = key, _segment(segment_id, fields)
        return True

    def by_partition(self) -> dict[Place, tuple[RemoteSegment, ...]]:
        """Those that are there, or may be."""
        found: dict[Place, list[RemoteSegment]] = {}
        for segment_id, (place, segment) in self.segments.items():
            stage = _STAGES.get(RemoteLogSegmentState(self.states[segment_id]))
            if stage is not None:
                found.setdefault(place, []).append(replace(segment, stage=stage))
        return {place: tuple(own) for place, own in found.items()}


def _segment(segment_id: str, fields: Mapping[str, Any]) -> RemoteSegment:
    epochs = ((each["leaderEpoch"], each["offset"]) for each in fields["segmentLeaderEpochs"])
    return RemoteSegment(
        segment_id,
        int(fields["startOffset"]),
        int(fields["endOffset"]),
        int(fields["segmentSizeInBytes"]),
        int(fields["maxTimestampMs"]),
        tuple(sorted(epochs)),
    )
