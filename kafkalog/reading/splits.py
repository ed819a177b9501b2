"""Cut the segments to read into byte ranges that start and end at batch boundaries.

A Kafka log has no sync markers, so a boundary has to be known. The offset index names batch starts,
but an index can be stale (keeping an old one is silent damage): an entry is believed only if a
whole batch with a right checksum starts there whose base offset is in the segment and not above the
entry's (more an entry does not promise, see `format.offset_index`). Where the index does not help,
the batch headers are walked. Should a cut be wrong all the same, the read of the split before it
notices that its last batch crosses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kafkalog.batches.batch_table import verify_checksums
from kafkalog.errors import (
    CorruptIndexError,
    KafkaLogError,
    LogChangedError,
    RecordTooLargeError,
)
from kafkalog.format.file_names import offset_index_file_name
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.segment_file import read_chunks, scan_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.reading.selection import PartitionSelection

SPLIT_BYTES = 64 * 1024 * 1024
# Smaller pieces travel together, so that a thousand small partitions are not a thousand tasks.
PACK_BYTES = 32 * 1024 * 1024
PACK_PIECES = 256

# A piece up to this much larger than a split is not worth a cut.
_SLACK = 1.25
# Index entries tried near a wanted cut before the headers are walked instead.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class ScanSplit:
    """Whole batches of one segment: bytes `start` to `end` (excluded), and the offsets wanted of
    them.

    `size` and `inode` are the file's when the split was planned; `is_active` says that it may have
    grown since.
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


def plan_splits(
    partitions: Iterable[PartitionInventory],
    selection: PartitionSelection,
    *,
    split_bytes: int = SPLIT_BYTES,
    all_on_disk: bool = False,
) -> list[ScanSplit]:
    """Splits of all live segments of the partitions that may hold wanted offsets, in order.

    `all_on_disk` reads below the log start offset too, where batches await deletion.
    """
    splits: list[ScanSplit] = []
    for partition in partitions:
        start_offset, end_offset = selection.offset_range(partition)
        if all_on_disk and isinstance(selection.starting_offsets, str):
            start_offset = None
        for segment in _segments_in_range(partition.segments, start_offset, end_offset):
            cuts = (0, *_cut_positions(segment, split_bytes), segment.size_in_bytes)
            splits.extend(
                ScanSplit(
                    topic=partition.topic_partition.topic,
                    partition=partition.topic_partition.partition,
                    path=segment.path,
                    segment_base_offset=segment.base_offset,
                    start=start,
                    end=end,
                    size=segment.size_in_bytes,
                    inode=segment.identity.inode,
                    is_active=segment.is_active,
                    start_offset=start_offset,
                    end_offset=end_offset,
                )
                for start, end in pairwise(cuts)
            )
    return splits


def pack_splits(splits: Sequence[ScanSplit]) -> list[tuple[ScanSplit, ...]]:
    """Neighbouring small splits put together, for one task each."""
    packs: list[tuple[ScanSplit, ...]] = []
    pack: list[ScanSplit] = []
    pack_bytes = 0
    for split in splits:
        split_bytes = split.end - split.start
        if pack and (pack_bytes + split_bytes > PACK_BYTES or len(pack) == PACK_PIECES):
            packs.append(tuple(pack))
            pack, pack_bytes = [], 0
        pack.append(split)
        pack_bytes += split_bytes
    return [*packs, tuple(pack)] if pack else packs


def _segments_in_range(
    segments: Sequence[SegmentInfo], start_offset: int | None, end_offset: int | None
) -> Iterator[SegmentInfo]:
    """Segments whose offsets, from their base to the next segment's, meet the range; empty files
    have none."""
    next_bases = [*(s.base_offset for s in segments[1:]), None]
    for segment, next_base in zip(segments, next_bases, strict=True):
        if segment.size_in_bytes == 0:
            continue
        if start_offset is not None and next_base is not None and next_base <= start_offset:
            continue
        if end_offset is not None and segment.base_offset >= end_offset:
            continue
        yield segment


def _cut_positions(segment: SegmentInfo, split_bytes: int) -> list[int]:
    """Batch starts about `split_bytes` apart; none for a segment that is small enough."""
    size = segment.size_in_bytes
    if size <= split_bytes * _SLACK:
        return []
    pieces = round(size / split_bytes)
    wanted = [size * i // pieces for i in range(1, pieces)]
    cuts = _cuts_from_index(segment, wanted)
    return _cuts_from_headers(segment, wanted) if cuts is None else cuts


def _cuts_from_index(segment: SegmentInfo, wanted: Sequence[int]) -> list[int] | None:
    """Checked index entries at or after the wanted positions; None if the index is no help."""
    index_path = Path(segment.path).with_name(offset_index_file_name(segment.base_offset))
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
    try:
        chunks = read_chunks(segment.path, start=position, end=segment.size_in_bytes, chunk_bytes=1)
        chunk = next(iter(chunks), None)
    except KafkaLogError:
        return False
    if chunk is None:
        return False
    if not segment.base_offset <= int(chunk.rows["base_offset"][0]) <= entry_offset:
        return False
    return bool(verify_checksums(chunk.buf, chunk.position, chunk.rows[:1])[0])


def _cuts_from_headers(segment: SegmentInfo, wanted: Sequence[int]) -> list[int]:
    """Batch starts at or after the wanted positions; damage ends the search, its place is in the
    last piece."""
    positions = scan_headers(segment.path, end=segment.size_in_bytes).rows["position"]
    entries = positions.searchsorted(list(wanted))
    found = {int(positions[entry]) for entry in entries if entry < len(positions)}
    return sorted(found - {0})
