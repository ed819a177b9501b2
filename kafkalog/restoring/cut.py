"""Where a restored log ends, and which transactions are open there.

A cut lies between two batches: of a batch that reaches past `until` nothing is taken, so that no
consumer gets anything later. A transaction that is open at the end would hold the last stable
offset of the restored log for ever, for its coordinator is not there: it is refused, aborted by a
marker, or cut off. Cutting goes back to the last stable offset of the cut, at which a transaction
may be open whose marker lies behind it: from there back again, until none is.

Only headers are read, and the values of a few markers.

Source: Kafka ProducerStateManager.firstUnstableOffset, TransactionCoordinator.endTransaction;
KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import codecs, is_control
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import NO_TIMESTAMP, CompressionType
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.producer_replay import (
    Producer,
    ProducerReplay,
    ProducerSink,
    TransactionEnd,
    has_marker,
)
from kafkalog.log.producer_runs import Data
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.log.transaction_markers import read_markers_at
from kafkalog.restoring.header_digest import HeaderDigest

Rows = NDArray[np.void]
# From here on no controller gives out a producer id: those of what was restored once.
FIRST_RESTORED_ID = 1 << 62


@dataclass(frozen=True, slots=True)
class Until:
    """How far to go: nothing at or behind `offset`, nothing later than `timestamp_ms`; None for no
    bound.
    """

    offset: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OpenTransaction(JsonFacts):
    """A transaction without a marker at the cut; epochs of its producer and coordinator, 0 for a
    coordinator that has left no marker.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class KeptSegment(JsonFacts):
    """A segment of the source, and how many of its bytes are taken; is_remote: decoded as it is
    read from remote storage; headers: the `HeaderDigest` of the batches that are taken.
    """

    base_offset: int
    path: str
    valid_bytes: int
    modification_time_ms: int
    is_remote: bool = False
    headers: str = ""


@dataclass(frozen=True, slots=True)
class LogCut(JsonFacts):
    """A log up to `end_offset`. last_stable_offset: where its oldest open transaction begins, else
    the end. highest epochs and producer ids that a controller gives out: -1 without;
    largest_timestamp_ms: of all batches.
    left_out_from: the first offset of what lies behind the cut, None if nothing does; records: in
    all batches but control batches, None where legacy entries have to be opened to count them;
    notes: what somebody has to know of it.
    """

    start_offset: int
    end_offset: int
    last_stable_offset: int
    segments: tuple[KeptSegment, ...]
    open: tuple[OpenTransaction, ...]
    highest_epoch: int
    highest_producer_id: int
    largest_timestamp_ms: int
    left_out_from: int | None = None
    records: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def size_in_bytes(self) -> int:
        """Bytes that are taken."""
        return sum(segment.valid_bytes for segment in self.segments)


def cut_log(
    partition: PartitionInventory, until: Until, *, to_stable: bool, begins_later: bool = False
) -> LogCut:
    """The log up to `until`; `to_stable`: only so far that no transaction is open at its end;
    `begins_later`: its start is not its own, see `begin`.

    CorruptRecordError for a batch that cannot be walked over, and for bytes behind the last batch
    of a segment that others follow; OSError, LogChangedError as from reading.
    """
    walk = _Walk(partition, until, begins_later)
    if not (to_stable and walk.replay.transactions):
        return walk.cut()
    return _Walk(partition, Until(walk.stable_end()), begins_later).cut()


