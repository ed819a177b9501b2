"""How the transactions of a partition ended, for records that count only if theirs was committed.

Headers alone tell whether there are any; then the markers are read.

Source: Kafka GroupCoordinator and its replay of transaction markers: a commit counts from its
marker on, and an aborted or open one never.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkalog.batches import batch_table
from kafkalog.columns.offset_commits import ABORTED, COMMITTED, OPEN
from kafkalog.log.segment_file import read_chunks, scan_headers
from kafkalog.log.transaction_markers import read_markers

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TransactionEnds:
    """producer id → (offsets of its markers in order, whether each is an abort)."""

    by_producer: dict[int, tuple[Int64s, npt.NDArray[np.bool_]]]

    def states(self, producer_ids: Int64s, offsets: Int64s) -> Int64s:
        """OPEN, COMMITTED or ABORTED of records in transactions."""
        states = np.full(offsets.size, OPEN, np.int64)
        for producer_id in np.unique(producer_ids).tolist():
            if producer_id not in self.by_producer:
                continue
            which = np.flatnonzero(producer_ids == producer_id)
            ends, is_abort = self.by_producer[producer_id]
            at = ends.searchsorted(offsets[which], side="right")
            ended = at < ends.size
            aborts = is_abort[at[ended]]
            states[which[ended]] = np.where(aborts, ABORTED, COMMITTED)
        return states


def read_transaction_ends(paths: Sequence[str]) -> TransactionEnds | None:
    """The ends of all transactions in some segments of a partition, in order; None if none has a
    transactional record. What is damaged is left to the read of the records.
    """
    has_data = False
    marked = []
    for path in paths:
        rows = scan_headers(path).rows
        is_control = batch_table.is_control(rows)
        has_data |= bool((batch_table.is_transactional(rows) & ~is_control).any())
        if (is_control & (rows["producer_id"] >= 0)).any():
            marked.append(path)
    if not has_data:
        return None
    found: dict[int, list[tuple[int, bool]]] = {}
    for path in marked:
        for chunk in read_chunks(path):
            rows = chunk.rows
            is_marker = batch_table.is_control(rows) & (rows["records_count"] > 0)
            which = np.flatnonzero(is_marker & (rows["producer_id"] >= 0))
            for b, marker in zip(which.tolist(), read_markers(chunk, which, path), strict=True):
                end = (int(rows["base_offset"][b]), marker.is_abort)
                found.setdefault(int(rows["producer_id"][b]), []).append(end)
    return TransactionEnds(
        {
            producer_id: (
                np.array([offset for offset, _ in ends], np.int64),
                np.array([is_abort for _, is_abort in ends], np.bool_),
            )
            for producer_id, ends in found.items()
        }
    )
