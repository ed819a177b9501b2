"""Partition directory names.

 <topic>-<partition>                      live; split at the last `-`, topics may hold `-`
 <topic>-<partition>.<uniqueId>-delete    renamed, to be deleted soon
 <topic>-<partition>.<uniqueId>-future    the copy of a replica that moves between log dirs
 <topic>-<partition>.<uniqueId>-stray     no longer assigned to this broker

In -delete and -stray names the topic may be a cut prefix: the whole name is kept within 255
characters.

Source: Kafka LocalLog.parseTopicPartitionName; Topic.validate for the characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from kafkalog.format.constants import MAX_INT32
from kafkalog.log.json_facts import JsonFacts

# Kafka's own characters, so that a name can neither leave the log dir nor break a line of a
# checkpoint.
_LIVE = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")
_RENAMED = re.compile(
    _LIVE.pattern + r"\.(?P<unique_id>[A-Za-z0-9_-]+)-(?P<kind>delete|future|stray)"
)
_SUFFIXES = ("-delete", "-future", "-stray")


class PartitionKind(StrEnum):
    """What a broker takes a partition directory for; only a live one is ever cleaned."""

    LIVE = "live"
    FUTURE = "future"
    DELETE = "delete"
    STRAY = "stray"


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition(JsonFacts):
    """A topic and the number of one of its partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionDirName:
    """A parsed directory name; `unique_id` is None for a live partition."""

    topic_partition: TopicPartition
    kind: PartitionKind
    unique_id: str | None = None


def parse_partition_dir_name(name: str) -> PartitionDirName | None:
    """What the directory `name` (no path) holds, or None if it is no partition's: a broker would
    refuse to start on it.
    """
    renamed = name.endswith(_SUFFIXES)
    match = (_RENAMED if renamed else _LIVE).fullmatch(name)
    if match is None or int(match["partition"]) > MAX_INT32:
        return None
    topic_partition = TopicPartition(match["topic"], int(match["partition"]))
    if renamed:
        return PartitionDirName(topic_partition, PartitionKind(match["kind"]), match["unique_id"])
    return PartitionDirName(topic_partition, PartitionKind.LIVE)


def is_partition_dir_name(name: str) -> bool:
    """Whether `parse_partition_dir_name` would tell what it holds."""
    match = (_RENAMED if name.endswith(_SUFFIXES) else _LIVE).fullmatch(name)
    return match is not None and int(match["partition"]) <= MAX_INT32


def parse_topic_partition(text: str) -> TopicPartition | None:
    """`orders-3` → TopicPartition("orders", 3); None for anything that names no live partition."""
    parsed = parse_partition_dir_name(text)
    return parsed.topic_partition if parsed and parsed.kind is PartitionKind.LIVE else None
