"""Segments of tiered partitions in remote storage, before those on the broker's disk: together they
are the log that a consumer reads.

What is still on the broker's disk is read there. An upload may be there twice, or cover what
another one has: a broker retries, and leaders change. As a broker's fetch does, what counts is

- what `__remote_log_metadata` says was finished, where that topic is on these disks;
- what was written in the leader epochs that the partition has: a leader that was replaced may have
  uploaded records that nobody has any more;
- of two segments that begin alike the one that goes further, and each up to where the next begins.

Layouts are `remote.layouts`.

Source: Kafka RemoteLogManager.read, RemoteLogMetadataCache, RemoteLogManager
.isRemoteSegmentWithinLeaderEpochs (KIP-405).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kafkalog.errors import InvalidConfigError, RemoteStorageError
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, entry_timestamp
from kafkalog.log.index_tail import read_index_tail
from kafkalog.log.inventory import FileIdentity, PartitionInventory, SegmentInfo
from kafkalog.log.partition_dir import describe_segment
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.log.segment_span import SegmentSpan
from kafkalog.remote.layouts import RemoteDirectory, RemoteLog, find_directories, logs_of
from kafkalog.remote.paths import ManifestPath, RemoteStorage
from kafkalog.remote.segment import ChunkedSegment, look_at_manifest, read_manifest

REMOTE = "remote"

Epochs = tuple[tuple[int, int], ...]
Note = Callable[[PartitionInventory, RemoteStorageError], None]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CopyState:
    """What `__remote_log_metadata` says of a segment. The end offset is excluded; epochs are
    (leader epoch, its first offset in the segment)."""

    is_finished: bool
    end_offset: int | None = None
    leader_epochs: Epochs = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A segment that may be part of the log; `end_offset`, excluded, and epochs where known."""

    log: RemoteLog
    end_offset: int | None = None
    leader_epochs: Epochs = ()
    copied_ms: int = -1
    is_cut: bool = field(default=False)

    @property
    def order(self) -> tuple[int | str, ...]:
        """By base offset; of those with one base the best first."""
        end = -1 if self.end_offset is None else self.end_offset
        own = -end, self.is_cut, -self.copied_ms, -self.log.size, self.log.path
        return self.log.base_offset, *own


def with_remote_segments(
    partitions: Iterable[PartitionInventory],
    storage: RemoteStorage,
    copies: Mapping[str, CopyState] | None = None,
    *,
    note: Note | None = None,
) -> list[PartitionInventory]:
    """The partitions, each with its segments in remote storage in front of its own; those that have
    none there as they were. `copies`: by segment id.

    InvalidConfigError for a place that is no directory or of a layout that is not read, or where
    topic ids do not tell which of several directories is a partition's. RemoteStorageError for
    segments that cannot be read; with `note` they are left out, and it is told of them.
    """
    chosen = list(partitions)
    ids = {partition.topic_id for partition in chosen}
    found = [
        directory
        for place in storage.places
        for directory in find_directories(
            place, storage.layout, lambda topic_id: None in ids or topic_id in ids
        )
    ]
    result = []
    for partition in chosen:
        name = partition.topic_partition
        own = [d for d in found if d.is_of(name.topic, name.partition, partition.topic_id)]
        _refuse_other_ids(partition, own)
        result.append(with_segments_of(partition, own, storage, copies or {}, note=note))
    return result


