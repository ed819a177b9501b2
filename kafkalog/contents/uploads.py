"""Up to which offset the partitions of tiered topics are in remote storage, as the records of
`__remote_log_metadata` on these disks tell: the last offset of any segment whose copy is finished.

Source: Kafka RemoteLogManager.RLMCopyTask, by UnifiedLog.updateHighestOffsetInRemoteStorage.
"""

from __future__ import annotations

import logging

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
from kafkalog.reading.tables import read_records

_logger = logging.getLogger(__name__)


def read_uploads(
    everything: LogInventory, max_batch_bytes: int = MAX_BATCH_BYTES
) -> dict[tuple[str, int], int] | None:
    """(topic id, partition) → last offset that is uploaded; None without that topic. A record that
    cannot be read says nothing, so that less counts as uploaded; how many is a warning.
    """
    sources = [
        partition.path
        for partition in everything
        if partition.topic_partition.topic == REMOTE_LOG_TOPIC
        and partition.kind is PartitionKind.LIVE
    ]
    if not sources:
        return None
    ends: dict[str, tuple[tuple[str, int], int]] = {}
    states: dict[str, int] = {}
    for path in sources:
        unreadable = 0
        for batch in _values(path, max_batch_bytes):
            for value in batch.column(0):
                unreadable += not _note(value.as_py(), ends, states)
        if unreadable:
            _logger.warning("%d records of %s cannot be read: not counted", unreadable, path)
    found: dict[tuple[str, int], int] = {}
    for segment_id, (partition, end_offset) in ends.items():
        if states.get(segment_id) == RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            found[partition] = max(found.get(partition, -1), end_offset)
    return found


def _values(path: str, max_batch_bytes: int) -> pa.RecordBatchReader:
    return read_records(
        path, columns=["value"], mode="DROPMALFORMED", max_batch_bytes=max_batch_bytes
    )


def _note(
    value: bytes | None, ends: dict[str, tuple[tuple[str, int], int]], states: dict[str, int]
) -> bool:
    """Whether the record can be read."""
    try:
        record = decode_remote_log_record(value)
    except KafkaLogError:
        return False
    if not isinstance(record, RemoteLogRecord) or "remoteLogSegmentId" not in record.fields:
        return True
    segment = record.fields["remoteLogSegmentId"]
    segment_id, place = str(segment["id"]), segment["topicIdPartition"]
    states[segment_id] = record.fields["remoteLogSegmentState"]
    if "endOffset" in record.fields:
        partition = str(place["id"]), int(place["partition"])
        ends[segment_id] = partition, int(record.fields["endOffset"])
    return True
