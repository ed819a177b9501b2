"""What a broker knows of each producer, kept batch by batch as the log builder appends them.

A dict and four rules, after Kafka's ProducerStateManager; the package's own replay is tested
against it.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalog.format.control_record import (
    ControlRecordType,
    parse_control_type,
    parse_end_transaction_marker,
)
from kafkalog.format.producer_snapshot import ProducerEntry
from kafkalog.format.record_batch import RecordBatchHeader, parse_batch

AbortedTransaction = tuple[int, int, int, int]  # producer id, first, last and last stable offset


class ProducerStates:
    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}

    def entries(self) -> list[ProducerEntry]:
        return list(self._entries.values())

    def epoch(self, producer_id: int) -> int:
        """The epoch the producer writes with: its last one, 0 for a new producer."""
        entry = self._entries.get(producer_id)
        return 0 if entry is None else entry.producer_epoch

    def next_sequence(self, producer_id: int, producer_epoch: int) -> int:
        entry = self._entries.get(producer_id)
        if entry is None or entry.producer_epoch != producer_epoch:
            return 0
        return (entry.last_sequence + 1) % 2**31

    def update(self, header: RecordBatchHeader, batch: bytes) -> AbortedTransaction | None:
        """Take in one batch; returns the index entry of a transaction it aborts."""
        if not header.has_producer_id:
            return None
        producer_id, epoch = header.producer_id, header.producer_epoch
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = ProducerEntry(producer_id, epoch, -1, -1, 0, -1, -1, -1)
        elif entry.producer_epoch != epoch:
            entry = replace(
                entry, producer_epoch=epoch, last_sequence=-1, last_offset=-1, offset_delta=0
            )
        if header.is_control:
            return self._end_transaction(entry, header, batch)
        first_offset = entry.current_txn_first_offset
        if header.is_transactional and first_offset == -1:
            first_offset = header.base_offset
        self._entries[producer_id] = replace(
            entry,
            last_sequence=header.last_sequence,
            last_offset=header.last_offset,
            offset_delta=header.last_offset_delta,
            timestamp=header.max_timestamp,
            current_txn_first_offset=first_offset,
        )
        return None

    def _end_transaction(
        self, entry: ProducerEntry, header: RecordBatchHeader, batch: bytes
    ) -> AbortedTransaction | None:
        _, records = parse_batch(batch)
        if not records:
            return None
        marker = records[0]
        self._entries[entry.producer_id] = replace(
            entry,
            timestamp=marker.timestamp,
            coordinator_epoch=parse_end_transaction_marker(marker.value),
            current_txn_first_offset=-1,
        )
        first_offset = entry.current_txn_first_offset
        if first_offset == -1 or parse_control_type(marker.key) != ControlRecordType.ABORT:
            return None
        open_offsets = [
            other.current_txn_first_offset
            for other in self._entries.values()
            if other.current_txn_first_offset != -1
        ]
        last_stable_offset = min(open_offsets, default=header.last_offset + 1)
        return entry.producer_id, first_offset, header.last_offset, last_stable_offset
