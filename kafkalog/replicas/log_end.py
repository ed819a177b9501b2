"""Where a copy's log ends by its batches, whatever its indexes say.

A broker asks no more of an index than that its last entry leads to bytes that look like a header.
An entry that leads into a value may find a whole batch there, with a right checksum, of any offset.
So the headers of the active segment are walked from its first one.

Behind the recovery point nothing was known to be on the disk: a broker that died cuts its log at
the first batch there whose checksum is wrong.

Source: Kafka LogSegment.readNextOffset, LogSegment.recover, LogLoader.recoverLog.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError
from kafkalog.log.index_lookup import walk_headers
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.single_batch import has_right_checksum
from kafkalog.log.storage import SourceFile, open_file


@dataclass(frozen=True, slots=True)
class LogEnd:
    """offset: as far as the log goes, or went once where its end is damaged. sound_offset: what a
    recovery keeps for sure: no batch between the recovery point and there is unsound.
    """

    offset: int
    sound_offset: int


def log_end(partition: PartitionInventory) -> LogEnd:
    """The end of a log. OSError, LogChangedError as from reading it."""
    active = partition.active_segment
    if active is None:
        return LogEnd(partition.log_start_offset, partition.log_start_offset)
    checked_from = partition.checkpoints.recovery_point or 0
    ends = [segment.base_offset for segment in partition.segments[1:]]
    for segment, end in zip(partition.segments, ends, strict=False):
        if end > checked_from and not (its := _walk(segment, checked_from, end)).is_sound:
            return LogEnd(_walk(active, checked_from).offset_or(partition), its.sound_offset)
    found = _walk(active, checked_from)
    return LogEnd(found.offset_or(partition), found.sound_offset)


@dataclass(slots=True)
class _Walk:
    """offset: behind the last batch; sound_offset: in front of the first unsound one, or of what
    cannot be walked over.
    """

    offset: int
    sound_offset: int
    is_sound: bool = True
    is_damaged: bool = False

    def offset_or(self, partition: PartitionInventory) -> int:
        """The offset; of damage as far as the log went once, which its checkpoints know."""
        points = partition.checkpoints
        known = [points.high_watermark, points.recovery_point] if self.is_damaged else []
        return max(self.offset, *(each or 0 for each in known), 0)


def _walk(segment: SegmentInfo, checked_from: int, end_offset: int | None = None) -> _Walk:
    found = _Walk(segment.base_offset, segment.base_offset)
    try:
        with open_file(segment.path) as file:
            for rows in walk_headers(segment, 0, end_offset):
                found.offset = int(rows["last_offset"][-1]) + 1
                if found.is_sound:
                    sound = _sound_in_front(file, rows, checked_from)
                    found.is_sound = sound == rows.size
                    if sound:
                        found.sound_offset = int(rows["last_offset"][sound - 1]) + 1
    except KafkaLogError:
        found.is_sound, found.is_damaged = False, True
    return found


def _sound_in_front(file: SourceFile, rows: NDArray[np.void], checked_from: int) -> int:
    """How many batches there are in front of the first unsound one that reaches an offset."""
    for b in np.flatnonzero(rows["last_offset"] >= checked_from).tolist():
        if not has_right_checksum(file, rows[b]):
            return int(b)
    return int(rows.size)
