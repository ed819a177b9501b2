"""What of tiered partitions is in remote storage, as the log dirs of a run tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.messages.remote_log_records import RemoteLogSegmentState
from kafkalog.planning.local_retention import highest_uploaded
from kafkalog.planning.remote_retention import CopyStage, Epochs, RemoteLog, RemoteSegment
from kafkalog.remote.layouts import find_directories
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.remote.stored_segments import stored_segments
from kafkalog.requests.run_request import RunRequest

if TYPE_CHECKING:
    from kafkalog.reading.remote_copies import MetadataPartition, SegmentCopy

_STAGES = {
    RemoteLogSegmentState.COPY_SEGMENT_STARTED: CopyStage.STARTED,
    RemoteLogSegmentState.COPY_SEGMENT_FINISHED: CopyStage.FINISHED,
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED: CopyStage.DELETING,
}


class Uploads:
    """`__remote_log_metadata` is read once, and only if somebody asks. With `storage` segments that
    have no object there are none, but for those whose deletion was begun: it has to end."""

    def __init__(self, request: RunRequest, storage: RemoteStorage = NO_REMOTE_STORAGE) -> None:
        self._request = request
        self._storage = storage
        self._stored: dict[str | None, set[str | None]] = {}
        self._known: dict[int, MetadataPartition] | None = None

    def of(self, partition: PartitionInventory) -> int | None:
        """The last offset of a partition that is in remote storage, -1 for nothing; None where the
        log dirs have no record of it, or not all records of that partition of the topic."""
        epochs, copies = self._epochs(partition), self._copies(partition)
        if epochs is None or copies is None:
            return None
        finished = [c for c in copies if c.is_finished and c.end_offset is not None]
        return highest_uploaded(epochs, [(c.end_offset or 0, c.leader_epochs) for c in finished])

    def log(self, partition: PartitionInventory) -> RemoteLog | None:
        """What decides about a partition's segments in remote storage; None as of `of`."""
        epochs, copies, highest = (
            self._epochs(partition),
            self._copies(partition),
            self.of(partition),
        )
        if epochs is None or copies is None or highest is None:
            return None
        return RemoteLog(
            tuple(each for c in self._there(copies) if (each := _segment(c)) is not None),
            epochs,
            partition.log_start_offset,
            partition.log_end_offset,
            sum(s.size_in_bytes for s in partition.segments if s.base_offset >= highest),
            partition.topic_id or "",
            counts_below_start=not self._storage.places,
        )

    def _there(self, copies: Sequence[SegmentCopy]) -> list[SegmentCopy]:
        """Those with an object in remote storage, where that is known; without any of the topic's
        it may be another storage."""
        if not self._storage.places or not copies:
            return list(copies)
        topic_id = copies[0].topic_id
        if topic_id not in self._stored:
            found = (
                directory
                for place in self._storage.places
                for directory in find_directories(
                    place, self._storage.layout, lambda own: own == topic_id
                )
            )
            self._stored[topic_id] = {
                s.segment_id for s in stored_segments(found) if s.topic_id == topic_id
            }
        stored = self._stored[topic_id]
        return [
            copy
            for copy in copies
            if copy.segment_id in stored
            or (stored and copy.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
        ]

    def _epochs(self, partition: PartitionInventory) -> Epochs | None:
        try:
            return tuple(read_leader_epochs(partition.path) or ())
        except (KafkaLogError, OSError):
            return None

    def _copies(self, partition: PartitionInventory) -> list[SegmentCopy] | None:
        if self._known is None:
            # Needs Arrow and all that reads records, a fifth of what starts; few logs are tiered.
            from kafkalog.reading.remote_copies import read_metadata_partitions

            self._known = read_metadata_partitions(
                self._request.open_all(), self._request.max_batch_bytes
            )
        place = partition.topic_id, partition.topic_partition.partition
        own = [
            (metadata, copies)
            for metadata in self._known.values()
            if (
                copies := [
                    c for c in metadata.copies.values() if (c.topic_id, c.partition) == place
                ]
            )
        ]
        if len(own) != 1 or own[0][0].incomplete is not None:
            return None
        return own[0][1]


def _segment(copy: SegmentCopy) -> RemoteSegment | None:
    """None of one that is gone, or was never announced."""
    stage = _STAGES.get(copy.state)
    if stage is None or copy.start_offset is None or copy.end_offset is None:
        return None
    return RemoteSegment(
        copy.segment_id, copy.start_offset, copy.end_offset, copy.size_in_bytes,
        copy.max_timestamp_ms, copy.leader_epochs, stage,
    )  # fmt: skip
