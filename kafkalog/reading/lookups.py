"""Which offset: the questions a broker answers with ListOffsets and OffsetForLeaderEpoch, answered
from the disk.

 earliest        the log start offset
 latest          the high watermark; the last stable offset for read_committed
 max timestamp   the first record with the largest timestamp of the log
 a timestamp     the first record, in offset order, whose timestamp is at or above it
 a leader epoch  the largest known epoch at or below it, and where that ends

As for a broker the first segment whose largest timestamp reaches a time is the only one that is
searched, and what lies at or behind the last readable offset is not found.

Source: Kafka UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp,
Partition.fetchOffsetForTimestamp, LeaderEpochFileCache.endOffsetFor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.errors import InvalidConfigError
from kafkalog.format.checkpoints import EpochEntry, parse_leader_epoch_checkpoint
from kafkalog.format.constants import MAGIC_VALUE_V0, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.log.index_lookup import (
    first_reaching,
    largest_timestamp,
    start_position,
    walk_headers,
)
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.leader_epochs import LeaderEpochReplay
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.names import paths_in
from kafkalog.log.producer_state import active_producers, producers_past_damage
from kafkalog.log.segment_file import read_chunks
from kafkalog.log.small_files import read_small_file
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

READ_UNCOMMITTED = "read_uncommitted"
READ_COMMITTED = "read_committed"
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)

Partition = PartitionInventory | str | PathLike[str]

# A clock at the epoch: no producer has expired, so every open transaction is found.
_NO_EXPIRATION = 0
_UNDEFINED = -1


@dataclass(frozen=True, slots=True)
class TimestampAndOffset:
    """A record's place; timestamp in ms and leader epoch are -1 where they do not apply."""

    timestamp: int
    offset: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH


def list_offsets(
    topic_partition: Partition,
    timestamp: int,
    *,
    isolation_level: str = READ_UNCOMMITTED,
    remote_dirs: str | Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
) -> TimestampAndOffset | None:
    """What a broker answers a consumer's ListOffsets: `timestamp` is one in ms, or
    EARLIEST_TIMESTAMP (-2), LATEST_TIMESTAMP (-1), MAX_TIMESTAMP (-3).

    `topic_partition` is a partition directory, or one of `open_log_dir`'s partitions; of a tiered
    one the segments below `remote_dirs` come first, as for `read_records`. None where
    there is no such record. InvalidConfigError for other timestamps and isolation levels;
    CorruptRecordError and its kin for damage on the way, RemoteStorageError.
    """
    partition = opened(topic_partition, storage_of(remote_dirs, remote_layout, remote_keys))
    if timestamp == EARLIEST_TIMESTAMP:
        return TimestampAndOffset(NO_TIMESTAMP, partition.log_start_offset)
    end = fetchable_end(partition, isolation_level)
    if timestamp == LATEST_TIMESTAMP:
        return TimestampAndOffset(NO_TIMESTAMP, end)
    if timestamp < MAX_TIMESTAMP:
        raise InvalidConfigError(f"timestamp {timestamp} has no meaning")
    found = (
        _max_timestamp(partition)
        if timestamp == MAX_TIMESTAMP
        else offset_for_timestamp(partition, timestamp)
    )
    return found if found is not None and found.offset < end else None


def offset_for_leader_epoch(topic_partition: Partition, leader_epoch: int) -> tuple[int, int]:
    """(leader epoch, its end offset): of the largest known epoch at or below `leader_epoch`.

    (-1, -1) for an epoch above all, or where none is known; below the first one the epoch that was
    asked for and the first one's start, as a broker answers.
    """
    partition = opened(topic_partition)
    entries = _leader_epochs(partition)
    if not entries or leader_epoch < 0:
        return _UNDEFINED, _UNDEFINED
    # An epoch ends where the next larger one begins, the current one at the log's end: followers
    # truncate to that (KIP-101, KIP-279).
    if entries[-1][0] == leader_epoch:
        return leader_epoch, partition.log_end_offset
    higher = [entry for entry in entries if entry[0] > leader_epoch]
    if not higher:
        return _UNDEFINED, _UNDEFINED
    lower = [entry for entry in entries if entry[0] <= leader_epoch]
    return (lower[-1][0] if lower else leader_epoch), higher[0][1]


