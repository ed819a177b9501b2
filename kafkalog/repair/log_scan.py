"""One pass over a log in offset order: what its indexes, producer snapshots and leader epochs must
be, against the files that are there.

The producer state is what Kafka's loader makes: written to a snapshot at each segment's end and
read again for the next segment, which is when producers expire; a snapshot at or below the log
start is not kept.

Source: Kafka LogLoader.recoverSegment, LogSegment.recover, UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import (
    CorruptCheckpointError,
    CorruptSnapshotError,
    LogCleaningRefusedError,
)
from kafkalog.format.checkpoints import EpochEntry, pack_leader_epoch_checkpoint
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    LogFileKind,
    producer_snapshot_file_name,
)
from kafkalog.format.producer_snapshot import (
    ProducerEntry,
    pack_producer_snapshot,
    parse_producer_snapshot,
)
from kafkalog.format.transaction_index import pack_transaction_index
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.leader_epochs import LeaderEpochReplay
from kafkalog.log.producer_state import MAX_SNAPSHOT_BYTES
from kafkalog.log.recovered_producers import RecoveredProducers
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.log.small_files import read_small_file
from kafkalog.repair.file_differences import (
    MISSING,
    index_difference,
    snapshot_difference,
)
from kafkalog.repair.recover_result import (
    RecoverTask,
)
from kafkalog.repair.segment_scan import ScannedSegment, scan_segment
from kafkalog.swap.local_files import path_in


class Findings(Protocol):
    """Gets what differs, in the order in which it is found."""

    def note(self, name: str, reason: str, data: bytes) -> None:
        """A file that is to have these bytes."""

    def note_removal(self, name: str, reason: str) -> None:
        """A file that is to go."""

    def note_tail(self, segment: SegmentInfo, scan: ScannedSegment) -> None:
        """Bytes behind the last whole batch of the last segment."""


class SegmentWatch(Protocol):
    """Goes along with a pass: whoever makes the segments while they are read, or compares them."""

    def enter(self, segment: SegmentInfo) -> None:
        """Before a segment is read: it has to be there, whole, when this returns."""

    def add(self, rows: NDArray[np.void]) -> None:
        """Its next batches, whose checksums hold."""

    def leave(self, segment: SegmentInfo, scan: ScannedSegment) -> None:
        """Behind its last batch."""


class LogScan:
    """A pass over a partition's log; counts are those of what was read so far."""

    def __init__(
        self,
        task: RecoverTask,
        partition: PartitionInventory,
        findings: Findings,
        buffers: ChunkBuffers,
        watch: SegmentWatch | None = None,
    ) -> None:
        self._task = task
        self._partition = partition
        self._findings = findings
        self._buffers = buffers
        self._watch = watch
        self.batches_count = 0
        self.bytes_read = 0

    def run(self) -> int:
        """The log's end offset. CorruptRecordError for a batch that is damaged,
        LogCleaningRefusedError for segments that overlap.
        """
        segments = self._partition.segments
        end_offset = segments[0].base_offset
        producers = RecoveredProducers(end_offset, self._first_entries())
        epochs = LeaderEpochReplay(self._known_epochs()[0] or ())
        for number, segment in enumerate(segments):
            # Where segments overlap, the same offsets would be replayed twice: producers and
            # indexes would be wrong.
            if segment.base_offset < end_offset:
                raise LogCleaningRefusedError(
                    f"begins before the offset {end_offset} where the segment before it ends",
                    path=segment.path,
                )
            self._enter(segment, producers, is_first=number == 0)
            if self._watch is not None:
                self._watch.enter(segment)
            scan = scan_segment(
                segment,
                len(segments) - number - 1,
                self._task.config,
                producers,
                epochs,
                self._buffers,
                self._task.max_batch_bytes,
                None if self._watch is None else self._watch.add,
            )
            if self._watch is not None:
                self._watch.leave(segment, scan)
            end_offset = scan.next_offset
            self._look_at_indexes(segment, scan)
            self.batches_count += scan.batches_count
            self.bytes_read += scan.valid_bytes
            if scan.trailing_bytes:
                self._findings.note_tail(segment, scan)
        self._look_at_end(producers, end_offset)
        self._look_at_epochs(epochs, end_offset)
        return end_offset

    def _first_entries(self) -> Sequence[ProducerEntry]:
        """The state that the loader begins with: of the newest readable snapshot that is above the
        log start's checkpoint and not above the first segment.
        """
        first = self._partition.segments[0].base_offset
        usable = [o for o in self._partition.snapshot_offsets if self._log_start < o <= first]
        for offset in sorted(usable, reverse=True):
            path = path_in(self._partition.path, producer_snapshot_file_name(offset))
            try:
                data = read_small_file(Path(path), MAX_SNAPSHOT_BYTES)
                return parse_producer_snapshot(data, path=path)
            except (CorruptSnapshotError, FileNotFoundError):
                continue
        return ()

    def _known_epochs(self) -> tuple[list[EpochEntry] | None, str]:
        """The leader epochs of the checkpoint, None without one; and why it cannot be read."""
        try:
            return read_leader_epochs(self._partition.path), ""
        except CorruptCheckpointError as error:
            return None, error.reason

    def _look_at_epochs(self, epochs: LeaderEpochReplay, end_offset: int) -> None:
        """Epochs that begin at the log's end are no difference: an elected leader that has written
        nothing yet has one, and a broker's recovery drops it.
        """
        known, unreadable = self._known_epochs()
        due = epochs.entries(self._log_start, end_offset)
        in_log = LeaderEpochReplay(known or ()).entries(self._log_start, end_offset)
        if in_log == due and not unreadable:
            return
        reason = unreadable or (MISSING if known is None else f"{known}, due is {due}")
        self._findings.note(LEADER_EPOCH_CHECKPOINT_FILE, reason, pack_leader_epoch_checkpoint(due))

    @property
    def _log_start(self) -> int:
        return self._partition.checkpoints.log_start or 0

    def _enter(
        self, segment: SegmentInfo, producers: RecoveredProducers, *, is_first: bool
    ) -> None:
        """The state at the segment's base, as the loader reads it back from the snapshot it wrote
        at the end of the one before.
        """
        base = segment.base_offset
        # Compared before producers expire: the loader wrote this snapshot at the end of the segment
        # before, and expires them only when it reads it back.
        if producers.end_offset == base and not is_first:
            self._look_at_snapshot(base, producers)
        self._read_back(producers, -1 if is_first else self._log_start)
        if producers.end_offset != base or is_first:
            self._look_at_snapshot(base, producers)
        producers.end_offset = base

    def _read_back(self, producers: RecoveredProducers, log_start: int) -> None:
        """What the loader has after it read the newest snapshot: one at or below the log start it
        has removed, and who has expired it leaves out.
        """
        # As the loader: a snapshot at or below the log start was removed, so that it begins with
        # nothing.
        if producers.end_offset <= log_start:
            producers.restart(())
        producers.expire(self._task.now_ms, self._task.config.producer_id_expiration_ms)

    def _look_at_end(self, producers: RecoveredProducers, end_offset: int) -> None:
        """The snapshot at the log's end, and those that the loader removes."""
        # Snapshots at segment bases stay, and one at the log's end; all others the loader removes.
        wanted = {segment.base_offset for segment in self._partition.segments} | {end_offset}
        if end_offset != self._partition.segments[-1].base_offset:
            if producers.end_offset != end_offset:
                self._read_back(producers, self._partition.log_start_offset)
            self._look_at_snapshot(end_offset, producers)
        for offset in self._partition.snapshot_offsets:
            if offset > self._partition.log_start_offset and offset not in wanted:
                reason = f"no segment begins there, the log ends at {end_offset}"
                self._findings.note_removal(producer_snapshot_file_name(offset), reason)

    def _look_at_snapshot(self, offset: int, producers: RecoveredProducers) -> None:
        if offset <= self._partition.log_start_offset:
            return
        name = producer_snapshot_file_name(offset)
        entries = producers.entries()
        reason = snapshot_difference(path_in(self._partition.path, name), entries, offset)
        if reason is not None:
            self._findings.note(name, reason, pack_producer_snapshot(entries))

    def _look_at_indexes(self, segment: SegmentInfo, scan: ScannedSegment) -> None:
        for kind, data in (
            (LogFileKind.OFFSET_INDEX, scan.indexes.pack_offset_index()),
            (LogFileKind.TIME_INDEX, scan.indexes.pack_time_index()),
            (LogFileKind.TRANSACTION_INDEX, pack_transaction_index(scan.aborted_transactions)),
        ):
            name = f"{segment.base_offset:020d}{kind}"
            reason = index_difference(path_in(self._partition.path, name), data, kind)
            if reason is not None:
                self._findings.note(name, reason, data)
