"""Rows of a source view of one internal topic, read here: what the tables over it are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from kafkalog.columns.schemas import ERROR
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.reading.request import ReadMode, ReadRequest
from kafkalog.reading.scan import plan_scan, read_task
from kafkalog.reading.selection import PartitionSelection, furthest_replicas, report_unread
from kafkalog.reading.view_reader import ScanNeeds
from kafkalog.reading.views import select_columns, view_named


def live_partitions(inventory: LogInventory, topic: str) -> list[PartitionInventory]:
    """Those of a topic; of several replicas of a partition the one that goes furthest."""
    return furthest_replicas(
        p
        for p in inventory.partitions
        if p.topic_partition.topic == topic and p.kind == PartitionKind.LIVE
    )


def read_topic(
    view: str,
    inventory: LogInventory,
    topic: str,
    columns: Sequence[str],
    mode: ReadMode = ReadMode.FAILFAST,
) -> Iterator[pa.RecordBatch]:
    """Some columns of a view of an internal topic, and `error` in mode PERMISSIVE; no rows where
    there is none of it. Raises as the view does.
    """
    partitions = live_partitions(inventory, topic)
    selection = PartitionSelection(
        topics=frozenset([topic]), bears_damage=mode != ReadMode.FAILFAST
    )
    if not partitions:
        report_unread(inventory, selection)
        return
    error = (ERROR,) if mode == ReadMode.PERMISSIVE else ()
    request = ReadRequest.of(
        (*select_columns(view, columns), *error),
        mode=mode,
        verify_checksums=view_named(view).checks_checksums,
    )
    its = replace(inventory, partitions=tuple(partitions))
    for task in plan_scan(view, its, selection, ScanNeeds.of(request)):
        yield from read_task(task, request)
