"""Which batches must outlive their records, if only as a header.

* The last batch of each active producer: a broker rebuilds a producer's last sequence and epoch
from the log. It is the data
  batch with the producer's last data offset, or, where only the epoch is known, any control batch
  of that epoch.
* The batch that ends at the round's end (KAFKA-17076; from 4.4 at the high watermark, KAFKA-20452):
it tells the log's end.

Source: Kafka Cleaner.cleanInto (isLastBatchOfProducer), KIP-98.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import CONTROL_FLAG_MASK, NO_PRODUCER_ID
from kafkalog.log.header_facts import ActiveProducer

_NO_OFFSET = -2  # no batch has it


class BatchRetention:
    """Answers for many batches at once."""

    def __init__(
        self, producers: Sequence[ActiveProducer], retained_end_offset: int | None
    ) -> None:
        ordered = sorted(producers, key=lambda producer: producer.producer_id)
        self._ids = np.array([producer.producer_id for producer in ordered], np.int64)
        self._epochs = np.array([producer.epoch for producer in ordered], np.int64)
        self._last_offsets = np.array(
            [
                _NO_OFFSET if producer.last_data_offset is None else producer.last_data_offset
                for producer in ordered
            ],
            np.int64,
        )
        self._retained_end_offset = retained_end_offset

    def retain_empty(self, rows: NDArray[np.void]) -> NDArray[np.uint8]:
        """uint8[b]: 1 where at least the header of the batch must stay."""
        if self._retained_end_offset is None:
            keep = np.zeros(rows.size, np.bool_)
        else:
            keep = rows["last_offset"] == self._retained_end_offset - 1
        if self._ids.size and (rows["producer_id"] != NO_PRODUCER_ID).any():
            keep |= self._is_last_of_producer(rows)
        return keep.astype(np.uint8)

    def _is_last_of_producer(self, rows: NDArray[np.void]) -> NDArray[np.bool_]:
        # The place where a producer would be is past the end for ids above all: held to the last
        # one, which then is another producer and does not match.
        at = np.minimum(np.searchsorted(self._ids, rows["producer_id"]), self._ids.size - 1)
        known = self._ids[at] == rows["producer_id"]
        last_offsets = self._last_offsets[at]
        is_control = (rows["attributes"] & CONTROL_FLAG_MASK) != 0
        by_epoch = (
            (last_offsets == _NO_OFFSET) & is_control & (rows["producer_epoch"] == self._epochs[at])
        )
        matches: NDArray[np.bool_] = known & ((rows["last_offset"] == last_offsets) | by_epoch)
        return matches