def with_segments_of(
    partition: PartitionInventory,
    own: Sequence[RemoteDirectory],
    storage: RemoteStorage,
    copies: Mapping[str, CopyState],
    *,
    lineage: Callable[[Sequence[RemoteLog]], Epochs] | None = None,
    note: Note | None = None,
) -> PartitionInventory:
    """The same of one partition, whose directories in remote storage are known. `lineage`: what
    tells its leader epochs from these segments; without it the partition's own file does."""
    # What a broker still has on its own disk is read there, whatever remote storage has of it.
    first_local = partition.segments[0].base_offset if partition.segments else None
    in_front = [log for log in logs_of(own) if first_local is None or log.base_offset < first_local]
    epochs = _leader_epochs(partition) if lineage is None else lineage(in_front)
    remote: list[SegmentInfo] = []
    candidates = _candidates(in_front, copies, partition, note)
    for candidate in _chosen(candidates, epochs, first_local):
        try:
            remote.append(_described(candidate.log, storage))
        except RemoteStorageError as error:
            _note_or_raise(error, partition, note)
    if not remote:
        return partition
    known_start = partition.checkpoints.log_start
    log_start = remote[0].base_offset if known_start is None else known_start
    return replace(
        partition,
        segments=(*remote, *partition.segments),
        log_start_offset=log_start,
        has_remote_segments=True,
    )


def _refuse_other_ids(partition: PartitionInventory, own: Sequence[RemoteDirectory]) -> None:
    if len({directory.topic_id for directory in own if directory.topic_id}) > 1:
        names = ", ".join(sorted(directory.path for directory in own))
        raise InvalidConfigError(
            f"the partition's topic id is not known, and remote storage has {names}",
            path=partition.path,
        )


def _leader_epochs(partition: PartitionInventory) -> Epochs:
    entries = read_leader_epochs(partition.path) if partition.is_whole else None
    return tuple((epoch, start) for epoch, start in entries or ())


# -- which of them count ---------------------------------------------------------------------------


def _candidates(
    logs: Iterable[RemoteLog],
    copies: Mapping[str, CopyState],
    partition: PartitionInventory,
    note: Note | None,
) -> Iterator[_Candidate]:
    for log in logs:
        known = copies.get(log.segment_id or "")
        if known is not None and not known.is_finished:
            continue  # an upload that failed, or is not done; or what is being deleted
        candidate = _Candidate(log)
        if log.manifest is not None:
            try:
                candidate = _of_manifest(log, log.manifest)
            except RemoteStorageError as error:
                _note_or_raise(error, partition, note)
                continue
        if known is not None and known.end_offset is not None:
            candidate = replace(
                candidate, end_offset=known.end_offset, leader_epochs=known.leader_epochs
            )
        yield candidate


def _of_manifest(log: RemoteLog, path: str) -> _Candidate:
    copied = read_manifest(look_at_manifest(path)).copied
    if copied is None:
        return _Candidate(log)
    if (copied.start_offset, copied.segment_id) != (log.base_offset, log.segment_id):
        raise RemoteStorageError(
            f"the manifest of segment {copied.segment_id} from offset {copied.start_offset} on,"
            " under another one's name",
            path=path,
        )
    return _Candidate(log, copied.end_offset + 1, copied.leader_epochs, copied.event_timestamp_ms)


def _chosen(
    candidates: Iterable[_Candidate], epochs: Epochs, first_local: int | None
) -> list[_Candidate]:
    """In the order of their base offsets, one of each; each begins and ends behind the one before
    it."""
    chosen: list[_Candidate] = []
    covered = -1
    fitting = (_within_epochs(candidate, epochs) for candidate in candidates)
    for candidate in sorted((c for c in fitting if c is not None), key=lambda c: c.order):
        end = candidate.end_offset
        if chosen and chosen[-1].log.base_offset == candidate.log.base_offset:
            continue
        if end is not None and end <= covered:
            continue
        chosen.append(candidate)
        covered = covered if end is None else end
    bases = [candidate.log.base_offset for candidate in chosen]
    followers = [*bases, first_local][1:]
    return [c for c, after in zip(chosen, followers, strict=True) if not _ends_early(c, after)]


def _ends_early(candidate: _Candidate, following: int | None) -> bool:
    """Whether what lies behind its cut would be read: nothing says within a segment where to
    stop but where the next one begins."""
    if not candidate.is_cut or candidate.end_offset is None:
        return False
    if following is not None and following <= candidate.end_offset:
        return False
    _logger.warning(
        "%s: left out: behind offset %d it has records of another leader epoch than the partition",
        candidate.log.path,
        candidate.end_offset,
    )
    return True


