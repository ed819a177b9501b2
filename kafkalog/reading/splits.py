"""What one read of a segment covers, and how large it may be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafkalog.errors import LogChangedError
from kafkalog.log.storage import identity_of
from kafkalog.reading.conditions import EVERYTHING, RowFilter
from kafkalog.reading.transaction_ranges import NO_TRANSACTIONS, TransactionRanges
from kafkalog.remote.scans_in_turn import ScanRange

SPLIT_BYTES = 64 * 1024 * 1024
# Of which only batch headers are looked at: some ten thousand small reads.
HEADERS_SPLIT_BYTES = 1024 * 1024 * 1024
# Up to which splits grow as long as there are enough of them: Spark takes 0.1 s of CPU for a task
# beside its rows, as much as for 18 MiB of them.
GROWN_SPLIT_BYTES = 256 * 1024 * 1024
# Smaller pieces travel together, so that a thousand small partitions are not a thousand tasks.
PACK_BYTES = 32 * 1024 * 1024
PACK_PIECES = 256

# A piece up to this much larger than a split is not worth a cut.
_SLACK = 1.25


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
            grown = min(self.most_bytes, total_bytes // enough_splits())
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


def enough_splits() -> int:
    """To keep as many cores busy as the machine that plans has, and to end at about the same
    time. Nothing tells a source of how many executors there are.
    """
    return 2 * max(os.cpu_count() or 1, 2)


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

    @property
    def log_bytes(self) -> int:
        """How many are read of the log, at most."""
        return self.end - self.start

    def check_unchanged(self) -> None:
        """LogChangedError if the path now names another file, or one that was cut or rewritten."""
        try:
            now = identity_of(self.path)
        except FileNotFoundError:
            raise LogChangedError(
                "the segment is gone since the plan was made", path=self.path
            ) from None
        # A broker may append to the active segment meanwhile: what was planned is still the front
        # of it.
        same_size = now.size >= self.size if self.is_active else now.size == self.size
        if now.inode != self.inode or not same_size:
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


def range_of(split: ScanSplit) -> ScanRange | None:
    """What is read of the segment, in order; None where its headers tell that first."""
    return None if split.headers_first else ScanRange(split.path, split.start, split.end)


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
