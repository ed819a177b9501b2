"""Until when a broker was alive on a log dir, at least, and how it left it.

    files    a broker writes checkpoints every minute, and appends to its logs
    logs     the newest timestamp of any record in the log dir that does not lie ahead of the audit

Files are believed: a broker may live and be sent nothing. But a copy (by git, by `cp -r`, out of an
archive) gives all files the time of the copy. Then not one of them is as old as the newest record,
and only the logs tell.

A broker that stops in order cuts the indexes of active segments to their entries and leaves
`.kafka_cleanshutdown`; one that runs, or was killed, has them at full size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkalog.auditing.sound_facts import KeptSegments
from kafkalog.auditing.thresholds import GRACE_MS
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.kept_logs import KeptLogs
from kafkalog.log.log_dir_files import CHECKPOINT_FILES, is_clean_stop
from kafkalog.log.small_files import size_of
from kafkalog.log.storage import identity_of

# What an index that was not cut has behind its entries, or more: up to segment.index.bytes.
_NOT_CUT_BYTES = 1024


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """Times in ms, 0 for none. `by_logs_ms`: by the logs; `checkpoints_ms`: by the newest
    checkpoint's file; `files_from_ms`, `files_to_ms`: of all files looked at; `is_copied`: these
    look like a copy's. `not_cut`: live partitions whose active segment has indexes of full size, of
    so many `partitions`; `is_clean_stop`: the file that says so is there.
    """

    by_logs_ms: int
    checkpoints_ms: int
    files_from_ms: int
    files_to_ms: int
    is_copied: bool
    not_cut: int
    partitions: int
    is_clean_stop: bool

    def alive_ms(self, partition: PartitionInventory) -> int:
        """The last sign of life that matters to a partition."""
        if self.is_copied:
            return self.by_logs_ms
        return max(self.checkpoints_ms, newest_file_ms(partition.segments))


def newest_file_ms(segments: Sequence[SegmentInfo]) -> int:
    """When a `.log` file was written last; 0 without one."""
    if isinstance(segments, KeptSegments):
        return segments.logs.newest_mtimes_ns[segments.place] // 1_000_000
    return max((segment.modification_time_ms for segment in segments), default=0)


class _LogFiles(NamedTuple):
    """Of the `.log` files of some logs: modification times, and largest timestamps by the indexes;
    how many of the logs have an active segment whose index is of full size.
    """

    modified_ms: Iterable[int]
    largest_ms: Iterable[int]
    not_cut: int


def signs_of_life(
    log_dir: str, partitions: Iterable[PartitionInventory], now_ms: int
) -> SignsOfLife:
    """Of the log dir these are all partition directories of."""
    own = [p.segments for p in partitions if p.segments]
    found = [*_by_kept([s for s in own if isinstance(s, KeptSegments)])]
    found.append(_by_files([s for s in own if not isinstance(s, KeptSegments)]))
    checkpoints = _times(Path(log_dir, name) for name in CHECKPOINT_FILES)
    times = [*checkpoints, *_times([Path(log_dir, META_PROPERTIES_FILE)])]
    times += chain.from_iterable(each.modified_ms for each in found)
    largest = chain.from_iterable(each.largest_ms for each in found)
    by_logs = max((time_ms for time_ms in largest if time_ms <= now_ms), default=0)
    return SignsOfLife(
        by_logs_ms=max(by_logs, 0),
        checkpoints_ms=max(checkpoints, default=0),
        files_from_ms=min(times, default=0),
        files_to_ms=max(times, default=0),
        is_copied=by_logs > 0 and min(times, default=0) > by_logs + GRACE_MS,
        not_cut=sum(each.not_cut for each in found),
        partitions=len(own),
        is_clean_stop=is_clean_stop(log_dir),
    )


def _by_files(logs: Sequence[Sequence[SegmentInfo]]) -> _LogFiles:
    return _LogFiles(
        [segment.modification_time_ms for segments in logs for segment in segments],
        [segment.largest_timestamp_ms for segments in logs for segment in segments],
        sum(_is_not_cut(segments[-1]) for segments in logs),
    )


def _by_kept(logs: Sequence[KeptSegments]) -> Iterator[_LogFiles]:
    """The same of logs that are as an earlier audit saw them; it knows how long their files are."""
    places: dict[int, tuple[KeptLogs, list[int]]] = {}
    for each in logs:
        places.setdefault(id(each.logs), (each.logs, []))[1].append(each.place)
    for kept, own in places.values():
        rows = kept.rows("segment", own)
        actives = rows[np.cumsum(kept.counts("segment", own)) - 1]
        # The zeros behind the entries of an offset index.
        indexes, time_indexes, entries = (
            kept.values("segment", field, actives)
            for field in ("index_bytes", "time_file_bytes", "offset_index_bytes")
        )
        not_cut = np.count_nonzero(indexes - time_indexes - entries > _NOT_CUT_BYTES)
        largest = kept.values("segment", "indexed_timestamp_ms", rows)
        # The smallest and the largest tell as much as all.
        modified = kept.values("segment", "mtime_ns", rows) // 1_000_000
        yield _LogFiles(
            [int(modified.min()), int(modified.max())], np.unique(largest).tolist(), int(not_cut)
        )


def _times(paths: Iterable[Path]) -> list[int]:
    found = []
    for path in paths:
        try:
            found.append(identity_of(str(path)).mtime_ns // 1_000_000)
        except OSError:
            continue
    return found


def _is_not_cut(active: SegmentInfo) -> bool:
    try:
        size = size_of(active.beside(".index")) or 0
    except OSError:
        return False
    return size - active.offset_index_bytes > _NOT_CUT_BYTES
