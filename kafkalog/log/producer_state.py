"""Producer state at the end of a log: which producers a broker still knows, and with what last
batch.

Strategy, as a broker does when it loads a log: take the newest readable snapshot that is not past
the log's end, drop what is expired, then replay the batch headers from there to the end
(`producer_replay`). A marker's timestamp is its batch's max timestamp, so headers are enough.
Of a tiered log the snapshots count, too, that the plug-in copied with its segments: without a log
dir there are no others. Without any snapshot a broker assumes an upgrade and starts with nothing;
we replay the whole log instead, which knows more producers and so keeps more empty batches, never
fewer.

Source: Kafka ProducerStateManager, UnifiedLog.rebuildProducerState; KIP-98, KIP-890.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptSnapshotError, RemoteStorageError
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.file_names import producer_snapshot_file_name
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.log.damage import FileRange
from kafkalog.log.header_facts import ActiveProducer
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.past_damage import headers_past_damage
from kafkalog.log.producer_replay import (
    Producer,
    ProducerReplay,
    ProducerSink,
    TransactionEnd,
)
from kafkalog.log.producer_runs import Data
from kafkalog.log.small_files import read_small_file
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.segment import look_at_manifest, read_manifest

__all__ = [
    "MAX_SNAPSHOT_BYTES",
    "ActiveProducer",
    "ProducerState",
    "ProducersPastDamage",
    "active_producers",
    "kept_snapshots",
    "loadable_snapshots",
    "producers_past_damage",
    "restore_producer_state",
    "uploaded_snapshots",
]

# 46 bytes an entry: a snapshot of 1.4 million producers.
MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024


class ProducerState(ProducerSink):
    """Fed with batch headers in offset order."""

    def __init__(self, next_offset: int, entries: Iterable[ProducerEntry] = ()) -> None:
        self.next_offset = next_offset
        self.problems: list[str] = []
        self.completed_transactions: list[tuple[int, int]] = []
        """(first offset, marker's offset) of the transactions that ended during the replay."""
        self._replay = ProducerReplay(self)
        self._replay.restart(
            (
                Producer(
                    producer_id=entry.producer_id,
                    epoch=entry.producer_epoch,
                    last_offset=entry.last_offset,
                    timestamp=entry.timestamp,
                ),
                entry.current_txn_first_offset,
            )
            for entry in entries
        )

    def apply(self, rows: NDArray[np.void]) -> None:
        """Replay batches (BATCH_ROW[b]); those below `next_offset` are already in the state."""
        if not rows.size:
            return
        # A batch that the snapshot covers is in the state already: replayed again, it would begin
        # its transaction a second time.
        is_new = rows["last_offset"] >= self.next_offset
        self._replay.apply(rows if is_new.all() else rows.compress(is_new))
        self.next_offset = max(self.next_offset, int(rows["last_offset"][-1]) + 1)

    def active_producers(self) -> tuple[ActiveProducer, ...]:
        """The producers known now, by id."""
        return tuple(
            ActiveProducer(
                producer_id=producer_id,
                epoch=producer.epoch,
                last_data_offset=producer.last_offset if producer.last_offset >= 0 else None,
                last_timestamp_ms=producer.timestamp,
                current_txn_first_offset=self._replay.transaction_start(producer_id),
            )
            for producer_id, producer in sorted(self._replay.producers.items())
        )

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """Note where it began and ended."""
        if transaction is not None:
            self.completed_transactions.append((transaction.first_offset, end.offset))

    def outside(self, producer: Producer, transaction: Data, row: np.void) -> None:
        """A broker would fail to load the log."""
        self.problems.append(
            f"producer {producer.producer_id} wrote a non-transactional batch at offset "
            f"{row['base_offset']} within its transaction of offset {transaction.first_offset}"
        )


def active_producers(
    partition: PartitionInventory, now_ms: int, expiration_ms: int
) -> Mapping[int, ActiveProducer]:
    """The producers a broker that loaded this log at `now_ms` would know, by producer id.

    OSError if a file cannot be read, CorruptRecordError if a batch on the way is damaged.
    """
    found = _producers_at_end(partition, now_ms, expiration_ms, bears_damage=False)
    return found.producers


@dataclass(frozen=True, slots=True)
class ProducersPastDamage:
    """By producer id what the sound batches tell. A transaction that is open and began below
    `doubtful_before` may have ended in a range that cannot be read; 0 where all could.
    """

    producers: Mapping[int, ActiveProducer]
    doubtful_before: int = 0


def producers_past_damage(partition: PartitionInventory) -> ProducersPastDamage:
    """The same with none expired, and where batches on the way are damaged too. OSError."""
    return _producers_at_end(partition, 0, 1, bears_damage=True)


def _producers_at_end(
    partition: PartitionInventory, now_ms: int, expiration_ms: int, *, bears_damage: bool
) -> ProducersPastDamage:
    state = restore_producer_state(partition, now_ms=now_ms, expiration_ms=expiration_ms)
    start_offset, doubtful_before = state.next_offset, 0
    for number, segment in enumerate(partition.segments):
        following = partition.segments[number + 1 : number + 2]
        if following and following[0].base_offset <= start_offset:
            continue
        # A segment of a broker's disk is walked all the same: its end is nowhere else.
        if isinstance(segment.path, ManifestPath) and partition.log_end_offset <= start_offset:
            continue
        end_offset = following[0].base_offset if following else None
        rows, damages = headers_past_damage(FileRange.of(segment, end_offset))
        if damages and not bears_damage:
            raise damages[0].error
        if damages:
            behind = rows["base_offset"][rows["position"] > damages[-1].position]
            end = MAX_INT64 if end_offset is None else end_offset
            # A marker may have been in the damaged range: what was open in front of it may have
            # ended there.
            doubtful_before = int(behind[0]) if behind.size else end
        state.apply(rows)
    producers = {entry.producer_id: entry for entry in state.active_producers()}
    return ProducersPastDamage(producers, doubtful_before)


def restore_producer_state(
    partition: PartitionInventory, *, now_ms: int, expiration_ms: int
) -> ProducerState:
    """The state of the newest readable snapshot, to be fed with the batches from its offset on.

    A snapshot that cannot be read is left out for the next older one, as Kafka does.
    """
    for offset, path in _snapshots(partition):
        try:
            entries = parse_producer_snapshot(read_small_file(path, MAX_SNAPSHOT_BYTES), path=path)
        except (CorruptSnapshotError, FileNotFoundError, RemoteStorageError):
            continue
        return ProducerState(
            offset, (entry for entry in entries if not is_expired(entry, now_ms, expiration_ms))
        )
    return ProducerState(partition.log_start_offset)


def _snapshots(partition: PartitionInventory) -> Iterator[tuple[int, str]]:
    """(offset, path) of those that a replay may begin from, the newest first."""
    own = [
        (offset, str(Path(partition.path) / producer_snapshot_file_name(offset)))
        for offset in sorted(loadable_snapshots(partition), reverse=True)
    ]
    return heapq.merge(own, uploaded_snapshots(partition), key=itemgetter(0), reverse=True)


def uploaded_snapshots(partition: PartitionInventory) -> Iterator[tuple[int, str]]:
    """The same of those that lie with segments behind manifests. One is the state at its segment's
    end: where another one is read from some offset before that on, it says too much."""
    if not partition.segments:
        return  # its end is no segment's
    ends = [*(segment.base_offset for segment in partition.segments[1:]), partition.log_end_offset]
    for segment, end in zip(reversed(partition.segments), reversed(ends), strict=True):
        if isinstance(segment.path, ManifestPath) and segment.has_snapshot:
            copied = read_manifest(look_at_manifest(segment.path.manifest)).copied
            if copied is not None and copied.end_offset + 1 == end:
                yield end, segment.beside(".snapshot")


def kept_snapshots(partition: PartitionInventory) -> list[int]:
    """See `kept_among`."""
    bases = [segment.base_offset for segment in partition.segments]
    return kept_among(partition.snapshot_offsets, bases)


def kept_among(snapshot_offsets: Sequence[int], base_offsets: Collection[int]) -> list[int]:
    """Offsets of the snapshots a broker does not remove as strays on load: at segment bases, or the
    newest past all of them.

    If there is one, whatever is in it, the broker replays what no readable one covers. If there is
    none it assumes after a clean stop that there are no producers.
    """
    bases = {*base_offsets}
    strays = [offset for offset in snapshot_offsets if offset not in bases]
    newest = {max(strays)} if strays and max(strays) >= max(bases, default=0) else set()
    return [offset for offset in snapshot_offsets if offset in bases | newest]


def loadable_snapshots(partition: PartitionInventory) -> list[int]:
    """Offsets of the snapshots a broker may begin from: those of the kept ones within the log."""
    return [
        offset
        for offset in kept_snapshots(partition)
        if partition.log_start_offset < offset <= partition.log_end_offset
    ]


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    is_idle = now_ms - entry.timestamp >= expiration_ms
    return is_idle and entry.current_txn_first_offset < 0
