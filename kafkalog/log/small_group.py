"""The files of some small logs read together, and the columns of those that are sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.checkpoints import EpochEntry, parse_leader_epoch_checkpoint
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.file_names import REMOTE_INDEX_CACHE_DIR
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.kernels import header_sums
from kafkalog.log.compaction_signs import FIRST_BATCHES
from kafkalog.log.directory_entries import SeenDirectories
from kafkalog.log.disk_traces import all_agree
from kafkalog.log.group_files import GroupFiles, Moment, SmallLog
from kafkalog.log.listed_files import (
    EPOCHS,
    LOG,
    METADATA,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    ListedFiles,
)
from kafkalog.log.log_numbers import NONE, I64s, LogColumns, LogNumbers, NamedLogs, SegmentNumbers
from kafkalog.log.plain_segments import PlainSegments, SegmentFiles, plain_segments_of
from kafkalog.log.small_producers import last_times

Flags = NDArray[np.bool_]


def read_group(
    seen: SeenDirectories, files: ListedFiles, logs: Mapping[int, SmallLog], moment: Moment
) -> NamedLogs:
    """Those of these logs, by the number of their directory, that are sound."""
    group = GroupFiles(seen, files, [*logs])
    segments = plain_segments_of(group.buf, _segment_files(group))
    owners = group.owners[group.of_kind(LOG)]
    firsts = np.searchsorted(owners, np.arange(group.count + 1))
    group.are_sound[owners[~segments.are_plain]] = False
    _refuse_gaps(group, segments, owners)
    slices = segments.slices[:, :, 0] > 0
    slice_counts = np.add.reduceat(np.count_nonzero(slices, axis=1), firsts[:-1])
    group.are_sound &= slice_counts <= moment.most_slices
    # Of more batches a look at the beginning of a log takes no notice.
    counts = segments.row_ends - segments.row_firsts
    group.are_sound &= counts[firsts[:-1]] <= FIRST_BATCHES
    told = _told_by_small_files(group, segments, firsts.tolist(), [*logs.values()], moment)
    chosen = np.array([*told], np.int64)
    own = [log for number, log in enumerate(logs.values()) if number in told]
    return NamedLogs(
        [log.path for log in own],
        [each.topic_id for each in told.values()],
        [log.digest for log in own],
        LogColumns(
            _log_numbers(group, segments, firsts, own, told, moment),
            segments.numbers[np.isin(owners, chosen)],
            _slices(segments, firsts, np.isin(owners, chosen)),
            _column([each.producers for each in told.values()]),
            _column([each.snapshots for each in told.values()]),
            np.diff(firsts)[chosen],
            slice_counts[chosen],
            np.array([len(each.producers) for each in told.values()], np.int64),
            np.array([len(each.snapshots) for each in told.values()], np.int64),
        ),
    )


def _column(parts: Sequence[Sequence[int]]) -> I64s:
    return np.array([number for part in parts for number in part], np.int64).reshape(-1, 1)


def _segment_files(group: GroupFiles) -> SegmentFiles:
    """Logs whose indexes are named by other offsets are not sound."""
    logs = group.of_kind(LOG)
    ranges = []
    for kind in (LOG, OFFSET_INDEX, TIME_INDEX):
        own = group.of_kind(kind)
        is_other = group.offsets[own] != group.offsets[logs]
        group.are_sound[group.owners[logs][is_other]] = False
        ranges.append((group.starts[own], group.ends[own]))
    return SegmentFiles(
        group.offsets[logs], group.mtimes_ns[logs], group.inodes[logs], _has_snapshot(group),
        group.sizes[group.of_kind(OFFSET_INDEX)], group.sizes[group.of_kind(TIME_INDEX)], *ranges,
    )  # fmt: skip


def _has_snapshot(group: GroupFiles) -> I64s:
    """Of each segment whether there is a snapshot of its base offset."""
    logs, own = group.of_kind(LOG), group.of_kind(SNAPSHOT)
    found = np.zeros(logs.stop - logs.start, np.int64)
    bounds = np.searchsorted(group.owners[logs], np.arange(group.count + 1)).tolist()
    bases = group.offsets[logs]
    pairs = zip(group.owners[own].tolist(), group.offsets[own].tolist(), strict=True)
    for owner, offset in pairs:
        first, end = bounds[owner : owner + 2]
        at = first + int(np.searchsorted(bases[first:end], offset))
        if at < end and bases[at] == offset:
            found[at] = 1
    return found


def _refuse_gaps(group: GroupFiles, segments: PlainSegments, owners: I64s) -> None:
    """Each segment begins where the one in front of it ends."""
    bases, next_offsets = (_column_of(segments, name) for name in ("base_offset", "next_offset"))
    is_gap = (owners[1:] == owners[:-1]) & (bases[1:] != next_offsets[:-1])
    group.are_sound[owners[1:][is_gap]] = False


def _column_of(segments: PlainSegments, name: str) -> I64s:
    return segments.numbers[:, SegmentNumbers._fields.index(name)]


class _Told(NamedTuple):
    """What the small files of a log say: `newest_epoch` NONE without any, `topic_id` empty without
    one; `snapshots`: their offsets; `producers`: when each of them wrote last.
    """

    newest_epoch: int
    topic_id: str
    snapshots: list[int]
    producers: list[int]


def _told_by_small_files(
    group: GroupFiles, segments: PlainSegments, firsts: Sequence[int], logs: Sequence[SmallLog],
    moment: Moment,
) -> dict[int, _Told]:  # fmt: skip
    """Of the logs that are sound with them, by number."""
    files: list[dict[tuple[int, int], int]] = [{} for _ in logs]
    for file in range(group.of_kind(SNAPSHOT).start, len(group.kinds)):
        key = int(group.kinds[file]), int(group.offsets[file])
        files[group.owners[file]][key] = file
    bases = _column_of(segments, "base_offset").tolist()
    ends = _column_of(segments, "next_offset").tolist()
    found = {}
    for number in np.flatnonzero(group.are_sound).tolist():
        own, first, end = files[number], firsts[number], firsts[number + 1]
        try:
            epochs = _epochs(group.data(own[EPOCHS, 0])) if (EPOCHS, 0) in own else ()
            topic_id = _topic_id(group.data(own[METADATA, 0])) if (METADATA, 0) in own else ""
        except CorruptCheckpointError:
            continue
        snapshots = {
            offset: group.data(file) for (kind, offset), file in own.items() if kind == SNAPSHOT
        }
        lines, start = logs[number].lines, bases[first]
        if not all_agree(lines, epochs, [*snapshots], start=start, end=ends[end - 1]):
            continue
        if lines.log_start is not None and _has_remote_cache(logs[number].log_dir):
            continue
        producers = _producers(segments, range(first, end), snapshots, moment)
        if producers is not None:
            newest = max((epoch for epoch, _ in epochs), default=NONE)
            found[number] = _Told(newest, topic_id, sorted(snapshots), producers)
    return found


# Of most logs of a disk they are the same.
@lru_cache(maxsize=256)
def _epochs(data: bytes) -> Sequence[EpochEntry]:
    return tuple(parse_leader_epoch_checkpoint(data))


@lru_cache(maxsize=256)
def _topic_id(data: bytes) -> str:
    return parse_partition_metadata(data)


def _has_remote_cache(log_dir: Path) -> bool:
    """Where there is one, a log start at the first segment may be that of a tiered log."""
    return (log_dir / REMOTE_INDEX_CACHE_DIR).is_dir()


def _producers(
    segments: PlainSegments, own: range, snapshots: Mapping[int, bytes], moment: Moment
) -> list[int] | None:
    """See `last_times`."""
    if not snapshots and not segments.sums[own.start : own.stop, header_sums.PRODUCERS].any():
        return []
    ends = zip(segments.row_firsts[own], segments.row_ends[own], strict=True)
    return last_times(
        snapshots,
        _column_of(segments, "base_offset")[own].tolist(),
        [segments.rows[first:end] for first, end in ends],
        int(_column_of(segments, "next_offset")[own[-1]]),
        now_ms=moment.now_ms,
        expiration_ms=moment.expiration_ms,
    )


def _log_numbers(
    group: GroupFiles, segments: PlainSegments, firsts: I64s, logs: Sequence[SmallLog],
    told: Mapping[int, _Told], moment: Moment,
) -> I64s:  # fmt: skip
    starts = firsts[:-1]
    times = _column_of(segments, "min_timestamp_ms")
    oldest = np.minimum.reduceat(np.where(times < 0, MAX_INT64, times), starts)
    by_log = [
        np.add.reduceat(segments.sums[:, header_sums.BYTES], starts),
        np.where(oldest == MAX_INT64, NONE, oldest),
        np.maximum.reduceat(_column_of(segments, "largest_timestamp_ms"), starts),
        group.bytes_of(LOG),
        group.bytes_of(OFFSET_INDEX, TIME_INDEX),
        group.bytes_of(SNAPSHOT),
        group.bytes_of(EPOCHS, METADATA),
    ]
    bases = _column_of(segments, "base_offset")[starts].tolist()
    ends = _column_of(segments, "next_offset")[firsts[1:] - 1].tolist()
    in_front = [
        (
            moment.now_ms, moment.expiration_ms, _line(log.lines.recovery_point),
            _line(log.lines.high_watermark), _line(log.lines.log_start),
            bases[number], ends[number], each.newest_epoch,
        )
        for log, (number, each) in zip(logs, told.items(), strict=True)
    ]  # fmt: skip
    width = len(LogNumbers._fields) - len(by_log)
    chosen = np.array([*told], np.int64)
    behind = np.stack(by_log, axis=1)[chosen]
    return np.concatenate([np.array(in_front, np.int64).reshape(-1, width), behind], axis=1)


def _line(number: int | None) -> int:
    return NONE if number is None else number


def _slices(segments: PlainSegments, firsts: I64s, chosen: Flags) -> I64s:
    """SliceNumbers: what there is of each segment's, in its order."""
    is_active = np.zeros(len(chosen), np.bool_)
    is_active[firsts[1:] - 1] = True
    own = segments.slices[chosen]
    rows = own.reshape(-1, own.shape[2])
    active = np.repeat(is_active[chosen], own.shape[1])
    _, from_ms, to_ms, sizes, records = rows.T
    closed, in_active = np.where(active, 0, sizes), np.where(active, sizes, 0)
    # As SliceNumbers has them.
    numbers = np.stack([from_ms, to_ms, closed, in_active, records], axis=1)
    return numbers[rows[:, 0] > 0]