@dataclass
class _Walk(ProducerSink):
    """One pass over the headers."""

    partition: PartitionInventory
    until: Until
    begins_later: bool = False
    segments: list[KeptSegment] = field(default_factory=list)
    epoch: int = -1
    producer_id: int = -1
    timestamp_ms: int = NO_TIMESTAMP
    left_out_from: int | None = None
    records: int = 0
    has_legacy: bool = False
    notes: tuple[str, ...] = ()
    _kept_to: int = 0
    _ended: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.replay = ProducerReplay(self)
        self.end_offset = self.partition.log_start_offset
        segments = self.partition.segments
        bases = [each.base_offset for each in segments[1:]]
        for segment, following in zip(segments, [*bases, None], strict=True):
            if self.left_out_from is None and not self._is_behind(segment):
                # In remote storage two may have the same offsets: of each what the next has not.
                self._take(segment, following if segment.state == REMOTE else None)

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """Where each transaction began and ended: asked for where a cut goes back."""
        if transaction is not None:
            self._ended.append((transaction.first_offset, end.offset))

    def _is_behind(self, segment: SegmentInfo) -> bool:
        """An empty segment tells where the log ends: it is taken as any other."""
        offset = self.until.offset
        if offset is None or segment.base_offset < offset or not self.segments:
            return False
        self.left_out_from = segment.base_offset if segment.size_in_bytes else None
        return True

    def _take(self, segment: SegmentInfo, following: int | None) -> None:
        self.end_offset = max(self.end_offset, segment.base_offset)
        valid_bytes, digest = 0, HeaderDigest()
        for scan in iterate_headers(segment.path):
            scan.raise_if_corrupt()
            own = scan.rows if following is None else _in_front_of(scan.rows, following, segment)
            kept = self._in_front_of_the_cut(own)
            self._count(kept)
            digest.add(kept)
            valid_bytes = scan.valid_bytes
            if kept.size == own.size < scan.rows.size:
                valid_bytes = int(scan.rows["position"][own.size])
                break
            if kept.size < own.size:
                first_left = scan.rows[kept.size]
                self.left_out_from = int(first_left["base_offset"])
                valid_bytes = int(first_left["position"])
                break
            if scan.trailing_bytes and not segment.is_active:
                raise CorruptRecordError(
                    f"{scan.trailing_bytes} bytes behind the last whole batch, and more segments "
                    "behind them",
                    path=segment.path,
                    position=scan.valid_bytes,
                )
        kept_segment = KeptSegment(
            segment.base_offset,
            segment.path,
            valid_bytes,
            segment.modification_time_ms,
            segment.state == REMOTE,
            digest.hexdigest(),
        )
        # A segment of which nothing stays would only say where the next batch goes.
        if valid_bytes or self.left_out_from is None or not self.segments:
            self.segments.append(kept_segment)

    def _in_front_of_the_cut(self, rows: Rows) -> Rows:
        later = np.zeros(rows.size, np.bool_)
        if self.until.offset is not None:
            later |= rows["last_offset"] >= self.until.offset
        if self.until.timestamp_ms is not None:
            later |= rows["max_timestamp"] > self.until.timestamp_ms
        return rows[: int(np.argmax(later))] if later.any() else rows

    def _count(self, rows: Rows) -> None:
        if not rows.size:
            return
        self.replay.apply(rows)
        self._kept_to = int(rows["last_offset"][-1]) + 1
        self.end_offset = max(self.end_offset, self._kept_to)
        current = rows[rows["magic"] >= 2]
        self.has_legacy |= current.size < rows.size
        if current.size:
            self.records += int(current["records_count"][~is_control(current)].sum(dtype=np.int64))
            self.epoch = max(self.epoch, int(current["partition_leader_epoch"].max()))
            self._look_at_codecs(current)
            ids = current["producer_id"]
            given = ids[ids < FIRST_RESTORED_ID]
            self.producer_id = max(self.producer_id, int(given.max(initial=-1)))
        self.timestamp_ms = max(self.timestamp_ms, int(rows["max_timestamp"].max()))

    def _look_at_codecs(self, rows: Rows) -> None:
        known = codecs(rows)
        unknown = known > max(CompressionType)
        if not self.notes and unknown.any():
            row = int(np.argmax(unknown))
            self.notes = (
                f"the batch at offset {int(rows['base_offset'][row])} has compression codec "
                f"{int(known[row])}, which no Kafka knows: it stays as it is, and who reads it "
                "fails there",
            )

    def stable_end(self) -> int:
        """The furthest offset at which no transaction is open."""
        end = self.replay.first_open_offset()
        if end is None:
            return self.end_offset
        # In the order of markers, the last first: once over them is enough, since the end goes
        # back only, and a transaction with a marker at or behind it was looked at already.
        for first_offset, marker_offset in reversed(self._ended):
            if marker_offset >= end > first_offset:
                end = first_offset
        return end

    def cut(self) -> LogCut:
        start = self.partition.log_start_offset
        if (self.left_out_from is not None and self._kept_to < start) or (
            self.begins_later and self._kept_to <= start
        ):
            return self._nothing(start)
        stable = self.replay.first_open_offset()
        return LogCut(
            self.partition.log_start_offset,
            self.end_offset,
            self.end_offset if stable is None else stable,
            tuple(self.segments),
            tuple(self._open()),
            self.epoch,
            self.producer_id,
            self.timestamp_ms,
            self.left_out_from,
            None if self.has_legacy else self.records,
            self.notes,
        )

    def _nothing(self, start: int) -> LogCut:
        """What is kept lies in front of the log's start: it begins there, and is empty."""
        first = self.segments[0]
        none = HeaderDigest().hexdigest()
        segment = replace(first, base_offset=start, valid_bytes=0, headers=none)
        return LogCut(
            start, start, start, (segment,), (), -1, -1, NO_TIMESTAMP, self.left_out_from, 0
        )

    def _open(self) -> Iterator[OpenTransaction]:
        transactions = self.replay.transactions
        epochs = _coordinator_epochs(self.segments, transactions) if transactions else {}
        for producer_id, data in transactions.items():
            producer = self.replay.producers[producer_id]
            yield OpenTransaction(
                producer_id, producer.epoch, max(epochs.get(producer_id, 0), 0),
                data.first_offset, data.records,
            )  # fmt: skip


def _in_front_of(rows: Rows, following: int, segment: SegmentInfo) -> Rows:
    """The batches that the next segment does not have; CorruptRecordError for one that reaches into
    it, which would be there in part."""
    inside = int(np.searchsorted(rows["last_offset"], following))
    if inside < rows.size and rows["base_offset"][inside] < following:
        raise CorruptRecordError(
            f"the batch ends at offset {int(rows['last_offset'][inside])}, and the next segment "
            f"begins at {following}",
            path=segment.path,
            position=int(rows["position"][inside]),
            offset=int(rows["base_offset"][inside]),
        )
    return rows[:inside]


def _coordinator_epochs(
    segments: Iterable[KeptSegment], producer_ids: Iterable[int]
) -> dict[int, int]:
    """The coordinator epoch of each producer's last marker."""
    wanted, found = list(producer_ids), dict[int, int]()
    for segment in segments:
        for scan in iterate_headers(segment.path, end=segment.valid_bytes):
            rows = scan.rows[has_marker(scan.rows)]
            rows = rows[np.isin(rows["producer_id"], wanted)]
            if not rows.size:
                continue
            markers, errors = read_markers_at(segment.path, rows)
            for error in errors:
                raise error
            for row, marker in zip(rows, markers, strict=True):
                if marker is not None and marker.coordinator_epoch is not None:
                    found[int(row["producer_id"])] = marker.coordinator_epoch
    return found
