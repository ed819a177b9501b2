"""From a view, a selection and an inventory to tasks, and from a task to Arrow batches.

`plan_scan` looks at directories and indexes only; `read_task` does the reading and needs nothing
but the task and the request, so it runs as well in another process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import pyarrow as pa

from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.entry_views import ENTRY_VIEWS, FileTask, file_tasks, read_entries
from kafkalog.reading.log_views import (
    SegmentTask,
    read_partitions,
    read_segments,
    segment_tasks,
)
from kafkalog.reading.message_views import message_partitions, read_messages
from kafkalog.reading.offset_views import (
    LATEST,
    OFFSET_VIEWS,
    offset_partitions,
    read_offset_commits,
)
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.segment_reader import read_batch_splits, read_record_splits
from kafkalog.reading.selection import PartitionSelection, select_partitions
from kafkalog.reading.splits import ScanSplit, pack_splits, plan_splits

_logger = logging.getLogger(__name__)

_FILES_PER_TASK = 64


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


def plan_scan(view: str, inventory: LogInventory, selection: PartitionSelection) -> list[ScanTask]:
    """Tasks in the order of topic, partition and offset; an empty list when there is nothing to
    read."""
    describes_files = view in ("segments", "partitions", *ENTRY_VIEWS)
    partitions = select_partitions(inventory, selection, every_kind=describes_files)
    if view == "partitions":
        return [ScanTask(view, partitions=tuple(partitions))] if partitions else []
    if view == "segments":
        segments = segment_tasks(partitions)
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
    if view == "messages":
        partitions = message_partitions(partitions, selection)
    if view in OFFSET_VIEWS:
        wanted = offset_partitions(partitions, selection)
        return [ScanTask(view, splits=tuple(plan_splits([p], selection))) for p in wanted]
    splits = plan_splits(partitions, selection, all_on_disk=view == "batches")
    return [ScanTask(view, splits=pack) for pack in pack_splits(splits)]


def read_task(task: ScanTask, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The rows of a task; what DROPMALFORMED left out is counted in one warning."""
    counts = ReadCounts()
    if task.view == "records":
        yield from read_record_splits(task.splits, request, counts)
    elif task.view == "messages":
        yield from read_messages(task.splits, request, counts)
    elif task.view in OFFSET_VIEWS:
        latest = task.view == LATEST
        yield from read_offset_commits(task.splits, request, counts, latest=latest)
    elif task.view == "batches":
        yield from read_batch_splits(task.splits, request, counts)
    elif task.view == "segments":
        yield from read_segments(task.segments, request, counts)
    elif task.view == "partitions":
        yield from read_partitions(task.partitions, request)
    else:
        yield from read_entries(task.files, request, counts)
    if counts.dropped_batches:
        read = {split.path for split in task.splits} | {file.path for file in task.files}
        paths = ", ".join(sorted(read))
        what = "files" if task.files else "batches"
        _logger.warning("left out %d malformed %s of %s", counts.dropped_batches, what, paths)
