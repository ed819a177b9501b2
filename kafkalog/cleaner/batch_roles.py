"""Which batches' records meet the key map: not markers, not data of aborted transactions.

Source: Kafka Cleaner.buildOffsetMapForSegment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaner.transactions import CleanedTransactionMetadata
from kafkalog.format.constants import CONTROL_FLAG_MASK
from kafkalog.format.file_names import LogFileKind
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk
from kafkalog.log.small_files import read_small_file


class BatchRoles:
    """Answers chunk by chunk, in offset order. Transactions are followed from where Kafka begins to
    read: the batch that the offset index names for the first dirty offset.
    """

    def __init__(
        self,
        sources: Sequence[SegmentInfo],
        first_dirty_offset: int,
        end_offset: int,
        aborted: AbortedTransactions,
    ) -> None:
        self._transactions = CleanedTransactionMetadata()
        self._transactions.add_aborted(aborted.between(first_dirty_offset, end_offset))
        at_or_below = [s for s in sources if s.base_offset <= first_dirty_offset]
        self._first = at_or_below[-1] if at_or_below else None
        self._start_position = 0
        if self._first is not None and self._first.offset_index_bytes:
            path = Path(self._first.path).with_suffix(LogFileKind.OFFSET_INDEX)
            data = read_small_file(path, self._first.offset_index_bytes)
            index = parse_offset_index(data, self._first.base_offset, str(path))
            self._start_position = index.lookup(first_dirty_offset)[1]

    def batches(self, chunk: Chunk, segment: SegmentInfo) -> NDArray[np.uint8]:
        """uint8[b]: 1 for batches whose records meet the map."""
        rows = chunk.rows
        roles: NDArray[np.uint8] = ((rows["attributes"] & CONTROL_FLAG_MASK) == 0).astype(np.uint8)
        if self._first is not None and segment.base_offset < self._first.base_offset:
            return roles
        followed = slice(0, rows.size)
        if segment is self._first:
            followed = slice(
                int(np.searchsorted(rows["position"], self._start_position)), rows.size
            )
        part = Chunk(chunk.buf, chunk.position, rows[followed])
        discardable = self._transactions.discardable(part, segment.path)
        roles[followed][discardable] = 0
        return roles
