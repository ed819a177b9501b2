"""What retention must know beside the inventory: the segments a broker would repair on load,
whether the leader epochs can be read, and whether the log begins as a compacted one.

Retention goes by the last entry of a segment's time index. A broker makes indexes anew when it
loads the log, and there the headers tell what it would find: without a stop in order from the
segment of the recovery point on, which is the active one where that point is the log's end; at any
start where a segment has no offset index, or a transaction index that cannot be read.

Source: Kafka LogLoader.recoverLog, LogSegments.values, LogSegment.sanityCheck, LogSegment.recover.
"""

from __future__ import annotations

from collections.abc import Collection

from kafkalog.errors import CorruptIndexError, KafkaLogError, RecordTooLargeError
from kafkalog.format.checkpoints import EpochEntry, parse_leader_epoch_checkpoint
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    LogFileKind,
    offset_index_file_name,
)
from kafkalog.format.transaction_index import parse_transaction_index
from kafkalog.log.compaction_signs import FIRST_BATCHES, compaction_mark
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.log_dir_files import is_clean_stop
from kafkalog.log.segment_facts import scan_segment_facts
from kafkalog.log.small_files import is_there, read_small_file


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


def repaired_segments(
    partition: PartitionInventory, unusable: Collection[int] | None = None
) -> list[SegmentInfo]:
    """The live segments whose indexes a broker makes anew when it loads the log. `unusable`: those
    of `unusable_indexes`, of a caller who has looked already.
    """
    first = _first_recovered(partition)
    bases = unusable_indexes(partition) if unusable is None else unusable
    return [
        segment
        for segment in partition.segments
        if segment.base_offset >= first or segment.base_offset in bases
    ]


def unusable_indexes(partition: PartitionInventory) -> tuple[int, ...]:
    """Base offsets of the live segments without an offset index, or with a transaction index that
    cannot be read.
    """
    return tuple(
        segment.base_offset
        for segment in partition.segments
        if not _has_offset_index(partition.path, segment)
        or (segment.txn_index_bytes and not _has_sound_transaction_index(segment))
    )


def _first_recovered(partition: PartitionInventory) -> int:
    """The base offset from which on segments are recovered for want of a stop in order."""
    if is_clean_stop(partition.log_dir):
        return MAX_INT64
    # Recovery begins with the segment that holds the recovery point, which is the last whose base
    # is not above it.
    recovery_point = partition.checkpoints.recovery_point or 0
    bases = [segment.base_offset for segment in partition.segments]
    return max((base for base in bases if base <= recovery_point), default=0)


def read_leader_epochs(directory: str) -> list[EpochEntry] | None:
    """The partition's leader epochs, None without a file; CorruptCheckpointError if it is bad."""
    path = f"{directory}/{LEADER_EPOCH_CHECKPOINT_FILE}"
    try:
        data = read_small_file(path)
    except FileNotFoundError:
        return None
    return parse_leader_epoch_checkpoint(data, path)


def _has_offset_index(directory: str, segment: SegmentInfo) -> bool:
    if segment.offset_index_bytes:
        return True
    # A text, not a path: there is one for each segment of some thousand partitions.
    return is_there(f"{directory}/{offset_index_file_name(segment.base_offset)}")


def _has_sound_transaction_index(segment: SegmentInfo) -> bool:
    path = segment.beside(LogFileKind.TRANSACTION_INDEX)
    try:
        parse_transaction_index(read_small_file(path), segment.base_offset, path)
    except (CorruptIndexError, RecordTooLargeError):
        return False
    except FileNotFoundError:  # it went meanwhile
        return True
    return True
