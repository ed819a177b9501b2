"""A range of a file that cannot be read as batches, and the range of a file that is walked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafkalog.batches.batch_table import WRONG_CHECKSUM
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_tail import SegmentEnds


@dataclass(frozen=True, slots=True)
class Damage:
    """[position, position + length) of a file that cannot be read as batches: why.

    The error is RecordTooLargeError for one batch that is sound and above the limit; `row` is its
    header then.
    """

    position: int
    length: int
    error: KafkaLogError
    row: np.void | None = None


@dataclass(frozen=True, slots=True)
class FileRange:
    """What is walked: [start, end) of a file, `start` where a batch begins. `is_file_end`: bytes
    that are no batch may follow the last one, as `ends` has it; else one must end at `end`.
    """

    path: str
    start: int
    end: int
    ends: SegmentEnds
    is_file_end: bool = True

    @classmethod
    def of(cls, segment: SegmentInfo, end_offset: int | None = None) -> FileRange:
        """A whole segment; `end_offset` is the next one's base."""
        return cls(segment.path, 0, segment.size_in_bytes, SegmentEnds.of(segment, end_offset))


def wrong_checksum(path: str, row: np.void) -> CorruptRecordError:
    """What is said of a batch whose checksum is wrong."""
    position, offset = int(row["position"]), int(row["base_offset"])
    return CorruptRecordError(WRONG_CHECKSUM, path=path, position=position, offset=offset)
