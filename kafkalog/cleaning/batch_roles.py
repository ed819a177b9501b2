"""Which batches' records meet the key map: not markers, not data of aborted transactions.

Source: Kafka Cleaner.buildOffsetMapForSegment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaning.transactions import CleanedTransactionMetadata
from kafkalog.format.constants import CONTROL_FLAG_MASK
from kafkalog.format.file_names import LogFileKind
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.kernels.hash_keys import DATA, ONLY_LOOKED_UP
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
        self._has_aborted = not aborted.is_empty
        self._transactions = CleanedTransactionMetadata()
        # All of the dirty range's at once, as Kafka's map pass has them; the rewrite gets them
        # segment by segment.
        self._transactions.add_aborted(aborted.between(first_dirty_offset, end_offset))
        at_or_below = [s for s in sources if s.base_offset <= first_dirty_offset]
        self._first = at_or_below[-1] if at_or_below else None
        self._start_position = 0
        if self._has_aborted and self._first is not None and self._first.offset_index_bytes:
            path = Path(self._first.path).with_suffix(LogFileKind.OFFSET_INDEX)
            data = read_small_file(path, self._first.offset_index_bytes)
            index = parse_offset_index(data, self._first.base_offset, str(path))
            self._start_position = index.lookup(first_dirty_offset)[1]

    @property
    def transactions(self) -> CleanedTransactionMetadata:
        """The state so far."""
        return self._transactions

    def go_on_from(self, transactions: CleanedTransactionMetadata) -> None:
        """Go on from the state of a pass that came as far as the next chunk."""
        self._transactions = transactions

    def batches(self, chunk: Chunk, segment: SegmentInfo) -> NDArray[np.uint8]:
        """uint8[b]: MARKER, DATA or ONLY_LOOKED_UP of kernels.hash_keys.

        Data that Kafka's map pass takes for aborted is not put into the map, but looked up by the
        rewrite, which may know better: the pass begins behind the ABORT marker of a transaction
        that is listed still, and takes its producer's next one for it.
        """
        rows = chunk.rows
        roles: NDArray[np.uint8] = ((rows["attributes"] & CONTROL_FLAG_MASK) == 0).astype(np.uint8)
        # Kafka maps dirty segments alone. In front of them only what is data at all matters here.
        is_before = self._first is not None and segment.base_offset < self._first.base_offset
        if is_before or not self._has_aborted:
            return roles
        followed = slice(0, rows.size)
        # In front of that position Kafka sees no batch, so that no marker there ends a transaction
        # for it.
        if segment is self._first:
            followed = slice(
                int(np.searchsorted(rows["position"], self._start_position)), rows.size
            )
        part = Chunk(chunk.buf, chunk.position, rows[followed])
        discardable = self._transactions.discardable(part, segment.path)
        of_followed = roles[followed]
        of_followed[discardable & (of_followed == DATA)] = ONLY_LOOKED_UP
        return roles
