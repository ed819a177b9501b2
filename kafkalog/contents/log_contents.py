"""What is in one partition's log: by its headers always, by its records where that was asked for.

The headers go by in the walk that an audit makes anyway (`HeaderContentsScan`); the records are
read here, all of them, in chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.checking.coordinator_checks import CoordinatorChecks
from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.group_checks import check_group_types
from kafkalog.cleaning.checked_chunks import (
    CLEANER_ARENA_BYTES,
    CLEANER_CHUNK_BYTES,
    check_checksums,
)
from kafkalog.contents.committed_offsets import Commits
from kafkalog.contents.header_contents import HeaderContents, HeaderContentsScan
from kafkalog.contents.latest_keys import MOST_KEYS
from kafkalog.contents.record_contents import RecordContents, RecordContentsScan
from kafkalog.contents.remote_copies import RemoteCopies, read_remote_copies
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.topics import OFFSETS_TOPIC, REMOTE_LOG_TOPIC
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.planning.segment_groups import inactive_segments_from
from kafkalog.reading.transaction_ranges import TransactionRanges


@dataclass(frozen=True, slots=True)
class Contents(JsonFacts):
    """`records` None where they were not asked for; `problem`: why not all of them were read.
    `commits`, `remote_copies`: of a partition of `__consumer_offsets`, `__remote_log_metadata`.
    `unloadable`: findings about records that their coordinator does not load.
    """

    headers: HeaderContents
    records: RecordContents | None = None
    problem: str = ""
    commits: Commits | None = None
    remote_copies: tuple[RemoteCopies, ...] = ()
    unloadable: tuple[Finding, ...] = ()


def header_scan(partition: PartitionInventory, first_dirty_offset: int) -> HeaderContentsScan:
    """The scan of a log's headers; CorruptIndexError or OSError for its transaction indexes."""
    indexes = AbortedTransactions(partition.segments, partition.log_start_offset)
    entries = [entry for s in partition.segments for entry in indexes.of_segment(s)]
    markers = np.array(sorted({entry.last_offset for entry in entries}), np.int64)
    return HeaderContentsScan(markers, first_dirty_offset)


def scan_records(
    partition: PartitionInventory,
    *,
    first_dirty_offset: int,
    end_offset: int,
    with_keys: bool,
    most_keys: int = MOST_KEYS,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    see: Callable[[RecordAreas, str], None] | None = None,
) -> tuple[RecordContents, str]:
    """The records of a log up to its end or to the first that cannot be read, and why not. `see` is
    shown all of them, with the path of their segment.

    `end_offset`: where a round of cleaning would end. `with_keys`: look at keys as well.
    """
    scan = RecordContentsScan(
        first_dirty_offset=first_dirty_offset,
        end_offset=end_offset,
        with_keys=with_keys,
        most_keys=most_keys,
    )
    problem = ""
    try:
        transactions = _aborted(partition)
        arena = Arena()
        for path, chunk in _chunks(partition, max_batch_bytes):
            for part, areas in iterate_record_areas(
                chunk.buf, chunk.position, chunk.rows, arena,
                path=path, max_bytes=max_batch_bytes, arena_bytes=CLEANER_ARENA_BYTES,
            ):  # fmt: skip
                scan.add(areas, path, transactions.is_aborted(chunk.rows[part]))
                if see is not None:
                    see(areas, path)
    except (KafkaLogError, OSError) as error:
        problem = str(error)
    return scan.finish(), problem


def read_contents(
    partition: PartitionInventory,
    headers: HeaderContents,
    *,
    first_dirty_offset: int,
    first_uncleanable_offset: int,
    with_keys: bool,
    redact: bool,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> Contents:
    """The contents of a log whose headers went by already, with what its records tell."""
    segments = inactive_segments_from(partition.segments, first_uncleanable_offset)
    end_offset = segments[0].base_offset if segments else first_uncleanable_offset
    coordinator = _Coordinator(partition)
    records, problem = scan_records(
        partition,
        first_dirty_offset=first_dirty_offset,
        end_offset=end_offset,
        with_keys=with_keys,
        max_batch_bytes=max_batch_bytes,
        see=coordinator.see,
    )
    topic = partition.topic_partition.topic
    commits: Commits | None = None
    copies: tuple[RemoteCopies, ...] = ()
    try:
        if topic == OFFSETS_TOPIC:
            # Rows of views, which the logs of other topics have no need of.
            from kafkalog.contents.read_commits import read_commits_of

            commits = read_commits_of(partition, max_batch_bytes)
            commits = commits.redacted() if redact else commits
        elif topic == REMOTE_LOG_TOPIC:
            copies = read_remote_copies(partition, max_batch_bytes)
    except (KafkaLogError, OSError) as error:
        problem = problem or str(error)
    return Contents(headers, records, problem, commits, copies, coordinator.findings())


class _Coordinator:
    """What the coordinator of a topic would stumble over, segment by segment."""

    def __init__(self, partition: PartitionInventory) -> None:
        self._start = partition.log_start_offset
        self._bases = {segment.path: segment.base_offset for segment in partition.segments}
        self._found: dict[str, FindingList] = {}
        self._checks: dict[str, CoordinatorChecks] = {}

    def see(self, areas: RecordAreas, path: str) -> None:
        if path not in self._checks:
            self._found[path] = FindingList(path, self._bases[path])
            self._checks[path] = CoordinatorChecks(path, self._found[path])
        self._checks[path].check(areas)

    def findings(self) -> tuple[Finding, ...]:
        every = [finding for found in self._found.values() for finding in found.findings()]
        groups = ((path, self._bases[path], c.groups.spans) for path, c in self._checks.items())
        every += check_group_types(groups, self._start)
        return tuple(f for f in every if f.offset is None or f.offset >= self._start)


def _aborted(partition: PartitionInventory) -> TransactionRanges:
    indexes = AbortedTransactions(partition.segments, partition.log_start_offset)
    if indexes.is_empty:
        return TransactionRanges()
    return TransactionRanges(
        tuple(indexes.between(partition.log_start_offset, partition.log_end_offset))
    )


def _chunks(partition: PartitionInventory, max_batch_bytes: int) -> Iterator[tuple[str, Chunk]]:
    buffers = ChunkBuffers()
    for segment in partition.segments:
        chunks = read_chunks(
            segment.path,
            chunk_bytes=CLEANER_CHUNK_BYTES,
            buffers=buffers,
            max_batch_bytes=max_batch_bytes,
        )
        for chunk in chunks:
            check_checksums(chunk, segment.path)
            yield segment.path, chunk