def _within_epochs(candidate: _Candidate, epochs: Epochs) -> _Candidate | None:
    """The candidate up to where it has what the partition has; None if it begins with what that
    does not have. What is older than the partition's first epoch cannot be judged."""
    own, end = candidate.leader_epochs, candidate.end_offset
    if not epochs or not own or end is None:
        return candidate
    ends = {epoch: after for (epoch, _), (_, after) in pairwise(epochs)}
    starts = dict(epochs)
    for number, (epoch, start) in enumerate(own):
        own_end = own[number + 1][1] if number + 1 < len(own) else end
        if epoch < epochs[0][0]:
            continue
        if epoch not in starts or (epoch > epochs[0][0] and start < starts[epoch]):
            return _cut(candidate, start) if number else None
        if own_end > ends.get(epoch, own_end):
            limit = ends[epoch]
            return _cut(candidate, limit) if limit > candidate.log.base_offset else None
    return candidate


def _cut(candidate: _Candidate, end_offset: int) -> _Candidate:
    return replace(candidate, end_offset=end_offset, is_cut=True)


# -- what they are ---------------------------------------------------------------------------------


def _described(log: RemoteLog, storage: RemoteStorage) -> SegmentInfo:
    if log.manifest is None:
        return describe_segment(log.path, log.base_offset, REMOTE)
    return describe_behind_manifest(
        ManifestPath(log.manifest, log.path, storage.keys), log.base_offset
    )


def describe_behind_manifest(path: ManifestPath, base_offset: int) -> SegmentInfo:
    """A segment by its manifest, and the sizes and times of its objects; of what is encrypted no
    key is needed unless the manifest is of an early release. Raises as `ChunkedSegment`."""
    segment = ChunkedSegment(path)
    manifest = segment.manifest
    if manifest.copied is not None:
        largest_ms = manifest.copied.max_timestamp_ms
    else:
        tail = read_index_tail(path.beside(".timeindex"), TIME_INDEX_ENTRY_BYTES)
        largest_ms = entry_timestamp(tail.last_entry)
    return SegmentInfo(
        base_offset=base_offset,
        path=path,
        state=REMOTE,
        size_in_bytes=segment.size,
        identity=FileIdentity(segment.size, segment.mtime_ns, segment.version),
        is_active=False,
        offset_index_bytes=manifest.piece_bytes("offset"),
        time_index_bytes=manifest.piece_bytes("timestamp"),
        txn_index_bytes=manifest.piece_bytes("transaction"),
        has_snapshot="producerSnapshot" in manifest.pieces,
        largest_timestamp_ms=largest_ms,
        modification_time_ms=segment.mtime_ns // 1_000_000,
    )


def span_by_manifest(segment: SegmentInfo, bounds: tuple[int, int]) -> SegmentSpan | None:
    """From where to where a segment goes, as its manifest says; None where offsets `bounds` (the
    last excluded) are not all within that, so that its ends are read anyway, or there is none.

    To look at both ends of a segment for one offset in its middle would cost two chunks more.
    """
    if not isinstance(segment.path, ManifestPath):
        return None
    copied = read_manifest(look_at_manifest(segment.path.manifest)).copied
    if copied is None or not copied.start_offset <= bounds[0] <= bounds[1] <= copied.end_offset + 1:
        return None
    return SegmentSpan(segment.base_offset, copied.start_offset, copied.end_offset + 1)


def say_left_out(_: PartitionInventory, error: RemoteStorageError) -> None:
    """A `note` for reads that bear losses."""
    _logger.warning("left out: %s", error)


def _note_or_raise(
    error: RemoteStorageError, partition: PartitionInventory, note: Note | None
) -> None:
    if note is None:
        raise error
    note(partition, error)
