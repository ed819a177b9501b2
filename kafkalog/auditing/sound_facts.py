"""The facts of logs that nothing is wrong with, as plain numbers.

Most logs of a disk are of this kind: live and whole, written without transactions, never compacted,
no offset missing, nothing beside their files that a broker would not make (`sound_scan` decides).
They differ in sizes, offsets and times alone. These numbers are kept by the audit that read the
headers (`kept_scans`), so that the next one neither unpacks a text of each log nor looks for what
cannot be there (`sound_logs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast, overload

from kafkalog.log.inventory import FileIdentity, JsonFacts, SegmentInfo
from kafkalog.log.kept_logs import KeptLogs
from kafkalog.log.known_directory import KnownDirectory
from kafkalog.log.log_numbers import SegmentNumbers

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


class KeptSegments(Sequence[SegmentInfo]):
    """The files of a sound log, made of its numbers each time they are asked for: of some hundred
    thousand segments they would be most of what an audit holds in memory.
    """

    __slots__ = ("_directory", "logs", "place")

    def __init__(self, logs: KeptLogs, place: int, directory: str) -> None:
        self.logs, self.place, self._directory = logs, place, directory

    @classmethod
    def of(cls, logs: KeptLogs, place: int, directory: str) -> tuple[SegmentInfo, ...]:
        """For who takes them as the tuple that they stand for."""
        return cast(tuple[SegmentInfo, ...], cls(logs, place, directory))

    def __len__(self) -> int:
        return self.logs.segments_count(self.place)

    def __iter__(self) -> Iterator[SegmentInfo]:
        return iter(_infos(self.logs, self.place, self._directory))

    @overload
    def __getitem__(self, index: int) -> SegmentInfo: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SegmentInfo, ...]: ...
    def __getitem__(self, index: int | slice) -> SegmentInfo | tuple[SegmentInfo, ...]:
        if isinstance(index, slice):
            return _infos(self.logs, self.place, self._directory)[index]
        # Most ask for the last one of each log.
        numbers = self.logs.segment(self.place, index, _OF_FILES)
        is_active = index in (-1, len(self) - 1)
        return _info(self._directory, numbers, is_active=is_active)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | KeptSegments) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)  # another process gets these alone

    def numbers(self) -> list[SegmentNumbers]:
        """All that is kept of each."""
        return self.logs.segments(self.place)


def sound_directory(logs: KeptLogs, place: int, path: str) -> KnownDirectory:
    """Of the directory of a sound log, what is known as long as its digest is the same."""
    return KnownDirectory(
        digest=logs.digest(place),
        topic_id=logs.topic_id(place),
        segments=KeptSegments.of(logs, place, path),
        first_offset=logs.first_offsets[place],
        log_end_offset=logs.log_end_offsets[place],
        snapshot_offsets=logs.snapshot_offsets(place),
    )


@lru_cache(maxsize=4)
def _infos(logs: KeptLogs, place: int, directory: str) -> tuple[SegmentInfo, ...]:
    """Those of the last few logs: what looks at one asks for its segments several times."""
    return segment_infos(directory, logs.segments(place))


def segment_infos(directory: str, segments: Sequence[SegmentNumbers]) -> tuple[SegmentInfo, ...]:
    """The files of a sound log, of its SegmentNumbers."""
    return tuple(_info(directory, each, is_active=each is segments[-1]) for each in segments)


def _info(directory: str, numbers: Sequence[int], *, is_active: bool) -> SegmentInfo:
    base, _, size, mtime_ns, inode, index_bytes, time_index_bytes, has_snapshot, timestamp_ms = (
        numbers[:_OF_FILES]
    )
    return SegmentInfo(
        base,
        segment_path(directory, base),
        "live",
        size,
        FileIdentity(size, mtime_ns, inode),
        is_active,
        index_bytes,
        time_index_bytes,
        0,
        bool(has_snapshot),
        timestamp_ms,
        mtime_ns // 1_000_000,
    )
