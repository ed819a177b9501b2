"""What of tiered partitions is in remote storage, as the log dirs of a run tell it."""

from __future__ import annotations

from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.planning.local_retention import highest_uploaded
from kafkalog.reading.remote_copies import MetadataPartition, read_metadata_partitions
from kafkalog.requests.run_request import RunRequest


class Uploads:
    """`__remote_log_metadata` is read once, and only if somebody asks."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._known: dict[int, MetadataPartition] | None = None

    def of(self, partition: PartitionInventory) -> int | None:
        """The last offset of a partition that is in remote storage, -1 for nothing; None where the
        log dirs have no record of it, or not all records of that partition of the topic."""
        if self._known is None:
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
        try:
            epochs = read_leader_epochs(partition.path) or ()
        except (KafkaLogError, OSError):
            return None
        return highest_uploaded(
            epochs,
            [
                (copy.end_offset, copy.leader_epochs)
                for copy in own[0][1]
                if copy.is_finished and copy.end_offset is not None
            ],
        )
