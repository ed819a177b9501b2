"""Cut the segments to read into byte ranges that start and end at batch boundaries.

A Kafka log has no sync markers, so a boundary has to be known. The offset index names batch starts,
but an index can be stale (keeping an old one is silent damage): an entry is believed only if a
whole batch with a right checksum starts there whose base offset is in the segment and not above the
entry's (more an entry does not promise, see `format.offset_index`). Where the index does not help,
the batch headers are walked. Should a cut be wrong all the same, the read of the split before it
notices that its last batch crosses it.

Where only some offsets or timestamps are wanted the indexes say which bytes may hold them
(`log.index_lookup`). Where they are no help, `headers_first` has the read of the split look at the
batch headers before it reads anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path

from kafkalog.errors import CorruptIndexError, LogChangedError, RecordTooLargeError
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.log.index_lookup import (
    end_position,
    first_reaching,
    largest_timestamp,
    sound_header,
    start_position,
)
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.segment_file import scan_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.reading.conditions import EVERYTHING, MIN_INT64, RowFilter
from kafkalog.reading.data_loss import check_loss, wanted_start
from kafkalog.reading.offset_ranges import OffsetRange, offset_range
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.transaction_ranges import NO_TRANSACTIONS, TransactionRanges, ranges_of

SPLIT_BYTES = 64 * 1024 * 1024
# Of which only batch headers are looked at: some ten thousand small reads.
HEADERS_SPLIT_BYTES = 1024 * 1024 * 1024
# Of which records are walked over and nothing is copied, as long as enough splits are left for many
# cores: with 64 MiB what Spark takes for a task beside its rows was a third of the time.
WALK_SPLIT_BYTES = 256 * 1024 * 1024
_ENOUGH_SPLITS = 16
# Smaller pieces travel together, so that a thousand small partitions are not a thousand tasks.
PACK_BYTES = 32 * 1024 * 1024
PACK_PIECES = 256

# A piece up to this much larger than a split is not worth a cut.
_SLACK = 1.25
# Index entries tried near a wanted cut before the headers are walked instead.
_TRIES = 3
# Fewer bytes than this are read rather than looked at by their headers first.
_SMALL_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SplitSizes:
    """How large a split may be, how many there should be at least, and how many bytes of small ones
    go into one task. Splits grow up to `most_bytes` where there are enough of them."""

    split_bytes: int = SPLIT_BYTES
    min_splits: int | None = None
    most_bytes: int = 0

    def for_total(self, total_bytes: int) -> SplitSizes:
        """With `min_splits` and `most_bytes` resolved for so many bytes."""
        if not self.min_splits:
            grown = min(self.most_bytes, total_bytes // _ENOUGH_SPLITS)
            return replace(self, split_bytes=max(self.split_bytes, grown))
        each = max(-(-total_bytes // self.min_splits), 1)
        return replace(self, split_bytes=min(self.split_bytes, each))

    @property
    def slack(self) -> float:
        """By how much a piece may pass split_bytes before it is cut."""
        return 1.0 if self.min_splits else _SLACK

    @property
    def pack_bytes(self) -> int:
        return max(min(PACK_BYTES, self.split_bytes), self.split_bytes // 2)


@dataclass(frozen=True, slots=True)
class ScanSplit:
    """Whole batches of one segment: bytes `start` to `end` (excluded), and the offsets wanted of
    them.

    `size` and `inode` are the file's when the split was planned; `is_active` says that it may have
    grown since, and may end inside a batch. `segment_end_offset` is the next segment's base, None
    where that is not known. `headers_first`: most of the split is not wanted, and only its headers
    tell what is.
    """

    topic: str
    partition: int
    path: str
    segment_base_offset: int
    start: int
    end: int
    size: int
    inode: int
    is_active: bool
    start_offset: int | None = None
    end_offset: int | None = None
    segment_end_offset: int | None = None
    headers_first: bool = False
    transactions: TransactionRanges = NO_TRANSACTIONS

    def check_unchanged(self) -> None:
        """LogChangedError if the path now names another file, or one that was cut or rewritten."""
        try:
            now = Path(self.path).stat()
        except FileNotFoundError:
            raise LogChangedError(
                "the segment is gone since the plan was made", path=self.path
            ) from None
        same_size = now.st_size >= self.size if self.is_active else now.st_size == self.size
        if now.st_ino != self.inode or not same_size:
            raise LogChangedError("the segment changed since the plan was made", path=self.path)


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The splits of a read in order, and what was left out: of how many segments and bytes."""

    splits: list[ScanSplit]
    sizes: SplitSizes
    segments_count: int = 0
    segments_read: int = 0
    size_in_bytes: int = 0

    @property
    def bytes_read(self) -> int:
        """At most: headers may tell that less is needed."""
        return sum(split.end - split.start for split in self.splits)

    def describe(self) -> str:
        """What is read and what is skipped, as a line of a log."""
        return (
            f"{self.segments_read} of {self.segments_count} segments, "
            f"{self.bytes_read} of {self.size_in_bytes} bytes in {len(self.splits)} splits"
        )


