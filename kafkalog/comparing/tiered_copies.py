"""Copies of tiered partitions with what they have in remote storage, which is one for all of them.

A broker's consumers read it as the front of the log, wherever its own segments begin: of two
replicas the one whose local retention came further lacks nothing. What only remote storage has is
the same for every copy, so it is read only from where the first of the copies on the disks begins;
a digest stands for all of a log, and where one is compared all is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.remote_segments import REMOTE, with_remote_segments
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.remote_log_events import copy_states
from kafkalog.remote.paths import RemoteStorage
from kafkalog.replicas.copies import Copy
from kafkalog.replicas.replica import Replica

Copies = Mapping[TopicPartition, tuple[Copy, ...]]


def with_remote_copies(
    copies: Copies, everything: LogInventory, storage: RemoteStorage, *, is_whole: bool = False
) -> dict[TopicPartition, tuple[Copy, ...]]:
    """The copies, those in log dirs with their segments in remote storage. `everything`: what is in
    the log dirs, `__remote_log_metadata` included; `is_whole`: from the log's start on, whatever is
    compared. Raises as `with_remote_segments`."""
    if storage.is_tree:
        raise InvalidConfigError(
            "--remote-layout is for --remote-dir: copies are on brokers' disks"
        )
    if not storage.places:
        return dict(copies)
    own = [each.partition for its in copies.values() for each in its if isinstance(each, Replica)]
    found = with_remote_segments(own, storage, copy_states(everything))
    tiered = {partition.path: partition for partition in found}
    result = {}
    for name, its in copies.items():
        parts = [tiered[each.partition.path] for each in its if isinstance(each, Replica)]
        start = -1 if is_whole or len(parts) < len(its) else _first_local(parts)
        result[name] = tuple(
            replace(each, partition=_from(tiered[each.partition.path], start))
            if isinstance(each, Replica)
            else each
            for each in its
        )
    return result


def _first_local(partitions: Sequence[PartitionInventory]) -> int:
    """Where the first of the copies on the disks begins."""
    local = (s.base_offset for p in partitions for s in p.segments if s.state != REMOTE)
    return min(local, default=-1)


def _from(partition: PartitionInventory, start: int) -> PartitionInventory:
    """Without the segments in remote storage that end in front of an offset; the log start stays
    what it is."""
    dropped = sum(
        before.state == REMOTE and after.base_offset <= start
        for before, after in pairwise(partition.segments)
    )
    return replace(partition, segments=partition.segments[dropped:]) if dropped else partition
