"""Which bytes of which segments may hold wanted rows.

Where only some offsets or timestamps are wanted the indexes say which bytes may hold them
(`log.index_lookup`). Where they are no help, `headers_first` has the read of the split look at the
batch headers before it reads anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest

from kafkalog.format.constants import MAX_INT64
from kafkalog.log.index_lookup import (
    end_position,
    first_reaching,
    largest_timestamp,
    start_position,
)
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.remote_segments import REMOTE
from kafkalog.reading.conditions import MIN_INT64, RowFilter
from kafkalog.reading.data_loss import check_loss, wanted_start
from kafkalog.reading.offset_ranges import OffsetRange, offset_range
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.splits import ScanSplit, SplitNeeds
from kafkalog.reading.transaction_ranges import NO_TRANSACTIONS, ranges_of

# Fewer bytes than this are read rather than looked at by their headers first.
_SMALL_BYTES = 256 * 1024


def wanted_ranges(
    partition: PartitionInventory, selection: PartitionSelection, needs: SplitNeeds
) -> Iterator[tuple[SegmentInfo, ScanSplit]]:
    """One split for each segment that may hold wanted rows.

    From coarse to fine: the selection's offsets, the filter's, segments by their names, bytes by
    the indexes. Each step leaves out only what cannot hold a wanted row; the read looks at every
    batch and record of what is left, so a step that leaves out less costs time and nothing else.
    """
    start_offset, end_offset = offset_range(selection, partition)
    if needs.all_on_disk and isinstance(selection.starting_offsets, str):
        start_offset = None if selection.starting_timestamp is None else start_offset
    _check_loss(partition, selection, needs, (start_offset, end_offset))
    start_offset, end_offset = _narrowed_offsets(needs.row_filter, start_offset, end_offset)
    chosen = list(_segments_in_range(partition.segments, start_offset, end_offset))
    transactions = NO_TRANSACTIONS
    if chosen and (selection.read_committed or needs.with_transactions):
        transactions = ranges_of(
            partition,
            chosen[0].base_offset,
            end_offset,
            bears_damage=not selection.refuses_loss,
        )
        transactions = replace(transactions, leave_aborted_out=selection.read_committed)
    next_bases = _next_bases(partition)
    for segment in chosen:
        if not selection.accepts_file(segment.path):
            continue
        next_base = next_bases.get(segment.path)
        offsets = needs.row_filter.offsets
        if offsets and not offsets.meets_range(segment.base_offset, (next_base or MAX_INT64) - 1):
            continue
        split = ScanSplit(
            topic=partition.topic_partition.topic,
            partition=partition.topic_partition.partition,
            path=segment.path,
            segment_base_offset=segment.base_offset,
            start=0,
            end=segment.size_in_bytes,
            size=segment.size_in_bytes,
            inode=segment.identity.inode,
            is_active=segment.is_active,
            start_offset=start_offset,
            end_offset=_own_end(segment, next_base, end_offset),
            # a remote segment may go on into the next one
            segment_end_offset=None if segment.state == REMOTE else next_base,
            transactions=transactions.within(segment.base_offset, next_base),
        )
        timely = _from_timestamp(segment, split, needs.row_filter)
        narrowed = None if timely is None else _from_offsets(segment, timely, next_base)
        if narrowed is not None:
            yield segment, narrowed


def _next_bases(partition: PartitionInventory) -> dict[str, int]:
    """The base offset of the segment behind, by path; of single files their directory tells."""
    whole = partition if partition.is_whole else reopen_partition(partition.path) or partition
    return {s.path: n.base_offset for s, n in pairwise(whole.segments)}


def _check_loss(
    partition: PartitionInventory,
    selection: PartitionSelection,
    needs: SplitNeeds,
    offsets: OffsetRange,
) -> None:
    """Of the offsets that the read wants; the last stable offset may lie below what was lost."""
    start_offset, end_offset = offsets
    if selection.read_committed and end_offset is not None:
        _, end_offset = offset_range(replace(selection, read_committed=False), partition)
    start = wanted_start(selection, partition, start_offset)
    low, high = _narrowed_offsets(needs.row_filter, start, end_offset)
    check_loss(partition, selection, low or 0, MAX_INT64 if high is None else high)


def _own_end(segment: SegmentInfo, next_base: int | None, end_offset: int | None) -> int | None:
    """Where the wanted offsets of a segment end: a remote one may go on into the next."""
    if segment.state != REMOTE or next_base is None:
        return end_offset
    return next_base if end_offset is None else min(next_base, end_offset)


def _narrowed_offsets(
    row_filter: RowFilter, start_offset: int | None, end_offset: int | None
) -> tuple[int | None, int | None]:
    """The offsets between which a filter's rows lie as well: of records, or of batches whose last
    or first offset is bounded."""
    bounds = [row_filter.numbers.get(name) for name in ("offset", "baseOffset", "lastOffset")]
    low = max((b.low for b in bounds if b is not None), default=MIN_INT64)
    high = min((b.high for b in bounds if b is not None), default=MAX_INT64)
    if low > MIN_INT64:
        start_offset = low if start_offset is None else max(low, start_offset)
    if high < MAX_INT64:
        end_offset = high + 1 if end_offset is None else min(high + 1, end_offset)
    return start_offset, end_offset


def _from_timestamp(
    segment: SegmentInfo, split: ScanSplit, row_filter: RowFilter
) -> ScanSplit | None:
    """The split from the first offset on that may have a wanted timestamp; None if none has.

    Only from below: records behind may have any earlier timestamp, and what their batches have the
    headers tell.
    """
    wanted = row_filter.timestamps or row_filter.numbers.get("maxTimestampMs")
    if wanted is None or wanted.low <= 0:
        return split
    # The segment's largest timestamp is known without reading it: below the wanted one, all of it
    # is left out.
    largest = largest_timestamp(segment)
    if largest is not None and largest < wanted.low:
        return None
    found = first_reaching(segment, wanted.low)
    if found is None:
        return split
    start_offset = found[0] if split.start_offset is None else max(found[0], split.start_offset)
    return replace(split, start_offset=start_offset)


def _from_offsets(
    segment: SegmentInfo, split: ScanSplit, next_base: int | None
) -> ScanSplit | None:
    """The bytes of the split in which its offsets are, by the offset index; None if there are
    none."""
    start: int | None = 0
    end, is_bounded = split.end, False
    # An index entry leads to a batch at or below the offset, so whole batches in front are cut off,
    # and the row filter drops what else is below.
    if split.start_offset is not None and split.start_offset > segment.base_offset:
        start, is_bounded = start_position(segment, split.start_offset), True
    if split.end_offset is not None and (next_base is None or split.end_offset < next_base):
        found = end_position(segment, split.end_offset)
        end, is_bounded = split.end if found is None else found, True
    narrowed = replace(split, start=start or 0, end=end)
    if not is_bounded:
        return narrowed
    if narrowed.start >= narrowed.end:
        return None
    # As much as indexes show is reported; where that is a lot, an index is missing or wrong.
    is_large = narrowed.end - narrowed.start > _SMALL_BYTES
    return replace(narrowed, headers_first=is_large and (start is None or end == split.end))


def _segments_in_range(
    segments: Sequence[SegmentInfo], start_offset: int | None, end_offset: int | None
) -> Iterator[SegmentInfo]:
    """Segments whose offsets, from their base to the next segment's, meet the range; empty files
    have none."""
    for segment, next_base in zip_longest(segments, [s.base_offset for s in segments[1:]]):
        if segment.size_in_bytes == 0:
            continue
        if start_offset is not None and next_base is not None and next_base <= start_offset:
            continue
        if end_offset is not None and segment.base_offset >= end_offset:
            continue
        yield segment
