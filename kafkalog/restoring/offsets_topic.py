"""The `__consumer_offsets` of a new cluster: what groups have committed, as a log that is restored
as any other.

A group's records are in the partition of its name, by Java's hash of it. Only commits are written:
members and generations are the source's, and a group without a record of its own is one that
anybody may join, by either protocol. A commit counts as made now: by the time when it was made a
broker would let it expire.

Source: Kafka GroupCoordinatorService.partitionFor, Utils.abs, OffsetMetadataManager.replay,
OffsetExpirationConditionImpl.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.format.file_names import log_file_name
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.log_dir import open_log_dir
from kafkalog.messages.encoder import encode_message
from kafkalog.messages.group_records import OFFSET_COMMIT
from kafkalog.restoring.groups import GroupOffset, GroupScript

# Of a cluster that has never had a group: offsets.topic.num.partitions.
_PARTITIONS = 50
_BATCH_RECORDS = 1000
# The newest that is not flexible: all brokers since 2.1 read it.
_VERSION = 3


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """Its partitions, as a source; and which group is where."""

    partitions: tuple[PartitionInventory, ...]
    scripts: tuple[GroupScript, ...]


def offsets_topic(
    groups: Sequence[GroupScript],
    source: LogInventory,
    count: int | None,
    directory: Path,
    now_ms: int,
) -> OffsetsTopic:
    """Write it below a new directory. count: of partitions, None for as many as the source's."""
    known = [
        each.topic_partition.partition
        for each in source
        if each.topic_partition.topic == OFFSETS_TOPIC and each.kind is PartitionKind.LIVE
    ]
    count = count or max(known, default=_PARTITIONS - 1) + 1
    placed = [
        replace(each, offsets_partition=offsets_partition(each.group, count)) for each in groups
    ]
    for number in range(count):
        path = directory / f"{OFFSETS_TOPIC}-{number}"
        path.mkdir(parents=True)
        own = [each for each in placed if each.offsets_partition == number]
        with (path / log_file_name(0)).open("wb") as file:
            file.writelines(_batches(own, now_ms))
    found = open_log_dir(directory, reads_buckets=False)
    return OffsetsTopic(tuple(found), tuple(placed))


def offsets_partition(group: str, count: int) -> int:
    """In which partition a group's records are."""
    units = group.encode("utf-16-be", "surrogatepass")
    number = 0
    for (unit,) in struct.iter_unpack(">H", units):
        number = (31 * number + unit) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    # Kafka's abs of the smallest number, which has no positive one, is 0.
    return 0 if signed == -(1 << 31) else abs(signed) % count


def _batches(groups: Sequence[GroupScript], now_ms: int) -> Iterator[bytes]:
    rows = [(each.group, row) for each in groups for row in each.rows]
    for start in range(0, len(rows), _BATCH_RECORDS):
        yield pack_batch(
            [
                Record(start + n, now_ms, _key(group, row), _value(row, now_ms))
                for n, (group, row) in enumerate(rows[start : start + _BATCH_RECORDS])
            ],
            partition_leader_epoch=0,
        )


def _key(group: str, row: GroupOffset) -> bytes:
    fields = {"group": group, "topic": row.topic, "partition": row.partition}
    return struct.pack(">h", OFFSET_COMMIT.number) + encode_message(OFFSET_COMMIT.key, 0, fields)


def _value(row: GroupOffset, now_ms: int) -> bytes:
    fields = {
        "offset": row.offset, "leaderEpoch": row.leader_epoch, "metadata": row.metadata,
        "commitTimestamp": now_ms,
    }  # fmt: skip
    return struct.pack(">h", _VERSION) + encode_message(OFFSET_COMMIT.value, _VERSION, fields)
