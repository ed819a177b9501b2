"""Offsets that no finished copy has though the log begins before them, and those that two have.

Judged by `__remote_log_metadata` alone: an object that is gone is told as such, and leaves no gap.

Source: Kafka RemoteLogManager.RLMCopyTask: a copy ends where the next segment begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafkalog.bucket.finding import BucketFinding, Place
from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.remote_copies import SegmentCopy


@dataclass(frozen=True, slots=True)
class LocalLog:
    """What the disks have of a partition, all replicas together: the log start where a checkpoint
    tells, and the first offset of a segment."""

    path: str
    log_start: int | None
    first: int | None


def local_log(replicas: Sequence[PartitionInventory]) -> LocalLog:
    """Of live replicas, one at least. The log start only rises: the highest one holds."""
    starts = [r.checkpoints.log_start for r in replicas if r.checkpoints.log_start is not None]
    bases = [r.segments[0].base_offset for r in replicas if r.segments]
    return LocalLog(
        replicas[0].path,
        max(starts, default=None),
        min(bases, default=None),
    )


def in_order(copies: Sequence[SegmentCopy]) -> list[tuple[int, int, SegmentCopy]]:
    """(first offset, last offset, copy) of those of which that is known."""
    known = [
        (copy.start_offset, copy.end_offset, copy)
        for copy in copies
        if copy.start_offset is not None and copy.end_offset is not None
    ]
    return sorted(known, key=lambda each: (each[0], each[1], each[2].segment_id))


def check_ranges(
    copies: Sequence[SegmentCopy], local: LocalLog | None, topic: str
) -> Iterator[BucketFinding]:
    """Of one partition; `copies`: all that were ever begun of it."""
    covered = _before_all(copies, local)
    furthest: tuple[int, SegmentCopy] | None = None
    for start, end, copy in in_order([copy for copy in copies if copy.is_finished]):
        place = _place(copy, topic)
        if furthest is not None and start <= furthest[0]:
            both = f"offsets {start} to {min(end, furthest[0])} are in segment"
            yield place.finding("remote-overlap", f"{both} {furthest[1].segment_id} as well")
        elif covered is not None and (missing := _before_disk(start, local)) > covered + 1:
            yield _gap(place, covered + 1, missing, local)
        if furthest is None or end > furthest[0]:
            furthest = end, copy
        covered = end if covered is None else max(covered, end)
    if local is not None and local.first is not None and covered is not None and copies:
        first = copies[0]
        if local.first > covered + 1:
            place = Place(local.path, topic, first.partition, first.topic_id)
            yield _gap(place, covered + 1, local.first, local)


def _before_all(copies: Sequence[SegmentCopy], local: LocalLog | None) -> int | None:
    """The last offset that need not be there: before the log start. After a crash its checkpoint is
    up to a minute old, and what a leader has deleted from there on tells that it has risen."""
    if local is None or local.log_start is None:
        return None
    covered = local.log_start - 1
    for start, end, _ in in_order([copy for copy in copies if copy.is_deleted]):
        covered = max(covered, end) if start <= covered + 1 else covered
    return covered


def _before_disk(end: int, local: LocalLog | None) -> int:
    """What the disks have is there, whatever the copies have of it."""
    return end if local is None or local.first is None else min(end, local.first)


def _gap(place: Place, start: int, end: int, local: LocalLog | None) -> BucketFinding:
    there = "" if local is None or local.first is None else f", which begin at {local.first}"
    text = f"offsets {start} to {end - 1} are in no finished copy and not on the disks{there}"
    return Place(
        place.path, place.topic, place.partition, place.topic_id, place.segment_id, start
    ).finding("remote-gap", text)


def _place(copy: SegmentCopy, topic: str) -> Place:
    return Place(
        f"{topic}-{copy.partition}",
        topic,
        copy.partition,
        copy.topic_id,
        copy.segment_id,
        copy.start_offset,
        max(copy.size_in_bytes, 0),
    )
