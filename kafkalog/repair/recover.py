"""Rebuild what lies beside the segments of one partition: the three indexes, the producer snapshots
and the leader epochs, as a broker does when it recovers the log after a crash, from its first byte.

Strategy: one pass over the batches in offset order. Each has its CRC checked; their headers and the
markers among them give the indexes of each segment and the producer state at its end. What differs
from the files that are there is a finding; with `apply` the right file is written under a scratch
name. Nothing is put in place before the whole log was found sound: then each file replaces its
predecessor by one rename. Every file is right by itself, so dying between two renames leaves some
old and some new, and another run does the rest. A torn tail is cut last: until then the new indexes
lead to no place behind the cut. What is replaced, removed or cut is kept for undo (replacement.py).

A broker's recovery cuts the log at the first batch that is damaged and deletes the segments behind
it. That loses what could be read, so such a partition is refused here, with what a broker would do.

Source: Kafka LogLoader.recoverSegment, LogSegment.recover, UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from kafkalog.cleaning.new_files import check_ownership
from kafkalog.errors import (
    LogChangedError,
    LogCleaningRefusedError,
    LogSegmentOffsetOverflowError,
    describe_error,
    fault_text,
)
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.statuses import ended_by
from kafkalog.repair.file_differences import (
    MISSING,
)
from kafkalog.repair.log_scan import LogScan
from kafkalog.repair.recover_result import (
    CREATE,
    CUT,
    DONE,
    REBUILD,
    REMOVE,
    REPLACE,
    SOUND,
    SPLIT,
    FileFinding,
    RecoverResult,
    RecoverTask,
)
from kafkalog.repair.segment_scan import ScannedSegment
from kafkalog.swap.file_facts import (
    checksum_of,
    facts_of,
    facts_with_checksum,
    file_facts,
    last_nonzero,
)
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.journal import RECOVER
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.log_dir_lock import check_lock_holder
from kafkalog.swap.merged_replacement import merged
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.replacement import (
    CutTail,
    Replacement,
    begin_replacement,
    end_replacement,
    read_earlier,
    read_record,
)
from kafkalog.swap.scratch import Scratch, new_attempt_id
from kafkalog.swap.segment_split import Splitting, split_segment
from kafkalog.swap.swap import remove_attempt


def recover_partition(task: RecoverTask, files: LocalFiles | None = None) -> RecoverResult:
    """Look at one partition, with `task.apply` rebuild it; every way to end is a RecoverResult."""
    started = time.monotonic()
    recovery = _Recovery(task, files or LocalFiles())
    reason = fault = ""
    try:
        status = recovery.run()
    except Exception as error:
        status, reason, fault = ended_by(error, task.partition.path)
    try:
        recovery.clear()
    except Exception as error:
        reason += f"; cleaning up failed as well: {describe_error(error, task.partition.path)}"
        fault = fault or fault_text(error)
    return RecoverResult(
        topic=task.partition.topic_partition.topic,
        partition=task.partition.topic_partition.partition,
        path=task.partition.path,
        log_dir=task.partition.log_dir,
        status=status,
        reason=reason,
        files=tuple(recovery.findings),
        segments_count=len(task.partition.segments),
        batches_count=recovery.counts[0],
        bytes_read=recovery.counts[1],
        log_end_offset=recovery.log_end_offset,
        seconds=round(time.monotonic() - started, 3),
        fault=fault,
        replaced=recovery.replaced,
    )


class _Recovery:
    def __init__(self, task: RecoverTask, files: LocalFiles) -> None:
        self._task = task
        self._files = files
        self._partition = task.partition
        self._scratch = Scratch(task.partition.path, task.run_id)
        self._attempt_id = new_attempt_id()
        self._buffers = ChunkBuffers()
        self._scan: LogScan | None = None
        self._written: list[str] = []
        self._splits: list[FileFinding] = []
        self._cut: tuple[SegmentInfo, int] | None = None
        self._dir_mtime_ns = Path(task.partition.path).stat().st_mtime_ns if task.apply else 0
        self.replaced: Replacement | None = None
        self.findings: list[FileFinding] = []
        self.log_end_offset: int | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """Batches that were checked, and their bytes."""
        return (0, 0) if self._scan is None else (self._scan.batches_count, self._scan.bytes_read)

    def run(self) -> str:
        """All of it; the status. What it raises left every live file as it was, unless the renames
        had begun.

        A segment that must be split is, as by Kafka's loader, and all is begun again. A dry run
        ends there: what would lie beside its parts is not known before.
        """
        while True:
            try:
                return self._run()
            except LogSegmentOffsetOverflowError as error:
                name, reason = Path(error.path or "").name, error.reason
                split = FileFinding(name, SPLIT, f"{reason}; then all is looked at again")
                self.findings = [*self._splits, split]
                if not self._task.apply:
                    return REBUILD
                # Split and begun again: what was scanned so far was of segments that are not there
                # any more.
                self._splits.append(split)
                self._split(error.path)

    def _split(self, path: str | None) -> None:
        self.clear()
        (segment,) = [s for s in self._partition.segments if s.path == path]
        split_segment(
            segment,
            Splitting(
                self._scratch,
                self._attempt_id,
                self._task.config,
                self._files,
                self._buffers,
                self._check_before_swap,
                self._nothing_replaced(),
            ),
        )
        partition = reopen_partition(self._partition.path)
        if partition is None:
            raise LogChangedError("cannot be read any more", path=self._partition.path)
        self._partition = partition

    def _run(self) -> str:
        self.findings = list(self._splits)
        self._scan = scan = LogScan(self._task, self._partition, self, self._buffers)
        if not self._partition.segments:
            return SOUND
        if self._task.apply:
            self._check_logs()
        self.log_end_offset = scan.run()
        if self._partition.problems:
            raise LogCleaningRefusedError("; ".join(self._partition.problems))
        if not self.findings:
            return SOUND
        if not self._task.apply:
            return REBUILD
        self._swap()
        return DONE

    def clear(self) -> None:
        """Remove what this attempt wrote and did not put in place."""
        self._written = []
        if not self._task.apply:
            return
        remove_attempt(self._scratch, self._attempt_id, self._files)
        # A swap that this attempt began and did not end is taken back, or to its end, here and now:
        # the partition is left in neither state.
        begun = read_record(self._scratch.swap_record)
        if begun is not None and begun.attempt_id == self._attempt_id:
            with locked_partition(self._scratch):
                resolve_interrupted_swap(self._partition.path, self._files)

    # -- findings --------------------------------------------------------------------------------

    def note(self, name: str, reason: str, data: bytes) -> None:
        """A file that is to have these bytes: with `apply` written under a scratch name."""
        action = CREATE if reason == MISSING else REPLACE
        self.findings.append(FileFinding(name, action, reason))
        if not self._task.apply:
            return
        owner = self._owner_of(name)
        self._written.append(name)
        self._files.write_new(self._scratch.output(self._attempt_id, name), data, owner)

    def _owner_of(self, name: str) -> os.stat_result:
        """Whose file it replaces; where there is none, whose log it belongs to."""
        replaced = Path(self._partition.path, name)
        owner = (replaced if replaced.exists() else Path(self._partition.segments[0].path)).stat()
        check_ownership(owner, str(replaced))
        return owner

    def note_removal(self, name: str, reason: str) -> None:
        """A file that is to go."""
        self.findings.append(FileFinding(name, REMOVE, reason))

    def note_tail(self, segment: SegmentInfo, scan: ScannedSegment) -> None:
        """Bytes behind the last whole batch of the last segment: with `apply` cut off at last."""
        reason = f"{scan.trailing_bytes} bytes behind the last whole batch, at {scan.valid_bytes}"
        self.findings.append(FileFinding(Path(segment.path).name, CUT, reason))
        links = os.lstat(segment.path).st_nlink
        if self._task.apply and links > 1:
            raise LogCleaningRefusedError(
                f"it has {links} names (hard links): cutting it would cut the others as well",
                path=segment.path,
            )
        self._cut = segment, scan.valid_bytes

    # -- putting in place ------------------------------------------------------------------------

    def _check_before_swap(self) -> None:
        self._check_logs()
        check_lock_holder(self._partition.log_dir, self._task.lock_holder)

    def _check_logs(self) -> None:
        """LogChangedError unless the `.log` files and the log dir are those the task is about. The
        other files may have been replaced by another attempt of the same task.
        """
        found = reopen_partition(self._partition.path)
        if found is None or _identity(found) != _identity(self._partition):
            raise LogChangedError(
                "log files, checkpoints or log dir are not those that were looked at: another "
                "host's disk under the same path, or somebody wrote meanwhile",
                path=self._partition.path,
            )

    def _swap(self) -> None:
        directory = self._partition.path
        with locked_partition(self._scratch):
            # Reading took its time: once more, with the lock held, whether the files are those that
            # were read.
            self._check_before_swap()
            record = self._record()
            begin_replacement(self._scratch, record, self._files)
            self.replaced = record
            # Each file by one rename over the old one: a broker that starts in between finds old or
            # new ones, each whole, and checks or rebuilds them as after any crash.
            for name in self._written:
                source = self._scratch.output(self._attempt_id, name)
                self._files.rename(source, path_in(directory, name))
            self._written = []
            for finding in self.findings:
                if finding.action == REMOVE:
                    self._files.remove(path_in(directory, finding.name))
            self._files.sync_directory(directory)
            # The only change to a `.log` comes last, when all that lies beside it is right for what
            # stays.
            if record.cut is not None:
                self._cut_tail(record.cut)
            end_replacement(self._scratch, record, self._files)

    def _record(self) -> Replacement:
        """What will be replaced, and what an attempt that died replaced before."""
        directory = self._partition.path
        removed = [finding.name for finding in self.findings if finding.action == REMOVE]
        kept = [n for n in (*self._written, *removed) if os.path.lexists(path_in(directory, n))]
        outputs = {name: self._scratch.output(self._attempt_id, name) for name in self._written}
        record = replace(
            self._nothing_replaced(),
            kept=facts_of(directory, kept),
            made=tuple(facts_with_checksum(path, name) for name, path in outputs.items()),
            cut=self._tail(),
        )
        return merged(read_earlier(self._scratch), record)

    def _nothing_replaced(self) -> Replacement:
        """The record of this attempt, still empty."""
        return Replacement(
            self._task.run_id,
            RECOVER,
            self._attempt_id,
            self._task.keeps_undo,
            self._dir_mtime_ns,
        )

    def _tail(self) -> CutTail | None:
        if self._cut is None:
            return None
        segment, valid_bytes = self._cut
        before = file_facts(segment.path, Path(segment.path).name)
        # Zeros that a broker preallocated are not worth keeping: undo makes them anew by the
        # length.
        kept_bytes = last_nonzero(segment.path, valid_bytes) - valid_bytes
        checksum = checksum_of(segment.path, valid_bytes, kept_bytes)
        return CutTail(valid_bytes, kept_bytes, checksum, before)

    def _cut_tail(self, cut: CutTail) -> None:
        path = path_in(self._partition.path, cut.before.name)
        # An attempt that died has done it already.
        if os.lstat(path).st_size == cut.valid_bytes:
            return
        if self._task.keeps_undo:
            kept = self._scratch.undo(cut.before.name)
            self._files.copy_range(path, cut.valid_bytes, cut.kept_bytes, kept)
            self._files.sync_directory(self._partition.path)
        self._files.truncate(path, cut.valid_bytes, cut.before.mtime_ns)


def _identity(partition: PartitionInventory) -> tuple[object, ...]:
    return (
        [(segment.base_offset, segment.identity) for segment in partition.segments],
        partition.directory_id,
        partition.dir_device,
        partition.dir_inode,
        partition.checkpoints,
    )
