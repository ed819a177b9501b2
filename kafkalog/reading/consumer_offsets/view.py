"""How the views `offset_commits` and `latest_offset_commits` are planned and read: a task a
partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.consumer_offsets.commits import read_commit_history
from kafkalog.reading.consumer_offsets.latest import read_latest_commits
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.selection import PartitionSelection, refuse_replicas, say_absent
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.splits import ScanSplit
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader


def offset_partitions(
    partitions: Sequence[PartitionInventory], selection: PartitionSelection
) -> list[PartitionInventory]:
    """Those of `__consumer_offsets`; InvalidConfigError where another topic was asked for."""
    asked = selection.topics or {tp.topic for tp in selection.partitions or ()}
    if set(asked) - {OFFSETS_TOPIC}:
        raise InvalidConfigError(f"the views of offset commits are of {OFFSETS_TOPIC} alone")
    return [p for p in partitions if p.topic_partition.topic == OFFSETS_TOPIC]


def _plan_partitions(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    """A task a partition."""
    there = offset_partitions(partitions, selection)
    if not there:
        say_absent(OFFSETS_TOPIC)
    wanted = needs.wanted(there)
    refuse_replicas(wanted, selection)
    return [ScanTask(view, tuple(plan_splits([p], selection))) for p in wanted]


def _read_partition(
    task: ScanTask[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    is_latest = task.view == "latest_offset_commits"
    read = read_latest_commits if is_latest else read_commit_history
    return read(task.pieces, request, counts)


OFFSET_COMMITS_READER = ViewReader(
    _plan_partitions, _read_partition, is_of=lambda _, topic: topic == OFFSETS_TOPIC
)
