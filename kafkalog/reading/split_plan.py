"""Cut the segments to read into byte ranges that start and end at batch boundaries.

A Kafka log has no sync markers, so a boundary has to be known. The offset index names batch starts,
but an index can be stale (keeping an old one is silent damage): an entry is believed only if a
whole batch with a right checksum starts there whose base offset is in the segment and not above the
entry's (more an entry does not promise, see `format.offset_index`). Where the index does not help,
the batch headers are walked. Should a cut be wrong all the same, the read of the split before it
notices that its last batch crosses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from kafkalog.errors import CorruptIndexError, RecordTooLargeError
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.log.index_lookup import sound_header
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_ranges import wanted_ranges
from kafkalog.reading.splits import SPLIT_BYTES, ScanSplit, SplitNeeds, SplitPlan, SplitSizes
from kafkalog.remote.side_by_side import side_by_side
from kafkalog.remote.stores import is_remote

# Index entries tried near a wanted cut before the headers are walked instead.
_TRIES = 3


def plan_splits(
    partitions: Iterable[PartitionInventory],
    selection: PartitionSelection,
    *,
    split_bytes: int = SPLIT_BYTES,
    all_on_disk: bool = False,
) -> list[ScanSplit]:
    """Splits of all live segments of the partitions that may hold wanted offsets, in order."""
    needs = SplitNeeds(all_on_disk=all_on_disk)
    return plan_reading(partitions, selection, SplitSizes(split_bytes), needs).splits


def plan_reading(
    partitions: Iterable[PartitionInventory],
    selection: PartitionSelection,
    sizes: SplitSizes,
    needs: SplitNeeds,
) -> SplitPlan:
    """The same for rows that pass a filter: segments, and bytes of them, in which indexes and
    statistics say that none can be are left out."""
    whole: list[ScanSplit] = []
    segments: dict[str, SegmentInfo] = {}
    segments_count = size_in_bytes = 0
    chosen: list[PartitionInventory] = []
    for partition in partitions:
        segments_count += len(partition.segments)
        size_in_bytes += partition.size_in_bytes
        if not needs.row_filter.is_impossible and needs.row_filter.accepts(
            partition.topic_partition
        ):
            chosen.append(partition)

    def ranges_of(partition: PartitionInventory) -> list[tuple[SegmentInfo, ScanSplit]]:
        return list(wanted_ranges(partition, selection, needs))

    # A store is asked about several partitions, and then segments, at once.
    is_slow = any(is_remote(s.path) for partition in chosen for s in partition.segments[:1])
    for own in side_by_side(ranges_of, chosen) if is_slow else map(ranges_of, chosen):
        for segment, split in own:
            whole.append(split)
            segments[segment.path] = segment
    # How large a split may be depends on what all partitions have together, so nothing is cut
    # before all of it is known.
    sizes = sizes.for_total(sum(split.end - split.start for split in whole))

    def cuts_of(split: ScanSplit) -> list[int]:
        return _cut_positions(segments[split.path], split, sizes)

    cuts = side_by_side(cuts_of, whole) if is_slow else map(cuts_of, whole)
    splits = [
        replace(split, start=start, end=end)
        for split, positions in zip(whole, cuts, strict=True)
        for start, end in pairwise((split.start, *positions, split.end))
    ]
    return SplitPlan(splits, sizes, segments_count, len(whole), size_in_bytes)


def _cut_positions(segment: SegmentInfo, split: ScanSplit, sizes: SplitSizes) -> list[int]:
    """Batch starts about `split_bytes` apart; none for a range that is small enough."""
    length = split.end - split.start
    if length <= sizes.split_bytes * sizes.slack:
        return []
    # Equal pieces, so that the last one is no remainder. The wanted positions lie inside batches:
    # each becomes the next batch start. Two of them in one large batch become the same start, or
    # the range's end, and are one cut less.
    exact = length / sizes.split_bytes
    pieces = -(-length // sizes.split_bytes) if sizes.min_splits else round(exact)
    wanted = [split.start + length * i // pieces for i in range(1, pieces)]
    cuts = _cuts_from_index(segment, wanted)
    return [
        cut
        for cut in (_cuts_from_headers(split, wanted) if cuts is None else cuts)
        if split.start < cut < split.end
    ]


def _cuts_from_index(segment: SegmentInfo, wanted: Sequence[int]) -> list[int] | None:
    """Checked index entries at or after the wanted positions; None if the index is no help."""
    index_path = segment.beside(".index")
    try:
        index = parse_offset_index(
            read_small_file(index_path), segment.base_offset, path=index_path
        )
    except (FileNotFoundError, CorruptIndexError, RecordTooLargeError):
        return None
    # An entry is tried, not trusted: a stale index names positions of another file of that name.
    # The next entries may be right all the same, a few bytes further on. Where none is, the whole
    # index is given up, for cuts that are half from it would be of pieces of any size.
    cuts: list[int] = []
    firsts = index.positions.searchsorted(list(wanted)).tolist()

    def is_batch(entry: int) -> bool:
        return _is_batch(segment, int(index.positions[entry]), int(index.offsets[entry]))

    tried: dict[int, bool] = {}
    if is_remote(segment.path):
        # The entries that mostly do, without waiting for one after the other.
        own = list(dict.fromkeys(entry for entry in firsts if entry < len(index.positions)))
        tried = dict(zip(own, side_by_side(is_batch, own), strict=True))
    for first in firsts:
        for entry in range(first, min(first + _TRIES, len(index.positions))):
            found = int(index.positions[entry])
            if found <= (cuts[-1] if cuts else 0):
                continue
            if tried[entry] if entry in tried else is_batch(entry):
                cuts.append(found)
                break
        else:
            return None
    return cuts


def _is_batch(segment: SegmentInfo, position: int, entry_offset: int) -> bool:
    """Whether a whole batch that the index entry can mean starts at `position`."""
    header = sound_header(segment, position)
    return header is not None and bool(
        segment.base_offset <= int(header["base_offset"]) <= entry_offset
    )


def _cuts_from_headers(split: ScanSplit, wanted: Sequence[int]) -> list[int]:
    """Batch starts at or after the wanted positions; damage ends the search, its place is in the
    last piece."""
    # Without an index the headers tell where batches begin: splits must begin at one, for nothing
    # in a segment marks its batches.
    positions = scan_headers(split.path, split.start, split.end).rows["position"]
    entries = positions.searchsorted(list(wanted))
    found = {int(positions[entry]) for entry in entries if entry < len(positions)}
    return sorted(found - {split.start})
