"""`__remote_log_metadata` as a log made anew: each segment announced and finished, in the partition
that a broker would use.

    OUTPUT/__remote_log_metadata-N/     one for each partition of the topic, with indexes and epochs
    OUTPUT/replication-offset-checkpoint, recovery-point-offset-checkpoint    where the logs end

The directory reads as a log dir. A broker takes a segment only if it is announced first and
finished by a record of its own, so each has two.

Source: Kafka TopicBasedRemoteLogMetadataManager, RemotePartitionMetadataStore; KIP-405.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.bucket.stored_copies import StoredCopy
from kafkalog.cleaning.segment_indexes import SegmentIndexes
from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    RECOVERY_POINT_FILE,
    pack_leader_epoch_checkpoint,
    pack_offset_checkpoint,
)
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    log_file_name,
    offset_index_file_name,
    time_index_file_name,
)
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.remote_log_partition import remote_log_partition
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.segment_file import read_chunks
from kafkalog.messages.remote_log_records import RemoteLogSegmentState, encode_remote_log_record
from kafkalog.planning.log_config import LogConfig
from kafkalog.runs import durable

_LEADER_EPOCH = 0
SEGMENT_RECORD, UPDATE_RECORD = 0, 1
# Below message.max.bytes by far, and segments that are held in memory while they are made.
_BATCH_BYTES = 64 * 1024
_SEGMENT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """One partition of the new topic; size_in_bytes: of its `.log` files."""

    number: int
    path: str
    records_count: int
    size_in_bytes: int
    segments_count: int = 0


def write_metadata_log(
    output: Path, copies: Iterable[StoredCopy], partitions_count: int
) -> list[WrittenPartition]:
    """All partitions of the topic, those without a record too, below a directory that is there and
    empty. OSError."""
    own: list[list[StoredCopy]] = [[] for _ in range(partitions_count)]
    for copy in sorted(copies, key=lambda copy: copy.order):
        place = copy.copied.topic_id, copy.copied.partition
        own[remote_log_partition(*place, partitions_count)].append(copy)
    written = write_metadata_records(output, [list(records_of(mine)) for mine in own])
    return [replace(each, segments_count=len(own[each.number])) for each in written]


def write_metadata_records(
    output: Path, records: Sequence[Sequence[tuple[int, bytes]]]
) -> list[WrittenPartition]:
    """The same of (time, value) of each record of each partition."""
    written = [_write_partition(output, number, own) for number, own in enumerate(records)]
    ends = {(REMOTE_LOG_TOPIC, each.number): each.records_count for each in written}
    for name in (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE):
        durable.replace(output / name, pack_offset_checkpoint(ends))
    return written


def records_of(copies: Iterable[StoredCopy]) -> Iterator[tuple[int, bytes]]:
    """(time, value) of the records that announce and finish each."""
    for copy in copies:
        own = copy.copied
        topic = {"name": own.topic, "id": own.topic_id, "partition": own.partition}
        always = {
            "remoteLogSegmentId": {"topicIdPartition": topic, "id": own.segment_id},
            "brokerId": own.broker_id,
            "customMetadata": None,
        }
        announced = {
            **always,
            "startOffset": own.start_offset,
            "endOffset": own.end_offset,
            "maxTimestampMs": own.max_timestamp_ms,
            "eventTimestampMs": own.event_timestamp_ms,
            "segmentLeaderEpochs": [
                {"leaderEpoch": epoch, "offset": start} for epoch, start in own.leader_epochs
            ],
            "segmentSizeInBytes": copy.size_in_bytes,
            "remoteLogSegmentState": RemoteLogSegmentState.COPY_SEGMENT_STARTED.value,
            "txnIndexEmpty": own.has_no_aborts,
        }
        yield own.event_timestamp_ms, encode_remote_log_record(SEGMENT_RECORD, announced)
        finished = {
            **always,
            "eventTimestampMs": copy.finished_ms,
            "remoteLogSegmentState": RemoteLogSegmentState.COPY_SEGMENT_FINISHED.value,
        }
        yield copy.finished_ms, encode_remote_log_record(UPDATE_RECORD, finished)


def _write_partition(
    output: Path, number: int, records: Sequence[tuple[int, bytes]]
) -> WrittenPartition:
    path = output / f"{REMOTE_LOG_TOPIC}-{number}"
    durable.make_directories(path)
    end, size = 0, 0
    for base_offset, behind, data in _segments(batches_of(records)):
        _write_segment(path, base_offset, data)
        end, size = behind, size + len(data)
    epochs = [(_LEADER_EPOCH, 0)] if records else []
    durable.replace(path / LEADER_EPOCH_CHECKPOINT_FILE, pack_leader_epoch_checkpoint(epochs))
    return WrittenPartition(number, str(path), end, size)


def _write_segment(path: Path, base_offset: int, data: bytes) -> None:
    """A `.log`, and the indexes that its batches ask for."""
    durable.replace(path / log_file_name(base_offset), data)
    write_indexes(path, base_offset)


def write_indexes(path: Path, base_offset: int) -> None:
    """Those of a segment that is there."""
    log = path / log_file_name(base_offset)
    indexes = SegmentIndexes(base_offset, LogConfig())
    for chunk in read_chunks(str(log)):
        indexes.add(chunk.rows)
    durable.replace(path / offset_index_file_name(base_offset), indexes.pack_offset_index())
    durable.replace(path / time_index_file_name(base_offset), indexes.pack_time_index())


def _segments(batches: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """(base offset, offset behind its last record, bytes) of each; one at least."""
    base, end, data = 0, 0, bytearray()
    for first, behind, batch in batches:
        if len(data) + len(batch) > _SEGMENT_BYTES and data:
            yield base, end, bytes(data)
            base, data = first, bytearray()
        data += batch
        end = behind
    yield base, end, bytes(data)


def batches_of(
    values: Iterable[tuple[int, bytes]], first_offset: int = 0, leader_epoch: int = _LEADER_EPOCH
) -> Iterator[tuple[int, int, bytes]]:
    """(offset of the first record, offset behind the last, bytes) of each batch of records that
    have these times and values."""
    records: list[Record] = []
    offset, size = first_offset, 0
    for at_ms, value in values:
        if size + len(value) > _BATCH_BYTES and records:
            yield records[0].offset, offset, _packed(records, leader_epoch)
            records, size = [], 0
        records.append(Record(offset, at_ms, None, value))
        offset, size = offset + 1, size + len(value)
    if records:
        yield records[0].offset, offset, _packed(records, leader_epoch)


def _packed(records: Sequence[Record], leader_epoch: int) -> bytes:
    return pack_batch(records, partition_leader_epoch=leader_epoch)
