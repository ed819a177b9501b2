"""From a view, a selection and an inventory to tasks, and from a task to Arrow batches.

`plan_scan` looks at directories and indexes only; `read_task` does the reading and needs nothing
but the task and the request, so it runs as well in another process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

import pyarrow as pa

from kafkalog.columns.schemas import MESSAGE_VIEWS, OFFSET_VIEWS
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.conditions import EVERYTHING, RowFilter
from kafkalog.reading.data_loss import check_loss
from kafkalog.reading.entry_views import ENTRY_VIEWS, FileTask, file_tasks, read_entries
from kafkalog.reading.log_views import (
    SegmentTask,
    read_partitions,
    read_segments,
    segment_tasks,
)
from kafkalog.reading.message_views import message_partitions, read_messages
from kafkalog.reading.offset_views import offset_partitions, read_offset_commits
from kafkalog.reading.producer_views import PRODUCER_VIEWS, read_producer_views
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.segment_reader import read_batch_splits, read_record_splits
from kafkalog.reading.selection import PartitionSelection, refuse_replicas, select_partitions
from kafkalog.reading.splits import (
    ScanSplit,
    SplitNeeds,
    SplitSizes,
    pack_splits,
    plan_reading,
    plan_splits,
)

_logger = logging.getLogger(__name__)

_FILES_PER_TASK = 64


@dataclass(frozen=True, slots=True)
class ScanNeeds:
    """What a scan is asked for beside view and selection: rows, sizes of its tasks, what became of
    transactions."""

    row_filter: RowFilter = EVERYTHING
    sizes: SplitSizes = field(default_factory=SplitSizes)
    with_transactions: bool = False


@dataclass(frozen=True, slots=True)
class ScanTask:
    """What one task reads; only the field of its view is filled. Can be pickled."""

    view: str
    splits: tuple[ScanSplit, ...] = ()
    segments: tuple[SegmentTask, ...] = ()
    partitions: tuple[PartitionInventory, ...] = ()
    files: tuple[FileTask, ...] = ()


def open_paths(paths: Iterable[str | PathLike[str]]) -> tuple[LogInventory, frozenset[str]]:
    """The inventory of log dirs, partition directories, `.log` files or globs, and the partitions
    named directly."""
    names = [fspath(path) for path in paths]
    named = set()
    for name in names:
        path = Path(name)
        named.add(str((path.parent if path.suffix == ".log" else path).resolve()))
    return open_log_dir(*names), frozenset(named)


def plan_scan(
    view: str,
    inventory: LogInventory,
    selection: PartitionSelection,
    needs: ScanNeeds | None = None,
) -> list[ScanTask]:
    """Tasks in the order of topic, partition and offset; an empty list when there is nothing to
    read. What indexes and statistics left out is said in a line of the log."""
    needs = needs or ScanNeeds()
    describes_files = view in ("segments", "partitions", *ENTRY_VIEWS)
    partitions = [
        partition
        for partition in select_partitions(inventory, selection, every_kind=describes_files)
        # A checkpoint has lines of partitions that are not there; splits are counted with what was
        # left out.
        if not describes_files
        or view == "checkpoints"
        or needs.row_filter.accepts(partition.topic_partition)
    ]
    if view == "partitions":
        return [ScanTask(view, partitions=tuple(partitions))] if partitions else []
    if view == "segments":
        found = segment_tasks(partitions)
        segments = [task for task in found if selection.accepts_file(task.segment.path)]
        return [
            ScanTask(view, segments=tuple(segments[first : first + _FILES_PER_TASK]))
            for first in range(0, len(segments), _FILES_PER_TASK)
        ]
    if view in ENTRY_VIEWS:
        files = file_tasks(view, partitions, selection)
        return [
            ScanTask(view, files=tuple(files[first : first + _FILES_PER_TASK]))
            for first in range(0, len(files), _FILES_PER_TASK)
        ]
    if view in PRODUCER_VIEWS:
        refuse_replicas(partitions, selection)
        for partition in partitions:
            check_loss(partition, selection)
        return [ScanTask(view, partitions=pack) for pack in _packs(partitions, needs)]
    if view in MESSAGE_VIEWS:
        partitions = message_partitions(partitions, selection)
    wanted = [p for p in partitions if needs.row_filter.accepts(p.topic_partition)]
    if view in OFFSET_VIEWS:
        wanted = offset_partitions(wanted, selection)
        refuse_replicas(wanted, selection)
        return [ScanTask(view, splits=tuple(plan_splits([p], selection))) for p in wanted]
    refuse_replicas(wanted, selection)
    split_needs = SplitNeeds(view == "batches", needs.row_filter, needs.with_transactions)
    plan = plan_reading(partitions, selection, needs.sizes, split_needs)
    _logger.info("%s: %s", view, plan.describe())
    return [ScanTask(view, splits=pack) for pack in pack_splits(plan.splits, plan.sizes.pack_bytes)]


def _packs(
    partitions: Iterable[PartitionInventory], needs: ScanNeeds
) -> Iterator[tuple[PartitionInventory, ...]]:
    """Whole partitions, small ones together."""
    pack: list[PartitionInventory] = []
    packed_bytes = 0
    for partition in partitions:
        if not needs.row_filter.accepts(partition.topic_partition):
            continue
        if pack and packed_bytes + partition.size_in_bytes > needs.sizes.split_bytes:
            yield tuple(pack)
            pack, packed_bytes = [], 0
        pack.append(partition)
        packed_bytes += partition.size_in_bytes
    if pack:
        yield tuple(pack)


def read_task(task: ScanTask, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The rows of a task; what DROPMALFORMED left out is counted in one warning."""
    counts = ReadCounts()
    if task.view == "records":
        yield from read_record_splits(task.splits, request, counts)
    elif task.view in MESSAGE_VIEWS:
        commits = task.view == "messages"
        yield from read_messages(task.splits, request, counts, commits=commits)
    elif task.view in OFFSET_VIEWS:
        latest = task.view == "latest_offset_commits"
        yield from read_offset_commits(task.splits, request, counts, latest=latest)
    elif task.view == "batches":
        yield from read_batch_splits(task.splits, request, counts)
    elif task.view in PRODUCER_VIEWS:
        yield from read_producer_views(task.partitions, task.view, request, counts)
    elif task.view == "segments":
        yield from read_segments(task.segments, request, counts)
    elif task.view == "partitions":
        yield from read_partitions(task.partitions, request)
    else:
        yield from read_entries(task.files, request, counts)
    if counts.skipped_batches or counts.wanted_records < counts.records:
        _logger.info("%s: %s", task.view, counts.describe())
    if counts.dropped_batches:
        read = {split.path for split in task.splits} | {file.path for file in task.files}
        paths = ", ".join(sorted(read))
        what = "files" if task.files else "batches"
        _logger.warning("left out %d malformed %s of %s", counts.dropped_batches, what, paths)
