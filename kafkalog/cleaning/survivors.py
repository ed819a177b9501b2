"""What has to stay of a group's sources by the rules, found a second time for `--verify deep`.

The rules are those of spec and Kafka's sources, written down once more over columns: nothing here
asks the kernels, the flags, the encoder or the transaction state that the round itself decided by.
Shared with it are how files are read and records decoded, which reading is tested by on its own.

Source: Kafka Cleaner.cleanInto, shouldRetainRecord, MemoryRecords.filterTo; KIP-98, KIP-534.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.batches.batch_table import (
    has_delete_horizon,
    is_control,
    is_legacy,
    is_transactional,
    timestamp_types,
)
from kafkalog.cleaning.compared_records import Part, Rows, read_parts
from kafkalog.cleaning.survivor_keys import SurvivorKeys
from kafkalog.columns.arrow_arrays import bool_array, number_values, valid_rows
from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    DELETE_HORIZON_FLAG_MASK,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    TimestampType,
)
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.file_names import LogFileKind
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.planning.compaction_plan import CompactionPlan, SegmentGroup
from kafkalog.resources.memory import MemoryBudget

Mask = NDArray[np.bool_]


class _Transactions:
    """Which data is aborted and which markers have nothing left to mark, batch by batch."""

    def __init__(self) -> None:
        self._waiting: list[AbortedTxn] = []
        self._ongoing: dict[int, AbortedTxn] = {}
        self._with_data: set[int] = set()
        self._committing: set[int] = set()
        self.ended: list[AbortedTxn] = []

    def expect(self, transactions: Iterable[AbortedTxn]) -> None:
        """Aborted transactions that the next batches may belong to."""
        # A sorted list where the round has a heap: slower, and not the same code.
        self._waiting = sorted([*self._waiting, *transactions], key=lambda txn: txn.first_offset)

    def spent(self, part: Part) -> Mask:
        """bool[b]: aborted data, and markers that mark nothing any more."""
        rows = part.rows
        result = np.zeros(rows.size, np.bool_)
        ends = np.cumsum(rows["records_count"], dtype=np.int64)
        control = is_control(rows)
        for b in np.flatnonzero(control | is_transactional(rows)).tolist():
            producer_id, last_offset = int(rows["producer_id"][b]), int(rows["last_offset"][b])
            # An aborted transaction counts from the first batch that reaches its first offset; a
            # second entry of a producer that has one open is the same transaction, listed again by
            # a later segment.
            while self._waiting and self._waiting[0].first_offset <= last_offset:
                begun = self._waiting.pop(0)
                if begun.producer_id not in self._ongoing:
                    self._ongoing[begun.producer_id] = begun
                    self._with_data.discard(begun.producer_id)
            if not control[b]:
                result[b] = producer_id in self._ongoing
                (self._with_data if result[b] else self._committing).add(producer_id)
            # What an earlier round left of a marker.
            elif not rows["records_count"][b]:
                result[b] = True
            else:
                key = part.records["key"][int(ends[b] - rows["records_count"][b])].as_py()
                result[b] = self._is_spent_marker(producer_id, parse_control_type(key))
        return result

    def _is_spent_marker(self, producer_id: int, kind: ControlRecordType) -> bool:
        # A marker is needed while data of its transaction is there, be it an empty batch kept for
        # the producer: without the marker that transaction would be open for ever.
        if kind is ControlRecordType.COMMIT:
            was_there = producer_id in self._committing
            self._committing.discard(producer_id)
            return not was_there
        if kind is not ControlRecordType.ABORT:
            return False
        ended = self._ongoing.pop(producer_id, None)
        if ended is None or producer_id not in self._with_data:
            return True
        self._with_data.discard(producer_id)
        self.ended.append(ended)
        return False


class Survivors:
    """What has to stay of a round, group by group in their order."""

    def __init__(
        self,
        plan: CompactionPlan,
        groups: Sequence[SegmentGroup],
        aborted: AbortedTransactions,
        end_offset: int,
        budget: MemoryBudget,
    ) -> None:
        """Reads all sources once. `end_offset`: one past the last offset the key map covers."""
        self._plan = plan
        self._aborted = aborted
        self._latest_offset = end_offset - 1
        self._max_bytes = budget.max_compared_bytes
        self._buffers = ChunkBuffers()
        self._transactions = _Transactions()
        sources = [segment for group in groups for segment in group.sources]
        self._keys = SurvivorKeys(sum(plan.source_records), budget)
        self._map(sources)

    def rewind(self, aborted: AbortedTransactions) -> None:
        """Begin again with the first group, whose segments may have been split."""
        self._aborted = aborted
        self._transactions = _Transactions()
        self._keys.rewind()

    def take_ended(self) -> list[AbortedTxn]:
        """The aborted transactions whose markers stay, of the last group."""
        ended, self._transactions.ended = self._transactions.ended, []
        return ended

    def parts(self, group: SegmentGroup) -> Iterator[Part]:
        """What has to stay of the next group: the fields of rows that do not depend on where they
        lie and how records are compressed; crc is -1 where a batch must not be the source's.
        """
        for number, segment in enumerate(group.sources):
            if not self._aborted.is_empty:
                followed = group.sources[number + 1 :]
                end = followed[0].base_offset if followed else _next_offset(segment)
                self._transactions.expect(self._aborted.between(segment.base_offset, end))
            for part in read_parts(segment.path, self._buffers, self._max_bytes):
                yield self._staying(part, segment)

    # -- who supersedes ---------------------------------------------------------------------------

    def _map(self, sources: Sequence[SegmentInfo]) -> None:
        first_dirty = self._plan.first_dirty_offset
        transactions = _Transactions()
        transactions.expect(self._aborted.between(first_dirty, self._plan.end_offset))
        below = [s for s in sources if s.base_offset <= first_dirty]
        first = below[-1] if below else sources[0] if sources else None
        start = _position_of(first, first_dirty) if first is not None else 0
        for segment in sources:
            is_read = first is None or segment.base_offset >= first.base_offset
            for part in read_parts(segment.path, self._buffers, self._max_bytes, keys_only=True):
                rows = part.rows
                # Two questions of each batch: may its records be superseded (all data), and may
                # they supersede (dirty data that Kafka's map pass does not take for aborted).
                data = ~is_control(rows)
                maps = data.copy()
                if not self._aborted.is_empty and is_read:
                    followed = np.ones(rows.size, np.bool_)
                    if segment is first:
                        followed = rows["position"] >= start
                    maps[followed] &= ~transactions.spent(_only(part, followed))
                offsets = number_values(part.records["offset"])
                of_batch = np.repeat(np.arange(rows.size), rows["records_count"])
                is_mapped = (
                    maps[of_batch] & (offsets >= first_dirty) & (offsets <= self._latest_offset)
                )
                self._keys.add(part.records["key"], data[of_batch], is_mapped)
        self._keys.close()

    # -- who stays --------------------------------------------------------------------------------

    def _staying(self, part: Part, segment: SegmentInfo) -> Part:
        rows, plan = part.rows, self._plan
        # The whole rule, in this order: a record stays if it has a key, nothing supersedes it, and
        # it is no tombstone whose time is over; markers and what the map does not cover stay at any
        # rate; what is discarded goes at any rate.
        spent, control, legacy = self._transactions.spent(part), is_control(rows), is_legacy(rows)
        stamped = has_delete_horizon(rows)
        due = stamped & (rows["base_timestamp"] <= plan.now_ms)
        if segment.modification_time_ms <= self._legacy_horizon_ms():
            due |= legacy
        if plan.replicated_end_offset is not None:
            due &= rows["last_offset"] < plan.replicated_end_offset
        discarded = spent & (~control | (stamped & due))
        of_batch = np.repeat(np.arange(rows.size), rows["records_count"])
        offsets = number_values(part.records["offset"])
        has_key, has_value = (valid_rows(part.records[name]) for name in ("key", "value"))
        stays = has_key & ~self._keys.take(offsets.size) & (has_value | ~due[of_batch])
        stays |= control[of_batch] | (offsets > self._latest_offset)
        stays &= ~discarded[of_batch]
        # From records back to batches: how many stay of each, and whether a tombstone is among
        # them, which is what asks for a delete horizon.
        counts = np.bincount(of_batch[stays], minlength=rows.size)
        tombstones = np.bincount(of_batch[stays & ~has_value], minlength=rows.size) > 0
        stamps = (tombstones | (spent & control)) & ~stamped & (counts > 0)
        whole = (counts == rows["records_count"]) & ~stamps & ~legacy & (counts > 0)
        records = part.records.filter(bool_array(stays))
        expected = self._rebuilt(rows, counts, stamps, whole, records)
        kept = (counts > 0) | self._kept_empty(rows)
        return Part(expected[kept], records)

    def _rebuilt(
        self,
        rows: Rows,
        counts: NDArray[np.int64],
        stamps: Mask,
        whole: Mask,
        records: pa.RecordBatch,
    ) -> Rows:
        """The rows of the batches when `records`, counts[b] of each, are all that is left."""
        # What is copied whole keeps all fields and its checksum; of the others those change that
        # Kafka's builder sets anew.
        result = rows.copy()
        some = np.flatnonzero((counts > 0) & ~whole)
        edges = np.cumsum(counts) - counts
        offsets, timestamps = (number_values(records[n]) for n in ("offset", "timestamp"))
        result["records_count"] = counts
        result["crc"][~whole] = -1
        legacy = is_legacy(rows)
        if some.size:
            first, last = edges[some], edges[some] + counts[some] - 1
            horizon = _as_long(self._plan.now_ms + self._plan.config.delete_retention_ms)
            result["base_timestamp"][stamps] = horizon
            result["attributes"][stamps] |= DELETE_HORIZON_FLAG_MASK
            unstamped = ~has_delete_horizon(result[some])
            result["base_timestamp"][some[unstamped]] = timestamps[first[unstamped]]
            # All records that are left belong to a batch of `counts` > 0, in order: those of whole
            # batches lie between, so the largest is asked of each batch with records.
            with_records = np.flatnonzero(counts)
            largest = np.full(rows.size, NO_TIMESTAMP)
            largest[with_records] = np.maximum.reduceat(timestamps, edges[with_records])
            created = some[timestamp_types(rows[some]) != TimestampType.LOG_APPEND_TIME]
            result["max_timestamp"][created] = largest[created]
            # Written as magic 2 its offsets are those of the records that stay: it had no others.
            old = legacy[some]
            result["base_offset"][some[old]] = offsets[first[old]]
            result["last_offset"][some[old]] = offsets[last[old]]
        _without_producer(result, legacy)
        empty = counts == 0
        result["base_timestamp"][empty] = NO_TIMESTAMP
        result["attributes"][empty] &= (
            TIMESTAMP_TYPE_MASK | TRANSACTIONAL_FLAG_MASK | CONTROL_FLAG_MASK
        )
        return result

    def _kept_empty(self, rows: Rows) -> Mask:
        """Batches that stay, if only as a header: the last of a producer, the round's last."""
        kept = np.zeros(rows.size, np.bool_)
        if self._plan.retained_end_offset is not None:
            kept |= rows["last_offset"] + 1 == self._plan.retained_end_offset
        control = is_control(rows)
        # A broker that loads the log must know each producer's last sequence: the batch that has it
        # stays, with or without records. Of a producer that wrote no data its last marker stays, by
        # the epoch.
        known = {producer.producer_id: producer for producer in self._plan.active_producers}
        for b in np.flatnonzero(np.isin(rows["producer_id"], list(known))).tolist():
            producer = known[int(rows["producer_id"][b])]
            if producer.last_data_offset is not None:
                kept[b] |= rows["last_offset"][b] == producer.last_data_offset
            else:
                kept[b] |= bool(control[b] and rows["producer_epoch"][b] == producer.epoch)
        return kept

    def _legacy_horizon_ms(self) -> int:
        plan = self._plan
        clean = [s for s in plan.sources if s.base_offset < plan.first_dirty_offset]
        return clean[-1].modification_time_ms - plan.config.delete_retention_ms if clean else 0


