"""Aborted transactions of a range of offsets, from the transaction indexes of a log's segments.

An aborted transaction is recorded in the segment that holds its marker, so those that touch a
segment may be recorded in later ones: the search walks forward until an entry's last stable offset
says that nothing older can follow.

Source: Kafka TransactionIndex.collectAbortedTxns, LocalLog.collectAbortedTransactions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from kafkalog.format.transaction_index import AbortedTxn, parse_transaction_index
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.small_files import read_small_file

# 34 bytes an entry: the index of a segment of a GiB that holds nothing but aborted markers.
_MAX_INDEX_BYTES = 512 * 1024 * 1024


class AbortedTransactions:
    """The transaction indexes of one log, each file read once and when it is first needed."""

    def __init__(self, segments: Sequence[SegmentInfo], log_start_offset: int) -> None:
        """`segments` are all live ones in offset order, the active one included."""
        # Asked for each segment: of a log of many nearly all have no entry, and are passed at once.
        self._bases = [segment.base_offset for segment in segments]
        self._own = [segment for segment in segments if segment.txn_index_bytes]
        self._own_bases = [segment.base_offset for segment in self._own]
        self._log_start_offset = log_start_offset
        self._entries: dict[int, list[AbortedTxn]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no segment has a transaction index with an entry."""
        return not self._own

    def between(self, start_offset: int, end_offset: int) -> list[AbortedTxn]:
        """The aborted transactions that touch [start, end) or lie before it in its segment.

        CorruptIndexError for an index that cannot be understood, OSError for one that cannot be
        read.
        """
        at_or_below = bisect_right(self._bases, start_offset)
        if not at_or_below:
            return []
        found: list[AbortedTxn] = []
        first = bisect_left(self._own_bases, self._bases[at_or_below - 1])
        for segment in self._own[first:]:
            # Entries below the log start belong to data that nobody may read; those past the end do
            # not touch the range.
            for entry in self.of_segment(segment):
                if entry.last_offset >= self._log_start_offset and entry.first_offset < end_offset:
                    found.append(entry)
                # The last stable offset only rises. Where it had come past the end when this marker
                # was written, all that began below the end had ended by then: no later entry can
                # touch the range.
                if entry.last_stable_offset >= end_offset:
                    return found
        return found

    def of_segment(self, segment: SegmentInfo) -> list[AbortedTxn]:
        """The entries of a segment's own index. Errors as of `between`."""
        base_offset = segment.base_offset
        if base_offset not in self._entries:
            entries: list[AbortedTxn] = []
            if segment.txn_index_bytes:
                path = segment.beside(".txnindex")
                data = read_small_file(path, _MAX_INDEX_BYTES)
                entries = parse_transaction_index(data, base_offset, path)
            self._entries[base_offset] = entries
        return self._entries[base_offset]
