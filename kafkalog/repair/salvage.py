"""Valid copies of damaged partitions, written elsewhere: what is sound of each segment, indexes and
producer snapshots as a broker would rebuild them, and a manifest of what was left out.

    OUTPUT/salvage.json                      the manifest
    OUTPUT/log-start-offset-checkpoint       where a log begins behind its first segment
    OUTPUT/orders-3/…                        a partition directory that a broker loads

Nothing is ever written where the damaged files are. Offsets stay what they were, so what is left
out is a gap, as compaction leaves them. The high watermark, the identity of the log dir and all
else that belongs to a broker is not copied.

A marker that was left out leaves its transaction open, or ends it with a later one of the same
producer: the batches are sound, but which of them read_committed shows may have changed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from kafkalog.errors import LogChangedError, describe_error, fault_text
from kafkalog.format.checkpoints import (
    LOG_START_OFFSET_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    log_file_name,
    producer_snapshot_file_name,
)
from kafkalog.format.limits import MOST_MAX_BATCH_BYTES
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.missing_range import MissingCause, MissingRange
from kafkalog.log.missing_ranges import missing_ranges
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import DONE, SOUND, RecoverTask
from kafkalog.repair.sound_batches import LeftOut, SegmentWalk
from kafkalog.swap.local_files import LocalFiles

MANIFEST_FILE = "salvage.json"

SALVAGED = "salvaged"


@dataclass(frozen=True, slots=True)
class SalvagedSegment(JsonFacts):
    """One segment and its copy: what was taken over, and what was left out."""

    base_offset: int
    path: str
    bytes_before: int
    bytes_after: int
    batches_count: int
    records_count: int
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class SalvagedPartition(JsonFacts):
    """One partition. `reason` says why it failed; its copy is not to be used then. `missing`: what
    no file of it has any more. `fault`: a traceback that only a fault of ours can have.
    """

    topic: str
    partition: int
    path: str
    output: str
    status: str
    reason: str
    log_start_offset: int
    log_end_offset: int | None
    segments: tuple[SalvagedSegment, ...] = ()
    missing: tuple[MissingRange, ...] = ()
    fault: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether everything was there, and was taken over."""
        is_left_out = any(segment.left_out for segment in self.segments)
        return self.status == SALVAGED and not is_left_out and not self.lost

    @property
    def lost(self) -> list[MissingRange]:
        """Of what is missing, what is proven and not just in remote storage."""
        return [missing for missing in self.missing if missing.cause is MissingCause.LOST]


def salvage_partition(
    partition: PartitionInventory,
    output: Path,
    *,
    now_ms: int,
    files: LocalFiles,
    run_id: str,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> SalvagedPartition:
    """Copy what is sound of a partition to `output`/NAME and rebuild what lies beside it there.

    Batches above the limit are copied in parts. Damage is in the result, and so is what could not
    be done, a fault of ours too: nothing is raised for one partition.
    """
    copy = output / Path(partition.path).name
    segments: list[SalvagedSegment] = []
    missing: list[MissingRange] = []
    status, reason, fault, log_end_offset = SALVAGED, "", "", None
    log_start = partition.log_start_offset
    try:
        # What damage hides is in `left_out` of the segment it is in; this is what no file has.
        missing = [m for m in missing_ranges(partition) if m.cause is not MissingCause.DAMAGE]
        copy.mkdir(parents=True)
        _copy_small_files(partition, copy, files)
        # A segment's batches must lie below the next one's base: those that do not are damage, or
        # copies.
        later_bases = [segment.base_offset for segment in partition.segments[1:]]
        for segment, end_offset in zip_longest(partition.segments, later_bases):
            walk = SegmentWalk(segment, end_offset, max_batch_bytes)
            segments.append(_copy_segment(walk, copy, files))
        files.sync_directory(str(copy))
        log_end_offset, log_start = _rebuild(partition, copy, now_ms, files, run_id)
    except Exception as error:
        status, reason, fault = FAILED, describe_error(error, partition.path), fault_text(error)
    return SalvagedPartition(
        topic=partition.topic_partition.topic,
        partition=partition.topic_partition.partition,
        path=partition.path,
        output=str(copy),
        status=status,
        reason=reason,
        log_start_offset=log_start,
        log_end_offset=log_end_offset,
        segments=tuple(segments),
        missing=tuple(missing),
        fault=fault,
    )


def _copy_segment(walk: SegmentWalk, copy: Path, files: LocalFiles) -> SalvagedSegment:
    segment = walk.segment
    path = str(copy / log_file_name(segment.base_offset))
    bytes_after = 0
    fd = files.create(path)
    try:
        for data in walk.batches():
            files.write(fd, data)
            bytes_after += len(data)
        os.fchmod(fd, 0o644)
        # retention and legacy tombstones go by it
        files.set_modification_time(fd, segment.modification_time_ms)
        files.sync_file(fd)
    finally:
        os.close(fd)
    return SalvagedSegment(
        base_offset=segment.base_offset,
        path=segment.path,
        bytes_before=segment.size_in_bytes,
        bytes_after=bytes_after,
        batches_count=walk.batches_count,
        records_count=walk.records_count,
        left_out=tuple(walk.left_out),
    )


def _copy_small_files(partition: PartitionInventory, copy: Path, files: LocalFiles) -> None:
    """Topic id and leader epochs as they are, and the producers known before the first segment."""
    names = [PARTITION_METADATA_FILE, LEADER_EPOCH_CHECKPOINT_FILE]
    if partition.segments:
        names.append(producer_snapshot_file_name(partition.segments[0].base_offset))
    for name in names:
        source = Path(partition.path) / name
        if source.is_file():
            path = str(copy / name)
            files.replace_contents(path, source.read_bytes(), f"{path}.tmp")


def _rebuild(
    partition: PartitionInventory, copy: Path, now_ms: int, files: LocalFiles, run_id: str
) -> tuple[int | None, int]:
    """Indexes and snapshots of the copy; its log end and log start."""
    found = reopen_partition(str(copy))
    if found is None:
        raise LogChangedError("the copy cannot be read", path=str(copy))
    # A broker deletes a log that ends before its start.
    log_start = min(partition.log_start_offset, found.log_end_offset)
    if log_start > found.log_start_offset:
        _note_log_start(partition, copy.parent, log_start, files)
        found = reopen_partition(str(copy)) or found
    task = RecoverTask(
        partition=found,
        config=LogConfig.from_overrides(()),
        now_ms=now_ms,
        run_id=run_id,
        apply=True,
        lock_holder=os.getpid(),
        keeps_undo=False,
        # what was copied is there, however large
        max_batch_bytes=MOST_MAX_BATCH_BYTES,
    )
    result = recover_partition(task, files)
    if result.status not in (DONE, SOUND):
        raise LogChangedError(f"its indexes cannot be built: {result.reason}", path=str(copy))
    return found.log_end_offset, log_start


def _note_log_start(
    partition: PartitionInventory, output: Path, log_start: int, files: LocalFiles
) -> None:
    path = output / LOG_START_OFFSET_FILE
    lines = parse_offset_checkpoint(path.read_bytes()) if path.exists() else {}
    name = partition.topic_partition
    lines[name.topic, name.partition] = log_start
    files.replace_contents(str(path), pack_offset_checkpoint(lines), f"{path}.tmp")
