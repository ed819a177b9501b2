"""Whether a log begins below its first segment: by log-start-offset-checkpoint, by the leader
epochs, by indexes without their `.log`.

A broker writes its line of log-start-offset-checkpoint once a minute and when it stops in order. A
crash behind DeleteRecords and retention leaves an older one, so without a stop in order the line
alone proves nothing. Leader epochs are cut as soon as the start moves: those that begin below the
first segment prove it, those that begin with it or above contradict the line. Segments that still
lie there as `.deleted` were taken by retention a moment ago.

Source: Kafka LogManager, UnifiedLog.maybeIncrementLogStartOffset, LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    log_file_name,
    offset_index_file_name,
)
from kafkalog.log.disk_traces import DiskTraces
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.missing_range import MissingCause, MissingPlace, MissingRange, orphan_offsets
from kafkalog.log.own_cluster import is_tiered
from kafkalog.log.remote_segments import REMOTE


def missing_in_front(partition: PartitionInventory, traces: DiskTraces) -> Iterator[MissingRange]:
    """What is missing in front of the first segment: one range, or none."""
    if not partition.segments or partition.kind is not PartitionKind.LIVE:
        return
    first = partition.segments[0]
    line, epochs = traces.log_start, traces.first_epoch_offset
    orphan = min(orphan_offsets(partition), default=None)
    # Three witnesses, the strongest first: the log start in the checkpoint, where the leader epochs
    # begin, and an index that outlived its `.log`.
    if line is not None and line < first.base_offset:
        start, known = line, f"{LOG_START_OFFSET_FILE} says {line}"
    elif line is None and epochs is not None and epochs < first.base_offset:
        start, known = epochs, f"{LEADER_EPOCH_CHECKPOINT_FILE} begins at {epochs}"
    elif orphan is not None and orphan < first.base_offset and orphan >= (line or 0):
        start, known = orphan, f"{offset_index_file_name(orphan)} has no .log"
    else:
        return
    begins = f"{known}, the first segment begins at {first.base_offset}"
    has_orphan = orphan is not None and start <= orphan < first.base_offset
    # Retention removes segments before the checkpoint of log starts is written again (once a
    # minute): after a crash the line may be older than the deletion.
    doubt = _doubt_of_start(partition, traces, first.base_offset, has_orphan=has_orphan)
    cause = MissingCause.STALE if doubt else MissingCause.LOST
    if doubt:
        begins += f"; not proven: {doubt}"
    elif first.state != REMOTE and is_tiered(partition):
        cause = MissingCause.REMOTE
        begins += "; the topic is tiered: remoteDir (remote_dirs) reads them"
    elif first.state != REMOTE and partition.has_remote_segments:
        begins += "; of a tiered topic they are in remote storage (remoteDir)"
    yield MissingRange(MissingPlace.START, start, first.base_offset, cause, begins, partition.path)


def _doubt_of_start(
    partition: PartitionInventory, traces: DiskTraces, first_base: int, *, has_orphan: bool
) -> str:
    """Why offsets in front of the first segment need not have been lost; empty if they were.
    `has_orphan`: an index there outlived its `.log`, which retention takes together.
    """
    going = [s.base_offset for s in partition.other_segments if s.base_offset < first_base]
    if going:
        return f"{log_file_name(max(going))} waits for its deletion"
    epochs = traces.first_epoch_offset
    if epochs is not None:
        return "" if epochs < first_base else f"the leader epochs begin at {epochs}"
    if not traces.is_clean_stop and not has_orphan:
        return "the broker did not stop in order, and a log start can be older than retention"
    return ""
