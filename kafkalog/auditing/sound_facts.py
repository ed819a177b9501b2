"""The facts of logs that nothing is wrong with, as plain numbers.

Most logs of a disk are of this kind: live and whole, written without transactions, never compacted,
no offset missing, nothing beside their files that a broker would not make (`sound_scan` decides).
They differ in sizes, offsets and times alone. These numbers are kept by the audit that read the
headers (`kept_scans`), so that the next one neither unpacks a text of each log nor looks for what
cannot be there (`sound_logs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.log.inventory import FileIdentity, JsonFacts, SegmentInfo
from kafkalog.log.kept_logs import SegmentNumbers

# The first ones of SegmentNumbers: what SegmentInfo has.
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
