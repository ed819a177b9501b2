"""The facts of logs that nothing is wrong with, as plain numbers.

Most logs of a disk are of this kind: live and whole, written without transactions, never compacted,
no offset missing, nothing beside their files that a broker would not make (`sound_scan` decides).
They differ in sizes, offsets and times alone. These numbers are kept by the audit that read the
headers (`kept_scans`), so that the next one neither unpacks a text of each log nor looks for what
cannot be there (`sound_logs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from kafkalog.contents.header_contents import TimeSlice
from kafkalog.log.inventory import FileIdentity, JsonFacts, SegmentInfo

# Of a TimeSlice.
SLICE_NUMBERS = len(fields(TimeSlice))
# In place of what is not there.
NONE = -1


class LogNumbers(NamedTuple):
    """Of a whole log; NONE for a line of a checkpoint, or leader epochs, that are not there."""

    now_ms: int
    expiration_ms: int
    recovery_point: int
    checkpointed_high_watermark: int
    checkpointed_log_start: int
    log_start_offset: int
    log_end_offset: int
    newest_leader_epoch: int
    committed_bytes: int
    oldest_timestamp_ms: int
    newest_timestamp_ms: int
    log_bytes: int
    index_bytes: int
    snapshot_bytes: int
    other_bytes: int


class SegmentNumbers(NamedTuple):
    """Of a segment, as SegmentInfo, SegmentFacts and SegmentStatistics have them. `codec`: its
    place in CODEC_NAMES, NONE without batches; `time_file_bytes`: of the time index with its zeros.
    """

    base_offset: int
    next_offset: int
    size_in_bytes: int
    mtime_ns: int
    inode: int
    offset_index_bytes: int
    time_index_bytes: int
    has_snapshot: int
    indexed_timestamp_ms: int
    valid_bytes: int
    batches_count: int
    records_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    first_timestamp_ms: int
    largest_timestamp_ms: int
    largest_timestamp_offset: int
    largest_timestamp_position: int
    codec: int
    codec_bytes: int
    index_bytes: int
    time_file_bytes: int


SEGMENT_NUMBERS = len(SegmentNumbers._fields)
# The first ones: what SegmentInfo has.
_OF_FILES = SegmentNumbers._fields.index("indexed_timestamp_ms") + 1


@dataclass(frozen=True, slots=True)
class SoundFacts(JsonFacts):
    """`log`: LogNumbers; `segments`: SegmentNumbers one after the other; `slices`: the fields of
    TimeSlice one after the other; `producers`: when each that a broker knows wrote last.
    """

    log: tuple[int, ...]
    segments: tuple[int, ...]
    slices: tuple[int, ...]
    producers: tuple[int, ...]


def segment_path(directory: str, base_offset: int) -> str:
    """Of its `.log`; as `log_file_name` has it, in a fifth of the time."""
    return f"{directory}/{base_offset:020}.log"


def segment_infos(directory: str, segments: Sequence[Sequence[int]]) -> tuple[SegmentInfo, ...]:
    """The files of a sound log, of its SegmentNumbers."""
    rows = ((row[:_OF_FILES], row is segments[-1]) for row in segments)
    return tuple(
        SegmentInfo(
            base,
            segment_path(directory, base),
            "live",
            size,
            FileIdentity(size, mtime_ns, inode),
            is_active,
            offset_index_bytes,
            time_index_bytes,
            0,
            bool(has_snapshot),
            timestamp_ms,
            mtime_ns // 1_000_000,
        )
        for (
            base, _, size, mtime_ns, inode, offset_index_bytes, time_index_bytes, has_snapshot,
            timestamp_ms,
        ), is_active in rows
    )  # fmt: skip