def fetchable_end(partition: PartitionInventory, isolation_level: str) -> int:
    """The offset a consumer's fetch ends before: high watermark, or last stable offset. Without a
    checkpoint the high watermark is the log's end."""
    if isolation_level not in ISOLATION_LEVELS:
        raise InvalidConfigError(
            f"isolation level '{isolation_level}', known are {', '.join(ISOLATION_LEVELS)}"
        )
    if isolation_level == READ_COMMITTED:
        return last_stable_offset(partition)
    return high_watermark(partition)


def high_watermark(partition: PartitionInventory) -> int:
    """The high watermark a broker would start with, within the log; its end without a line."""
    known = partition.checkpoints.high_watermark
    if known is None:
        return partition.log_end_offset
    return min(max(known, partition.log_start_offset), partition.log_end_offset)


def last_stable_offset(partition: PartitionInventory, *, bears_damage: bool = False) -> int:
    """Kafka's LSO: not above the high watermark, nor above the first offset of any transaction
    that is open. CorruptSnapshotError and its kin where the log cannot tell; with `bears_damage`
    a transaction that may have ended in what cannot be read does not count, see
    `transaction_ranges.ranges_of`.
    """
    if bears_damage:
        found = producers_past_damage(partition)
        producers, doubtful_before = found.producers, found.doubtful_before
    else:
        producers = active_producers(partition, now_ms=_NO_EXPIRATION, expiration_ms=1)
        doubtful_before = 0
    open_since = [
        max(p.current_txn_first_offset, partition.log_start_offset)
        for p in producers.values()
        if p.current_txn_first_offset is not None and p.current_txn_first_offset >= doubtful_before
    ]
    return min([high_watermark(partition), *open_since])


def offset_for_timestamp(
    partition: PartitionInventory, timestamp: int, *, bears_zeros: bool = False
) -> TimestampAndOffset | None:
    """The first record from the log start on whose timestamp is at or above `timestamp`, in the
    first segment that reaches it; None if no segment does. Zeros that stand for lost records on the
    way are damage, unless it `bears_zeros`."""
    for segment, next_base in _with_next_bases(partition):
        end_offset = None if bears_zeros else next_base
        # The first segment that reaches it decides, as in Kafka
        # (UnifiedLog.fetchOffsetByTimestamp). How far the active one reaches its time index does
        # not tell before it is closed: it is looked into.
        if segment.is_active or _reaches(segment, timestamp, end_offset):
            return _first_at(segment, timestamp, partition.log_start_offset, end_offset)
    return None


def _with_next_bases(partition: PartitionInventory) -> Iterator[tuple[SegmentInfo, int | None]]:
    """Segments, and the base offset of the one behind each."""
    segments = partition.segments
    return zip_longest(segments, (segment.base_offset for segment in segments[1:]))


def opened(
    topic_partition: Partition, storage: RemoteStorage = NO_REMOTE_STORAGE
) -> PartitionInventory:
    """The one partition a path names, with its segments in remote storage; InvalidConfigError if it
    names none or several."""
    if storage.is_tree and not isinstance(topic_partition, PartitionInventory):
        from kafkalog.log.remote_tree import open_logs

        return _only(open_logs([fspath(topic_partition)], storage).partitions, topic_partition)
    partition = _opened(topic_partition)
    if not storage.places:
        return partition
    # Imported late: few have remote storage, and what decodes its records looks up offsets, too.
    from kafkalog.reading.tiered_partition import with_remote

    return with_remote(partition, storage)


def storage_of(
    remote_dirs: str | Sequence[str], layout: str | None, keys: Mapping[str, str] | None
) -> RemoteStorage:
    """The arguments of a function of Python as one value; InvalidConfigError for keys alone."""
    places = paths_in(remote_dirs)
    if not places and layout is None and keys:
        raise InvalidConfigError("a remote key is given, and neither remote directory nor layout")
    return RemoteStorage(places, layout, tuple((key, fspath(f)) for key, f in (keys or {}).items()))


def _opened(topic_partition: Partition) -> PartitionInventory:
    if isinstance(topic_partition, PartitionInventory):
        return topic_partition
    return _only(open_log_dir(topic_partition).partitions, topic_partition)


def _only(found: Sequence[PartitionInventory], path: str | PathLike[str]) -> PartitionInventory:
    if len(found) != 1:
        raise InvalidConfigError(
            f"a partition's directory is needed; {len(found)} partitions are there",
            path=fspath(path),
        )
    return found[0]


