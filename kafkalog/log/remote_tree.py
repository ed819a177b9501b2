"""Remote storage without the log dir of a broker: the segments of each partition that are there, as
one log.

What a broker's disk would tell is taken from the segments themselves: a topic's name from a
manifest, leader epochs from the checkpoint that was uploaded with the segment that goes furthest,
the log's start and end from its first and last segment. What was deleted by DeleteRecords within
the first segment is there to be read, and so is what no consumer was served yet; what was not
uploaded is not.

Source: Kafka RemoteLogManager.RLMCopyTask (the leader epochs of a segment are those of its log from
the beginning to the segment's end; KIP-405).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kafkalog.errors import (
    InvalidConfigError,
    KafkaLogError,
    RemoteStorageError,
)
from kafkalog.format.checkpoints import parse_leader_epoch_checkpoint
from kafkalog.log.inventory import (
    LogInventory,
    PartitionCheckpoints,
    PartitionInventory,
    SegmentInfo,
)
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.remote_segments import (
    CopyState,
    Epochs,
    Note,
    span_by_manifest,
    with_segments_of,
)
from kafkalog.log.segment_span import segment_span
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import PartitionKind, TopicPartition
from kafkalog.remote.layouts import RemoteDirectory, RemoteLog, find_directories, logs_of
from kafkalog.remote.paths import ManifestPath, RemoteStorage
from kafkalog.remote.segment import look_at_manifest, read_manifest
from kafkalog.remote.stores import bucket_uri

Accepts = Callable[[TopicPartition], bool]

_EPOCHS_ENDING = ".leader_epoch_checkpoint"
_NOTHING_KNOWN: Mapping[str, CopyState] = {}


def open_logs(
    paths: Sequence[str],
    storage: RemoteStorage,
    *,
    accepts: Accepts = lambda _: True,
    note: Note | None = None,
) -> LogInventory:
    """What is below `paths`: log dirs, or trees of remote storage where `storage` has a layout and
    no places. Partitions of a tree that are not accepted are there by their names alone. Raises as
    `open_log_dir`, and as `with_remote_segments`."""
    if not storage.is_tree:
        return open_log_dir(*paths)
    found = [partition for place in paths for partition in _in_tree(place, storage, accepts, note)]
    found.sort(key=lambda each: (each.topic_partition, each.path))
    return LogInventory(tuple(found))


def _in_tree(
    place: str, storage: RemoteStorage, accepts: Accepts, note: Note | None
) -> Iterator[PartitionInventory]:
    groups: dict[tuple[str, int], list[RemoteDirectory]] = {}
    for directory in find_directories(place, storage.layout):
        # Without ids nothing brings two directories together.
        key = directory.topic_id or directory.path, directory.partition
        groups.setdefault(key, []).append(directory)
    for own in groups.values():
        partition = _named(place, own)
        if not accepts(partition.topic_partition):
            yield partition
            continue
        found = with_segments_of(
            partition, own, storage, _NOTHING_KNOWN,
            lineage=lambda logs: _lineage(logs, storage), note=note,
        )  # fmt: skip
        if found.segments:
            found = replace(found, log_end_offset=_end_of(found.segments[-1]))
        yield found


def _named(place: str, own: Sequence[RemoteDirectory]) -> PartitionInventory:
    """The partition, before its segments are looked at."""
    first = own[0]
    return PartitionInventory(
        topic_partition=TopicPartition(_topic_of(own), first.partition),
        kind=PartitionKind.LIVE,
        path=first.path,
        log_dir=bucket_uri(place) or place,
        directory_id=None,
        dir_device=0,
        dir_inode=0,
        topic_id=first.topic_id,
        segments=(),
        other_segments=(),
        leftovers=(),
        log_start_offset=0,
        log_end_offset=0,
        checkpoints=PartitionCheckpoints(),
        snapshot_offsets=(),
        has_remote_segments=True,
    )


def _topic_of(own: Sequence[RemoteDirectory]) -> str:
    """As a manifest has it: a prefix may be glued to the directory's name."""
    for log in logs_of(own):
        if log.manifest is not None:
            try:
                copied = read_manifest(look_at_manifest(log.manifest)).copied
            except RemoteStorageError:
                continue
            if copied is not None:
                return copied.topic
    return own[0].name


def _end_of(last: SegmentInfo) -> int:
    span = span_by_manifest(last, (last.base_offset, last.base_offset))
    return (span or segment_span(last)).next_offset


def _lineage(logs: Sequence[RemoteLog], storage: RemoteStorage) -> Epochs:
    """The leader epochs of the log that the latest leader wrote, with the offset each begins at.

    Of what is encrypted and has no key here it is what manifests say together, from the latest
    epoch down: what begins at or behind a later one was written by a leader that was replaced.
    """
    best: tuple[int, int, RemoteLog] | None = None
    starts: dict[int, int] = {}
    for log in logs:
        if log.manifest is None:
            continue
        try:
            copied = read_manifest(look_at_manifest(log.manifest)).copied
        except RemoteStorageError:
            continue  # said, or raised, when it is described
        if copied is None or not copied.leader_epochs:
            continue
        for epoch, start in copied.leader_epochs:
            starts[epoch] = min(start, starts.get(epoch, start))
        order = copied.leader_epochs[-1][0], copied.end_offset
        if best is None or order > best[:2]:
            best = *order, log
    if best is None:
        return ()
    return _checkpoint_of(best[2], storage) or _from_the_latest(starts)


def _checkpoint_of(log: RemoteLog, storage: RemoteStorage) -> Epochs:
    """Empty where it cannot be read."""
    if log.manifest is None:
        return ()
    path = ManifestPath(log.manifest, log.path, storage.keys).beside(_EPOCHS_ENDING)
    try:
        return tuple(parse_leader_epoch_checkpoint(read_small_file(path), path))
    except InvalidConfigError:
        raise  # a file that is no key
    except (KafkaLogError, OSError):
        return ()


def _from_the_latest(starts: Mapping[int, int]) -> Epochs:
    found: list[tuple[int, int]] = []
    for epoch in sorted(starts, reverse=True):
        if not found or starts[epoch] < found[-1][1]:
            found.append((epoch, starts[epoch]))
    return tuple(reversed(found))
