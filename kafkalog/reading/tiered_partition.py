"""One partition with its segments in remote storage, for questions about it alone."""

from __future__ import annotations

from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.listing import entries_in
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.remote_segments import Note, with_remote_segments
from kafkalog.log.topic_partition import parse_partition_dir_name
from kafkalog.reading.remote_log_events import copy_states
from kafkalog.remote.paths import RemoteStorage
from kafkalog.remote.stores import joined


def with_remote(
    partition: PartitionInventory, storage: RemoteStorage, *, note: Note | None = None
) -> PartitionInventory:
    """The partition as a broker serves it. What counts of remote storage the records of
    `__remote_log_metadata` say that lie in the same log dir, and those in leader epochs. Raises as
    `with_remote_segments`."""
    found = [
        joined(partition.log_dir, entry.name)
        for entry in entries_in(partition.log_dir)
        if entry.is_dir() and _is_remote_log_metadata(entry.name)
    ]
    inventory = open_log_dir(*found) if found else LogInventory(())
    return with_remote_segments([partition], storage, copy_states(inventory), note=note)[0]


def _is_remote_log_metadata(name: str) -> bool:
    parsed = parse_partition_dir_name(name)
    return parsed is not None and parsed.topic_partition.topic == REMOTE_LOG_TOPIC