def _without_producer(rows: Rows, which: Mask) -> None:
    """What a batch of magic 0 or 1 becomes has no producer and no leader epoch."""
    for name, value in (
        ("producer_id", NO_PRODUCER_ID),
        ("producer_epoch", NO_PRODUCER_EPOCH),
        ("base_sequence", NO_SEQUENCE),
        ("partition_leader_epoch", NO_PARTITION_LEADER_EPOCH),
        ("magic", 2),
    ):
        rows[name][which] = value


def _only(part: Part, which: Mask) -> Part:
    of_batch = np.repeat(which, part.rows["records_count"])
    return Part(part.rows[which], part.records.filter(bool_array(of_batch)))


def _position_of(segment: SegmentInfo, offset: int) -> int:
    """Where a broker begins to read a segment for an offset."""
    if not segment.offset_index_bytes or offset < segment.base_offset:
        return 0
    path = Path(segment.path).with_suffix(LogFileKind.OFFSET_INDEX)
    data = read_small_file(path, segment.offset_index_bytes)
    return int(parse_offset_index(data, segment.base_offset, str(path)).lookup(offset)[1])


def _next_offset(segment: SegmentInfo) -> int:
    found = segment.base_offset
    for scan in iterate_headers(segment.path):
        if scan.rows.size:
            found = int(scan.rows["last_offset"][-1]) + 1
    return found


def _as_long(value: int) -> int:
    """A sum as Java's long has it."""
    return (value + 2**63) % 2**64 - 2**63