def records_of(segment: SegmentInfo, row: np.void) -> RecordSpans:
    """The records of one batch; its spans point into bytes that are gone."""
    position = int(row["position"])
    end = position + int(row["size_in_bytes"])
    chunk = next(iter(read_chunks(segment.path, start=position, end=end)))
    areas = open_record_areas(chunk.buf, chunk.position, chunk.rows, Arena(), path=segment.path)
    return decode_spans(areas, areas.rows, segment.path)


def _reaches(segment: SegmentInfo, timestamp: int, end_offset: int | None) -> bool:
    """Whether the largest timestamp is at or above it; as for Kafka the file's time counts where no
    record has one."""
    largest = largest_timestamp(segment)
    if largest is None:
        largest = NO_TIMESTAMP
        for rows in walk_headers(segment, 0, end_offset):
            largest = max(largest, int(rows["max_timestamp"].max()))
            if largest >= max(timestamp, 0):
                return True
    return (largest if largest >= 0 else segment.modification_time_ms) >= timestamp


def _first_at(
    segment: SegmentInfo, timestamp: int, least_offset: int, end_offset: int | None
) -> TimestampAndOffset | None:
    start = _start(segment, timestamp, least_offset)
    for row in _batches_reaching(segment, start, timestamp, end_offset):
        spans = records_of(segment, row)
        # The batch's largest timestamp only says that one of its records may do; which one is first
        # its records tell.
        wanted = (spans.timestamps >= timestamp) & (spans.offsets >= least_offset)
        found = np.flatnonzero(wanted)
        if found.size:
            return _found(spans, int(found[0]), row)
    return None


def _max_timestamp(partition: PartitionInventory) -> TimestampAndOffset | None:
    if not partition.segments:
        return None
    walked = [
        (_largest(segment, end_offset), segment, end_offset)
        for segment, end_offset in _with_next_bases(partition)
    ]
    largest, segment, end_offset = max(walked, key=lambda found: found[0])
    if largest < 0:
        return None
    for row in _batches_reaching(segment, _start(segment, largest), largest, end_offset):
        spans = records_of(segment, row)
        found = np.flatnonzero(spans.timestamps == largest)
        if found.size:
            return _found(spans, int(found[0]), row)
    return None


def _largest(segment: SegmentInfo, end_offset: int | None) -> int:
    """The largest timestamp, of the active segment as well; -1 without any."""
    known = largest_timestamp(segment)
    if known is not None:
        return known
    headers = walk_headers(segment, 0, end_offset)
    walked = (int(rows["max_timestamp"].max()) for rows in headers)
    return max(walked, default=NO_TIMESTAMP)


def _start(segment: SegmentInfo, timestamp: int, least_offset: int = 0) -> int:
    """A batch start before which no record from `least_offset` on reaches the timestamp."""
    by_time = first_reaching(segment, timestamp)
    # Where the time index leads below the log start, whose records are deleted, the offset index is
    # nearer.
    if by_time is not None and by_time[0] >= least_offset:
        return by_time[1]
    return start_position(segment, least_offset) or 0


def _batches_reaching(
    segment: SegmentInfo, start: int, timestamp: int, end_offset: int | None
) -> Iterator[np.void]:
    """Headers from `start` on whose largest timestamp is at or above it; magic 0 has none."""
    for rows in walk_headers(segment, start, end_offset):
        reaching = (rows["max_timestamp"] >= timestamp) & (rows["magic"] > MAGIC_VALUE_V0)
        yield from rows[reaching]


def _found(spans: RecordSpans, record: int, row: np.void) -> TimestampAndOffset:
    return TimestampAndOffset(
        int(spans.timestamps[record]),
        int(spans.offsets[record]),
        int(row["partition_leader_epoch"]),
    )


def _leader_epochs(partition: PartitionInventory) -> list[EpochEntry]:
    """Those of the checkpoint; where it is missing those of the batches."""
    path = Path(partition.path) / LEADER_EPOCH_CHECKPOINT_FILE
    try:
        return list(parse_leader_epoch_checkpoint(read_small_file(path), str(path)))
    except FileNotFoundError:
        replay = LeaderEpochReplay(())
    for segment, end_offset in _with_next_bases(partition):
        for rows in walk_headers(segment, 0, end_offset):
            replay.apply(rows)
    return replay.entries(partition.log_start_offset, partition.log_end_offset)
