"""A large partition cut by offsets, so that each range of all its copies can be read by itself.

Cut is where a segment of the largest copy begins; in the others that is a place within a segment,
which the index names. No index is believed: a range has to end, batch by batch, exactly where the
next one begins, and whoever reads it sees that (`across_tasks`). Where a batch of some copy lies
across an offset, or may do so, as a legacy wrapper, nothing is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kafkalog.batches.batch_table import is_legacy_wrapper
from kafkalog.comparing.record_stream import SegmentSlice
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.index_lookup import batch_at
from kafkalog.log.inventory import PartitionInventory

# Of the largest copy: a task is worth its start from so many bytes on.
RANGE_BYTES = 128 * 1024 * 1024
# Each range has something to say to each task that judges keys.
_MOST_RANGES = 256


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end), and where the batches with them are in each copy."""

    start: int
    end: int
    slices: tuple[tuple[SegmentSlice, ...], ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A batch's start: segment and position in it; behind the last segment at the log's end."""

    segment: int
    position: int


def offset_ranges(
    copies: Sequence[PartitionInventory], range_bytes: int = RANGE_BYTES
) -> tuple[OffsetRange, ...]:
    """The ranges, in order; one where nothing can be cut. OSError as from reading headers."""
    largest = max(copies, key=lambda each: each.size_in_bytes)
    range_bytes = max(range_bytes, largest.size_in_bytes // _MOST_RANGES)
    cuts, places = [0], [[_Place(0, 0) for _ in copies]]
    for cut in _cuts(largest, range_bytes):
        found = [_place_of(copy, cut) for copy in copies]
        known = [place for place in found if place is not None]
        if len(known) == len(found):
            cuts.append(cut)
            places.append(known)
    cuts.append(MAX_INT64)
    places.append([_Place(len(copy.segments), 0) for copy in copies])
    return tuple(
        OffsetRange(
            cuts[n],
            cuts[n + 1],
            tuple(tuple(_between(*ends)) for ends in zip(here, behind, strict=True)),
        )
        for n, (here, behind) in enumerate(pairwise(places))
    )


def _cuts(partition: PartitionInventory, range_bytes: int) -> Iterator[int]:
    size = 0
    for segment in partition.segments:
        if size >= range_bytes and segment.base_offset > partition.log_start_offset:
            yield segment.base_offset
            size = 0
        size += segment.size_in_bytes


def _place_of(partition: PartitionInventory, offset: int) -> _Place | None:
    """Where the first batch at or behind an offset begins; None where that is not plain."""
    number = sum(segment.base_offset <= offset for segment in partition.segments) - 1
    if number < 0:
        return _Place(0, 0)
    try:
        row = batch_at(partition.segments[number], offset)
    except KafkaLogError:
        return None
    if row is None:
        return _Place(number + 1, 0)
    if row["base_offset"] < offset or is_legacy_wrapper(np.atleast_1d(row))[0]:
        return None
    return _Place(number, int(row["position"]))


def _between(start: _Place, end: _Place) -> Iterator[SegmentSlice]:
    for number in range(start.segment, end.segment):
        yield SegmentSlice(number, start.position if number == start.segment else 0)
    first = start.position if end.segment == start.segment else 0
    if end.position > first:
        yield SegmentSlice(end.segment, first, end.position)