@dataclass(frozen=True, slots=True)
class SplitNeeds:
    """What a view asks of its splits beside the selection.

    all_on_disk: below the log start offset too, where batches await deletion. row_filter: rows
    that cannot pass need not be read. with_transactions: what became of each transaction.
    """

    all_on_disk: bool = False
    row_filter: RowFilter = EVERYTHING
    with_transactions: bool = False


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
    for partition in partitions:
        segments_count += len(partition.segments)
        size_in_bytes += partition.size_in_bytes
        if needs.row_filter.is_impossible or not needs.row_filter.accepts(
            partition.topic_partition
        ):
            continue
        for segment, split in _wanted_ranges(partition, selection, needs):
            whole.append(split)
            segments[segment.path] = segment
    sizes = sizes.for_total(sum(split.end - split.start for split in whole))
    splits = [
        replace(split, start=start, end=end)
        for split in whole
        for start, end in pairwise(
            (split.start, *_cut_positions(segments[split.path], split, sizes), split.end)
        )
    ]
    return SplitPlan(splits, sizes, segments_count, len(whole), size_in_bytes)


def pack_splits(
    splits: Sequence[ScanSplit], pack_bytes: int = PACK_BYTES
) -> list[tuple[ScanSplit, ...]]:
    """Neighbouring small splits put together, for one task each."""
    packs: list[tuple[ScanSplit, ...]] = []
    pack: list[ScanSplit] = []
    packed_bytes = 0
    for split in splits:
        split_bytes = split.end - split.start
        if pack and (packed_bytes + split_bytes > pack_bytes or len(pack) == PACK_PIECES):
            packs.append(tuple(pack))
            pack, packed_bytes = [], 0
        pack.append(split)
        packed_bytes += split_bytes
    return [*packs, tuple(pack)] if pack else packs


# -- which bytes -----------------------------------------------------------------------------------


def _wanted_ranges(
    partition: PartitionInventory, selection: PartitionSelection, needs: SplitNeeds
) -> Iterator[tuple[SegmentInfo, ScanSplit]]:
    """One split for each segment that may hold wanted rows."""
    start_offset, end_offset = offset_range(selection, partition)
    if needs.all_on_disk and isinstance(selection.starting_offsets, str):
        start_offset = None if selection.starting_timestamp is None else start_offset
    _check_loss(partition, selection, needs, (start_offset, end_offset))
    start_offset, end_offset = _narrowed_offsets(needs.row_filter, start_offset, end_offset)
    chosen = list(_segments_in_range(partition.segments, start_offset, end_offset))
    transactions = NO_TRANSACTIONS
    if chosen and (selection.read_committed or needs.with_transactions):
        transactions = ranges_of(partition, chosen[0].base_offset, end_offset)
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
    # As much as indexes can tell is told; where that is a lot, an index is missing or wrong.
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


def _cut_positions(segment: SegmentInfo, split: ScanSplit, sizes: SplitSizes) -> list[int]:
    """Batch starts about `split_bytes` apart; none for a range that is small enough."""
    length = split.end - split.start
    if length <= sizes.split_bytes * sizes.slack:
        return []
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
            read_small_file(index_path), segment.base_offset, path=str(index_path)
        )
    except (FileNotFoundError, CorruptIndexError, RecordTooLargeError):
        return None
    cuts: list[int] = []
    for position in wanted:
        first = int(index.positions.searchsorted(position))
        for entry in range(first, min(first + _TRIES, len(index.positions))):
            found, entry_offset = int(index.positions[entry]), int(index.offsets[entry])
            if found > (cuts[-1] if cuts else 0) and _is_batch(segment, found, entry_offset):
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
    positions = scan_headers(split.path, split.start, split.end).rows["position"]
    entries = positions.searchsorted(list(wanted))
    found = {int(positions[entry]) for entry in entries if entry < len(positions)}
    return sorted(found - {split.start})
