"""How the views `records` and `batches` are planned and read: splits of segments."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.batch_reader import read_batch_splits
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection, refuse_replicas
from kafkalog.reading.split_plan import plan_reading
from kafkalog.reading.splits import (
    GROWN_SPLIT_BYTES,
    HEADERS_SPLIT_BYTES,
    ScanSplit,
    SplitNeeds,
    SplitSizes,
    pack_splits,
)
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader

_logger = logging.getLogger(__name__)


def plan_split_tasks(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
    *,
    all_on_disk: bool = False,
) -> list[ScanTask[ScanSplit]]:
    """Tasks of one or several splits; `all_on_disk` as in SplitNeeds."""
    refuse_replicas(needs.wanted(partitions), selection)
    split_needs = SplitNeeds(all_on_disk, needs.row_filter, needs.with_transactions)
    # All partitions, so that what is left out is counted too.
    plan = plan_reading(partitions, selection, needs.sizes, split_needs)
    _logger.info("%s: %s", view, plan.describe())
    return [ScanTask(view, pack) for pack in pack_splits(plan.splits, plan.sizes.pack_bytes)]


def _plan_batches(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    """What awaits deletion below the log start offset has batches too."""
    return plan_split_tasks(view, partitions, selection, needs, all_on_disk=True)


def _read_records(
    task: ScanTask[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    return read_record_splits(task.pieces, request, counts)


def _read_batches(
    task: ScanTask[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    return read_batch_splits(task.pieces, request, counts)


def _record_sizes(_request: ReadRequest) -> SplitSizes:
    return SplitSizes(most_bytes=GROWN_SPLIT_BYTES)


def _batch_sizes(request: ReadRequest) -> SplitSizes:
    return SplitSizes() if request.checks_batches else SplitSizes(HEADERS_SPLIT_BYTES)


RECORDS_READER = ViewReader(plan_split_tasks, _read_records, sizes=_record_sizes)
BATCHES_READER = ViewReader(_plan_batches, _read_batches, sizes=_batch_sizes)
