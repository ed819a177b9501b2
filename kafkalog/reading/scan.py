"""From a view, a selection and an inventory to tasks, and from a task to Arrow batches: what is the
same for all views. What is not is in the view's row of `views`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkalog.log.inventory import LogInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.selection import PartitionSelection, select_partitions
from kafkalog.reading.splits import ScanSplit, range_of
from kafkalog.reading.view_reader import ScanNeeds, ScanTask
from kafkalog.reading.views import view_named
from kafkalog.remote.cache import tell_cache_bytes
from kafkalog.remote.scans_in_turn import ScanRange

_logger = logging.getLogger(__name__)


def open_paths(
    paths: Iterable[str | PathLike[str]], selection: PartitionSelection | None = None
) -> tuple[LogInventory, frozenset[str]]:
    """The inventory of log dirs, partition directories, `.log` files or globs, and the partitions
    named directly; of trees of remote storage where the selection has a layout for them."""
    names = [fspath(path) for path in paths]
    named = set()
    for name in names:
        path = Path(name)
        named.add(str((path.parent if path.suffix == ".log" else path).resolve()))
    if selection is None or not selection.remote.is_tree:
        return open_log_dir(*names), frozenset(named)
    # Needs kernels, for which a process that only looks up a schema does not wait.
    from kafkalog.log.remote_segments import say_left_out
    from kafkalog.log.remote_tree import open_logs

    note = None if selection.refuses_loss else say_left_out
    found = open_logs(names, selection.remote, accepts=selection.accepts, note=note)
    return found, frozenset(named)


def plan_scan(
    view: str,
    inventory: LogInventory,
    selection: PartitionSelection,
    needs: ScanNeeds | None = None,
) -> list[ScanTask[Any]]:
    """Tasks in the order of topic, partition and offset; an empty list when there is nothing to
    read. What indexes and statistics left out is said in a line of the log."""
    row, needs = view_named(view), needs or ScanNeeds()
    reader = row.reader()
    is_named = selection.topics is not None or selection.partitions is not None

    def concerns(name: TopicPartition) -> bool:
        return needs.row_filter.accepts(name) and (is_named or reader.is_of(view, name.topic))

    partitions = select_partitions(
        inventory, selection, every_kind=row.every_kind, concerns=concerns
    )
    return reader.plan(view, partitions, selection, needs)


def first_range(task: ScanTask[Any]) -> ScanRange | None:
    """What a task reads first, where that is a range of a segment."""
    piece = task.pieces[0] if task.pieces else None
    return range_of(piece) if isinstance(piece, ScanSplit) else None


def read_task(task: ScanTask[Any], request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The rows of a task; what DROPMALFORMED left out is counted in one warning."""
    tell_cache_bytes(request.remote_cache_bytes)
    counts = ReadCounts()
    reader = view_named(task.view).reader()
    yield from reader.read(task, request, counts)
    if counts.skipped_batches or counts.keyless_bytes or counts.wanted_records < counts.records:
        _logger.info("%s: %s", task.view, counts.describe())
    if counts.dropped_batches:
        _logger.warning("%s", counts.describe_dropped(reader.malformed))
