"""Runs of like batches: all that a replay of producers has to look at one by one.

    batches   p7 p7 p8 p7 C7 p7        p: data, C: control, with the producer's id
    runs      p7 (3)  p8 (1)  C7  p7 (1)

Between two control batches of a producer, and as long as its data is all in transactions or all
outside of them, only its first batch can begin anything, only its last one stays known, and the
rest adds up. So each such run of one producer's batches is summed up by columns, however many
batches of others lie between. Runs come in the order of their first batches. At that place all that
lies in front of a control batch has come, for no run of its producer goes on behind it: who is open
there is known, which is what the last stable offset needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import last_sequences
from kafkalog.format.constants import CONTROL_FLAG_MASK, NO_PRODUCER_ID, TRANSACTIONAL_FLAG_MASK

Int64s = NDArray[np.int64]
Rows = NDArray[np.void]


@dataclass(slots=True)
class Data:
    """Some data batches of a producer: bytes of whole batches, timestamps the largest of the first
    batch and of the last one, in ms.
    """

    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    records: int
    batches: int
    size_in_bytes: int

    def add(self, later: Data) -> None:
        """Count in what lies behind."""
        self.last_offset, self.last_timestamp = later.last_offset, later.last_timestamp
        self.records += later.records
        self.batches += later.batches
        self.size_in_bytes += later.size_in_bytes


def data_of(rows: Rows) -> Data:
    """The sum of some data batches, BATCH_ROW[b], at least one, in offset order."""
    return Data(
        int(rows["base_offset"][0]),
        int(rows["last_offset"][-1]),
        int(rows["max_timestamp"][0]),
        int(rows["max_timestamp"][-1]),
        int(_records(rows).sum()),
        rows.size,
        int(rows["size_in_bytes"].astype(np.int64).sum()),
    )


def _records(rows: Rows) -> Int64s:
    """int64[b]: records of each batch; a header that is wrong may say any number."""
    return rows["records_count"].astype(np.int64).clip(min=0)


@dataclass(frozen=True, slots=True)
class ProducerRuns:
    """order int64[b]: the batches of producers (indexes into the rows they are of), by producer and
    then as they lie; starts, ends int64[r]: run r is order[starts[r]:ends[r]]. The runs are in the
    order of their first batches.
    """

    rows: Rows
    order: Int64s
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, rows: Rows) -> ProducerRuns:
        """Of batches BATCH_ROW[b] in offset order; those of no producer are in no run."""
        known = np.flatnonzero(rows["producer_id"] > NO_PRODUCER_ID)
        producers = rows["producer_id"][known]
        # Stable: the batches of one producer stay in the order of the log.
        by_producer = np.argsort(producers, kind="stable")
        order = known[by_producer]
        producers = producers[by_producer]
        flags = CONTROL_FLAG_MASK | TRANSACTIONAL_FLAG_MASK
        kinds = rows["attributes"][order] & flags
        # A run begins with another producer, with another kind of batch, and with every control
        # batch: two markers are two events.
        begins = np.ones(order.size, np.bool_)
        begins[1:] = (producers[1:] != producers[:-1]) | (kinds[1:] != kinds[:-1])
        begins |= (kinds & CONTROL_FLAG_MASK) != 0
        starts = np.flatnonzero(begins)
        ends = np.append(starts[1:], order.size)
        # Back from the order of producers to the order of the log, by where each run begins.
        in_order = np.argsort(order[starts], kind="stable")
        return cls(rows, order, starts[in_order], ends[in_order])

    def batches_of(self, run: int) -> Int64s:
        """The batches of one run, as indexes into the rows."""
        return self.order[self.starts[run] : self.ends[run]]

    def columns(self) -> Iterator[tuple[int, ...]]:
        """Of each run: producer id, attributes; epoch, last sequence and base offset of its last
        batch; then the fields of `Data`.
        """
        rows = self.rows
        firsts, lasts = rows[self.order[self.starts]], rows[self.order[self.ends - 1]]
        columns = (
            firsts["producer_id"],
            firsts["attributes"],
            lasts["producer_epoch"],
            last_sequences(lasts),
            lasts["base_offset"],
            firsts["base_offset"],
            lasts["last_offset"],
            firsts["max_timestamp"],
            lasts["max_timestamp"],
            self._sum_of(_records(rows)),
            self.ends - self.starts,
            self._sum_of(rows["size_in_bytes"].astype(np.int64)),
        )
        # Plain lists: numpy's scalars are slow one by one.
        return zip(*(column.tolist() for column in columns), strict=True)

    def _sum_of(self, values: Int64s) -> Int64s:
        # Sums over ranges as differences of running totals, without a loop over the runs.
        totals = np.concatenate([[0], np.cumsum(values[self.order])])
        sums: Int64s = totals[self.ends] - totals[self.starts]
        return sums
