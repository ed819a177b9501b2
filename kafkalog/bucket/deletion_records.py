"""What the deletion of segments writes into `__remote_log_metadata` of a cluster that is gone: as
its leaders would, that it begins, before an object goes, and that it has ended.

The records go behind the last one of the partition that has the segment's others, of all its
replicas here that go furthest; one that lags behind has none of them, as after any failover. The
run's journal has where they lie: `undo` takes them away, before the objects come back, so that
nothing that is back is ever said to be deleted. The high watermark in the checkpoint stays: a
leader moves it.

Source: Kafka RemoteLogManager.RLMExpirationTask.deleteRemoteLogSegment,
RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState.isValidTransition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from kafkalog.bucket.metadata_log import UPDATE_RECORD, batches_of
from kafkalog.clock import now_ms
from kafkalog.errors import LogChangedError
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.messages.remote_log_records import RemoteLogSegmentState, encode_remote_log_record
from kafkalog.reading.remote_copies import SegmentCopy, read_metadata_partitions
from kafkalog.runs.journal import append_events
from kafkalog.swap.appended_batches import (
    AppendedBatches,
    append_batches,
    take_back,
    why_not_taken_back,
)
from kafkalog.swap.log_dir_lock import LogDirLock, check_no_writer, log_dirs_to_lock

EVENT = "appending"
_BEGUN = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
_ENDED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED


@dataclass(slots=True)
class _Partition:
    """One partition of the topic: its replicas that go furthest, and where the next record goes."""

    replicas: list[PartitionInventory]
    end_offset: int
    leader_epoch: int


@dataclass(slots=True)
class DeletionRecords:
    """Within, the log dirs that have the topic are locked. `without_objects`: segments whose
    deletion an earlier run began, and of which nothing is there any more."""

    inventory: LogInventory
    max_batch_bytes: int
    without_objects: Collection[str] = ()
    _copies: dict[str, tuple[int, SegmentCopy]] = field(default_factory=dict)
    _partitions: dict[int, _Partition] = field(default_factory=dict)
    _locks: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> DeletionRecords:
        """LogDirLockedError, and as `read_metadata_partitions`."""
        replicas: dict[int, list[PartitionInventory]] = {}
        for each in self.inventory:
            name = each.topic_partition
            if name.topic == REMOTE_LOG_TOPIC and each.kind is PartitionKind.LIVE:
                replicas.setdefault(name.partition, []).append(each)
        own = [each for mine in replicas.values() for each in mine]
        with ExitStack() as locks:
            for log_dir in log_dirs_to_lock(own):
                locks.enter_context(LogDirLock(log_dir))
            check_no_writer(each.path for each in own)
            self._locks = locks.pop_all()
        self._partitions = {number: _furthest(mine) for number, mine in replicas.items()}
        known = read_metadata_partitions(own, self.max_batch_bytes)
        self._copies = {
            segment_id: (number, copy)
            for number, found in known.items()
            for segment_id, copy in found.copies.items()
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._locks.close()

    def begin(self, run_path: Path, segment_ids: Iterable[str]) -> None:
        """Their deletion begins, unless it did before. LogChangedError for a partition that does
        not end as a log does, OSError: nothing may be deleted then."""
        new = (each for each in segment_ids if self._copies[each][1].state is not _BEGUN)
        self._write(run_path, new, _BEGUN)

    def end(self, run_path: Path, segment_ids: Iterable[str]) -> None:
        """All of their objects are gone; as `begin`."""
        self._write(run_path, [*segment_ids, *self.without_objects], _ENDED)

    def _write(
        self, run_path: Path, segment_ids: Iterable[str], state: RemoteLogSegmentState
    ) -> None:
        values: dict[int, list[tuple[int, bytes]]] = {}
        for segment_id in segment_ids:
            number, copy = self._copies[segment_id]
            at_ms = now_ms()
            values.setdefault(number, []).append((at_ms, _record(copy, state, at_ms)))
        for number, own in values.items():
            partition = self._partitions[number]
            batches = list(batches_of(own, partition.end_offset, partition.leader_epoch))
            data = b"".join(batch for _, _, batch in batches)

            def note(appended: AppendedBatches) -> None:
                append_events(run_path, [{"event": EVENT, **appended.to_json()}], at_ms=now_ms())

            for replica in partition.replicas:
                append_batches(replica, data, note)
            partition.end_offset = batches[-1][1]


def _furthest(replicas: list[PartitionInventory]) -> _Partition:
    end = max(each.log_end_offset for each in replicas)
    own = [each for each in replicas if each.log_end_offset == end]
    epochs = (epoch for epoch, _ in read_leader_epochs(own[0].path) or ())
    return _Partition(own, end, max(epochs, default=0))


def _record(copy: SegmentCopy, state: RemoteLogSegmentState, at_ms: int) -> bytes:
    topic = {"name": copy.topic, "id": copy.topic_id, "partition": copy.partition}
    fields = {
        "remoteLogSegmentId": {"topicIdPartition": topic, "id": copy.segment_id},
        "brokerId": copy.broker_id,
        "eventTimestampMs": at_ms,
        "customMetadata": None,
        "remoteLogSegmentState": state.value,
    }
    return encode_remote_log_record(UPDATE_RECORD, fields)


def take_records_back(events: Iterable[Mapping[str, Any]]) -> None:
    """Take away what a run appended, the last first; all of it or nothing. It may be done again.

    LogDirLockedError; LogChangedError where something else lies there now, or behind it; OSError.
    """
    appended = [AppendedBatches.from_json(each) for each in events if each.get("event") == EVENT]
    with ExitStack() as locks:
        for log_dir in dict.fromkeys(each.log_dir for each in appended):
            locks.enter_context(LogDirLock(log_dir))
        check_no_writer({str(Path(each.path).parent) for each in appended})
        ends: dict[str, int] = {}
        for each in appended:
            ends[each.path] = max(ends.get(each.path, 0), each.end)
        for each in appended:
            reason = why_not_taken_back(each, ends[each.path])
            if reason is not None:
                raise LogChangedError(f"it stays: {reason}", path=each.path, position=each.position)
        for each in reversed(appended):
            take_back(each)
