"""What retention must know beside the inventory: the segments a broker would repair on load,
whether the leader epochs can be read, and whether the log begins as a compacted one.

Retention goes by the last entry of a segment's time index. In a segment that was not flushed when
the broker died (past the recovery point), or that has no offset index, a broker makes the indexes
anew when it loads the log: there the headers tell what it would find.

Source: Kafka LogLoader.recoverLog, LogSegment.sanityCheck, LogSegment.recover.
"""

from __future__ import annotations

from pathlib import Path

from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import EpochEntry, parse_leader_epoch_checkpoint
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE, offset_index_file_name
from kafkalog.log.compaction_signs import FIRST_BATCHES, compaction_mark
from kafkalog.log.inventory import PartitionFacts, PartitionInventory, SegmentInfo
from kafkalog.log.segment_facts import scan_segment_facts
from kafkalog.log.small_files import read_small_file


def scan_retention_facts(partition: PartitionInventory) -> PartitionFacts:
    """The facts for `plan_retention`. OSError if a `.log` file cannot be read."""
    repaired = repaired_segments(partition)
    problems = []
    try:
        read_leader_epochs(partition.path)
    except (KafkaLogError, OSError) as error:
        problems.append(str(error))
    return PartitionFacts(
        tuple(scan_segment_facts(segment) for segment in repaired),
        problems=tuple(problems),
        compaction_mark=compaction_mark(partition.segments[:1], FIRST_BATCHES),
    )


def repaired_segments(partition: PartitionInventory) -> list[SegmentInfo]:
    """The live segments whose indexes a broker makes anew when it loads the log."""
    recovery_point = partition.checkpoints.recovery_point or 0
    ends = [segment.base_offset for segment in partition.segments[1:]]
    ends.append(partition.log_end_offset)
    return [
        segment
        for segment, end in zip(partition.segments, ends, strict=False)  # none without a segment
        if end > recovery_point or not _has_offset_index(partition.path, segment)
    ]


def read_leader_epochs(directory: str) -> list[EpochEntry] | None:
    """The partition's leader epochs, None without a file; CorruptCheckpointError if it is bad."""
    path = Path(directory, LEADER_EPOCH_CHECKPOINT_FILE)
    try:
        data = read_small_file(path)
    except FileNotFoundError:
        return None
    return parse_leader_epoch_checkpoint(data, str(path))


def _has_offset_index(directory: str, segment: SegmentInfo) -> bool:
    if segment.offset_index_bytes:
        return True
    return Path(directory, offset_index_file_name(segment.base_offset)).exists()
