"""What is on storage, as frozen facts: the input of every plan.

A partition's facts carry a token over the identity (size, modification time, inode) of each file a
plan depends on, and over the identity of its log dir. Whoever carries out a plan looks again and
compares: the same path on another host may be another replica, and a file may have grown since. No
file is opened here; `log_dir` fills these values.

Everything can be pickled and travels as JSON (`to_json`, `from_json`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.topic_partition import PartitionKind, TopicPartition
from kafkalog.remote.paths import beside

__all__ = [
    "CLUSTER_METADATA_TOPIC",
    "DeletedFile",
    "FileIdentity",
    "JsonFacts",
    "LogInventory",
    "PartitionCheckpoints",
    "PartitionInventory",
    "PartitionKind",
    "SegmentInfo",
    "TopicPartition",
]


@dataclass(frozen=True, slots=True)
class FileIdentity(JsonFacts):
    """Size in bytes, modification time in ns, inode: a file that changed or was replaced differs in
    one of them.
    """

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class SegmentInfo(JsonFacts):
    """One `.log` file and what lies beside it; nothing in the `.log` itself has been read.

    Index sizes count valid entries only: what a crash left preallocated behind them is not an
    entry. `largest_timestamp_ms` is the last time index entry's, -1 without one, as Kafka knows it
    after loading.
    """

    base_offset: int
    path: str
    state: str  # live, cleaned, swap, deleted, remote
    size_in_bytes: int
    identity: FileIdentity
    is_active: bool
    offset_index_bytes: int
    time_index_bytes: int
    txn_index_bytes: int
    has_snapshot: bool
    largest_timestamp_ms: int
    modification_time_ms: int

    def beside(self, ending: str) -> str:
        """The live file of the same name with another ending, as `.index`."""
        return beside(self.path, ending)

    @property
    def effective_timestamp_ms(self) -> int:
        """What lag and retention rules go by: the largest record timestamp, else the file's
        modification time.
        """
        return (
            self.largest_timestamp_ms
            if self.largest_timestamp_ms >= 0
            else self.modification_time_ms
        )


@dataclass(frozen=True, slots=True)
class DeletedFile(JsonFacts):
    """A file that a broker had marked `.deleted` and not removed when it stopped."""

    name: str
    size_in_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionCheckpoints(JsonFacts):
    """This partition's line in each of the log dir's four checkpoint files, raw; None without a
    line or a file.
    """

    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    cleaner: int | None = None


# Fields of a partition as its token has them, whatever they are.
_NOT_IN_TOKEN: dict[str, Any] = {
    "other_segments": (),
    "leftovers": (),
    "problems": (),
    "digest": "",
    "orphan_indexes": (),
    "deleted_files": (),
}


@dataclass(frozen=True, slots=True)
class PartitionInventory(JsonFacts):
    """One partition directory.

    `segments` are the live ones in offset order, the last one active; `other_segments` those with a
    suffix. `has_remote_segments`: there may be older ones in tiered storage, as far as the disk
    tells (see `partition_dir`). `leftovers` names the files of an interrupted cleaning (`.cleaned`,
    `.swap`, our `.tmp`), `deleted_files` those marked `.deleted`; `problems` what forbids changing
    this partition. `log_start_offset` and `log_end_offset` are what a broker would load. `digest`:
    see `known_directory`. `is_whole` is False where only some `.log` files were named.
    `orphan_indexes`: base offsets of index files whose `.log` is not there.
    """

    topic_partition: TopicPartition
    kind: PartitionKind
    path: str
    log_dir: str
    directory_id: str | None
    dir_device: int
    dir_inode: int
    topic_id: str | None
    segments: tuple[SegmentInfo, ...]
    other_segments: tuple[SegmentInfo, ...]
    leftovers: tuple[str, ...]
    log_start_offset: int
    log_end_offset: int
    checkpoints: PartitionCheckpoints
    snapshot_offsets: tuple[int, ...]
    has_remote_segments: bool
    problems: tuple[str, ...] = ()
    digest: str = ""
    is_whole: bool = True
    orphan_indexes: tuple[int, ...] = ()
    deleted_files: tuple[DeletedFile, ...] = ()

    def _repr_html_(self) -> str:
        """What a notebook shows: offsets, a map of the segments by size, a row a segment."""
        from kafkalog.log.inventory_html import partition_html

        return partition_html(self)

    @property
    def active_segment(self) -> SegmentInfo | None:
        """The segment a broker appends to, never cleaned; None in a directory without segments."""
        return self.segments[-1] if self.segments else None

    @property
    def is_remote_alone(self) -> bool:
        """Whether all of it is in remote storage: no broker's directory is looked at, where there
        is always a segment to append to."""
        return bool(self.segments) and self.segments[-1].state == "remote"

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the live `.log` files."""
        return sum(segment.size_in_bytes for segment in self.segments)

    def as_local_log(self) -> PartitionInventory:
        """The log as a broker loads it where its topic is not tiered: a log start line below the
        first segment is stale, and the log starts with the segment.
        """
        log_start = self._local_start_offset
        if not self.has_remote_segments and self.log_start_offset == log_start:
            return self
        return replace(self, has_remote_segments=False, log_start_offset=log_start)

    @property
    def _local_start_offset(self) -> int:
        first_base = self.segments[0].base_offset if self.segments else 0
        return max(self.checkpoints.log_start or 0, first_base)

    def as_never_cleaned(self) -> PartitionInventory:
        """The log as a broker finds it whose cleaner checkpoint has no line of it."""
        return replace(self, checkpoints=replace(self.checkpoints, cleaner=None))

    @property
    def token(self) -> str:
        """A digest of all a plan for this partition depends on; equal tokens mean the plan still
        holds.

        Leftovers and `.tmp` files are left out on purpose: the task that carries out the plan
        writes such files. So is what follows from the rest.
        """
        # Whether older segments are in tiered storage is said by settings, not by the directory.
        # The digest takes the log as a local one, so that the same files have the same token either
        # way.
        row = self.to_row()
        for name, value in _NOT_IN_TOKEN.items():
            row[_PLACES[name]] = value
        row[_PLACES["has_remote_segments"]] = False
        row[_PLACES["log_start_offset"]] = self._local_start_offset
        return hashlib.sha256(json.dumps(row).encode()).hexdigest()


_PLACES = {field.name: place for place, field in enumerate(fields(PartitionInventory))}


@dataclass(frozen=True, slots=True)
class UnreadPartition(JsonFacts):
    """A partition's directory that cannot be read: `reason` says why."""

    topic_partition: TopicPartition
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class LogInventory(JsonFacts):
    """The partition directories found below some paths, ordered by topic, partition and path; what
    could not be read. The live partitions among that are `unread`, and in `problems` too.
    """

    partitions: tuple[PartitionInventory, ...]
    problems: tuple[str, ...] = ()
    unread: tuple[UnreadPartition, ...] = ()

    def __iter__(self) -> Iterator[PartitionInventory]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def _repr_html_(self) -> str:
        """What a notebook shows: a row a topic, and what is wrong."""
        from kafkalog.log.inventory_html import inventory_html

        return inventory_html(self)

    def partition(self, topic_partition: TopicPartition) -> PartitionInventory:
        """The live directory of a partition; InvalidConfigError if there is none, or if two log
        dirs claim it.
        """
        found = [
            partition
            for partition in self.partitions
            if partition.topic_partition == topic_partition and partition.kind is PartitionKind.LIVE
        ]
        if len(found) == 1:
            return found[0]
        places = ", ".join(partition.path for partition in found) or "none"
        raise InvalidConfigError(f"{topic_partition} needs one live directory, found: {places}")
