"""What the bytes behind the last whole batch of a segment are: how a log ends, or damage.

 zeros                 preallocated: the end of the active segment. Of others the broker cut them
                       off when it rolled, so they stand for what was lost, unless the next segment
                       begins with the very next offset (if that is known)
 the start of a batch  the active segment ends so when a broker died, or is, in the middle of an
                       append; but not where a sound batch lies behind, or another segment

Kafka's own readers end at both without a word, and its recovery cuts off whatever lies behind.

Source: Kafka FileLogInputStream, LogSegment.recover, FileRecords.trim.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, MAX_INT32
from kafkalog.kernels.status import ZERO_TAIL
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.next_batch import Bounds, find_next_batch, work_for
from kafkalog.log.storage import open_file


@dataclass(frozen=True, slots=True)
class SegmentEnds:
    """What is known of a segment from outside of its file: its first offset, the next segment's
    (None where that is not known), and whether the log ends with it.
    """

    base_offset: int
    end_offset: int | None
    is_last: bool

    @classmethod
    def of(cls, segment: SegmentInfo, end_offset: int | None = None) -> SegmentEnds:
        return cls(segment.base_offset, end_offset, segment.is_active)

    @property
    def upper_bound_offset(self) -> int:
        """No offset of the segment is so high."""
        most = self.base_offset + MAX_INT32 + 1
        return most if self.end_offset is None else min(self.end_offset, most)

    def bounding(self, last_offset: int) -> int:
        """The offset that what comes next lies above: a last offset that the segment cannot have
        was damaged, and bounds nothing.
        """
        is_possible = self.base_offset <= last_offset < self.upper_bound_offset
        return last_offset if is_possible else self.base_offset - 1


@dataclass(frozen=True, slots=True)
class Tail:
    """[position, end) of a file, in which no whole batch begins: why (`status` of kernels.status:
    NEED_MORE or ZERO_TAIL), and the last offset in front of it.
    """

    position: int
    end: int
    status: int
    last_offset: int


def tail_error(path: str, tail: Tail, ends: SegmentEnds) -> CorruptRecordError | None:
    """What is wrong with the tail of a segment, None where that is how a log ends.

    OSError, LogChangedError as from reading.
    """
    length = tail.end - tail.position
    if length <= 0:
        return None
    with open_file(path) as file:
        head = file.read_bytes(tail.position, min(length, HEADER_SIZE_UP_TO_MAGIC))
    # so few are no header, and the walk does not look what they are
    # Zeros are what a broker preallocates, and what a file system may leave after a crash. They
    # prove a loss only where another segment begins behind a gap of offsets.
    if tail.status == ZERO_TAIL or (length <= HEADER_SIZE_UP_TO_MAGIC and not any(head)):
        if ends.is_last or ends.end_offset in (None, tail.last_offset + 1):
            return None
        reason = f"{length} zero bytes up to the end of a segment that others follow"
        return _error(path, tail, reason)
    follows = "only the last segment of a log may end inside a batch"
    # A crash leaves a torn batch at the end of the last segment. A sound batch behind it shows that
    # it is no torn write but damage: a broker's recovery would cut off what is sound.
    if ends.is_last:
        found = _sound_batch_behind(path, tail, ends)
        if found is None:
            return None
        follows = f"a sound batch follows at {found}, so the log does not end here"
    if len(head) < LOG_OVERHEAD:
        return _error(path, tail, f"{length} bytes are left, and no batch is so short; {follows}")
    claimed = int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)
    offset = int.from_bytes(head[:8], "big", signed=True)
    left = f"{length - LOG_OVERHEAD} bytes are left up to {tail.end}"
    return _error(path, tail, f"batch length {claimed}, but {left}; {follows}", offset)


def _sound_batch_behind(path: str, tail: Tail, ends: SegmentEnds) -> int | None:
    last_offset = ends.bounding(tail.last_offset)
    bounds = Bounds(tail.position + 1, tail.end, last_offset, ends.upper_bound_offset)
    found, _ = find_next_batch(path, bounds, work_for(tail.end - tail.position))
    return found


def _error(path: str, tail: Tail, reason: str, offset: int | None = None) -> CorruptRecordError:
    known = offset if offset is not None and offset >= 0 else tail.last_offset + 1
    return CorruptRecordError(reason, path=path, position=tail.position, offset=known)
