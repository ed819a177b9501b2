"""Segments of tiered partitions in remote storage that is a directory, before those on the broker's
disk: together they are the log that a consumer reads.

 DIR[/kafka-tiered-storage]/TOPIC-PARTITION-TOPIC_ID/BASE_OFFSET-SEGMENT_ID.log, .index …

That is the layout of Kafka's LocalTieredStorage; a copy of another store's objects under these
names will do, with or without `-SEGMENT_ID`, and without indexes.

What is still on the broker's disk is read there. Of remote segments with one base offset (an upload
that failed leaves one) the longest counts, and each ends where the next one begins: the same
records may be in two of them. What the broker's metadata says of them (which were finished, which
leader epoch is in force) is not asked: the view `remote_segments` tells.

Source: Kafka LocalTieredStorage, RemoteTopicPartitionDirectory, RemoteLogSegmentFileset (KIP-405).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.partition_dir import describe_segment

REMOTE = "remote"
_STORAGE_DIR = "kafka-tiered-storage"
_LOG = re.compile(r"(\d{20})(?:-[A-Za-z0-9_-]{22})?\.log", re.ASCII)
_DIRECTORY = re.compile(r".+-\d+-[A-Za-z0-9_-]{22}", re.ASCII)
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


def with_remote_segments(
    partitions: Iterable[PartitionInventory], remote_dirs: Sequence[str]
) -> list[PartitionInventory]:
    """The partitions, each with its segments below `remote_dirs` in front of its own; those that
    have none there as they were.

    InvalidConfigError for a path that is no directory, or not laid out as above, or where topic ids
    do not tell which of several directories is a partition's.
    """
    found = [entry for path in remote_dirs for entry in _directories(Path(path))]
    return [_with_segments(partition, found) for partition in partitions]


def _directories(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        raise InvalidConfigError("remote storage is a directory", path=str(path))
    inner = path / _STORAGE_DIR
    with os.scandir(inner if inner.is_dir() else path) as entries:
        found = sorted(Path(e.path) for e in entries if e.is_dir() and _DIRECTORY.fullmatch(e.name))
    if not found:
        # Nothing to put in front of a log is no answer: the log would look as if it began here.
        raise InvalidConfigError(
            "the layout of this remote storage is not known: no directory TOPIC-PARTITION-TOPIC_ID,"
            " as of Kafka's LocalTieredStorage, is in it",
            path=str(path),
        )
    yield from found


def _with_segments(partition: PartitionInventory, found: Sequence[Path]) -> PartitionInventory:
    prefix = f"{partition.topic_partition}-"
    named = [
        path
        for path in found
        if path.name.startswith(prefix) and _TOPIC_ID.fullmatch(path.name[len(prefix) :])
    ]
    own = [p for p in named if partition.topic_id in (None, p.name[len(prefix) :])]
    if len({path.name for path in own}) > 1:
        names = ", ".join(path.name for path in own)
        raise InvalidConfigError(
            f"the partition's topic id is not known, and remote storage has {names}",
            path=partition.path,
        )
    first_local = partition.segments[0].base_offset if partition.segments else None
    remote = [
        segment
        for segment in _segments(own)
        if first_local is None or segment.base_offset < first_local
    ]
    if not remote:
        return partition
    known_start = partition.checkpoints.log_start
    log_start = remote[0].base_offset if known_start is None else known_start
    return replace(
        partition,
        segments=(*remote, *partition.segments),
        log_start_offset=log_start,
        has_remote_segments=True,
    )


def _segments(directories: Sequence[Path]) -> list[SegmentInfo]:
    """In the order of their base offsets, one of each."""
    longest: dict[int, tuple[int, str]] = {}
    for directory in directories:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = _LOG.fullmatch(entry.name)
                if name is not None and entry.is_file():
                    base_offset = int(name[1])
                    candidate = entry.stat().st_size, entry.path
                    longest[base_offset] = max(longest.get(base_offset, candidate), candidate)
    return [describe_segment(longest[base][1], base, REMOTE) for base in sorted(longest)]
