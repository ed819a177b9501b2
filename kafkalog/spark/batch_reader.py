"""The batch reader: plans on the driver, reads in the tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from kafkalog.columns.schemas import Column
from kafkalog.reading.request import ReadRequest
from kafkalog.spark.options import SourceOptions
from kafkalog.spark.pushdown import push_filters


class ScanPartition(InputPartition):
    """One task's work as a Spark input partition."""


@dataclass
class KafkaLogReader(DataSourceReader):
    """Reads one view. Spark pickles it with the columns and schema that were asked for.

    The rooms that need numba are imported in the methods: a driver that only looks up a schema does
    not wait for it.
    """

    options: SourceOptions
    columns: tuple[Column, ...]
    arrow_schema: pa.Schema

    def partitions(self) -> list[InputPartition]:
        """One input partition a task, in the order of topic, partition and offset."""
        from kafkalog.reading.scan import ScanNeeds, open_paths, plan_scan
        from kafkalog.reading.splits import HEADERS_SPLIT_BYTES, SPLIT_BYTES, SplitSizes

        options = self.options
        by_headers = options.view == "batches" and not self._request().checks_batches
        split_bytes = HEADERS_SPLIT_BYTES if by_headers else SPLIT_BYTES
        inventory, named_paths = open_paths(options.paths)
        selection = options.selection.naming(named_paths)
        needs = ScanNeeds(
            row_filter=options.row_filter,
            sizes=SplitSizes(
                options.max_bytes_per_partition or split_bytes, options.min_partitions
            ),
            with_transactions=any(column.name == "transactionState" for column in self.columns),
        )
        return [ScanPartition(t) for t in plan_scan(options.view, inventory, selection, needs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one task."""
        from kafkalog.reading.scan import read_task

        # Spark makes one empty partition where a reader has none.
        if partition.value is None:
            return iter(())
        leave_modules_to_no_collector()
        return read_task(partition.value, self._request())

    def _request(self) -> ReadRequest:
        return ReadRequest(
            self.columns,
            self.arrow_schema,
            self.options.mode,
            self.options.verify_checksums,
            self.options.include_control,
            self.options.row_filter,
        )


@dataclass
class PushingReader(KafkaLogReader):
    """The same reader where the session lets Spark push filters: what the reader cannot do, and all
    of them in mode PERMISSIVE, Spark does again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that partitions, headers and records can be held against; the others
        are handed back."""
        row_filter, left = push_filters(self.options.view, self.options.row_filter, filters)
        self.options = replace(self.options, row_filter=row_filter)
        # Rows that stand for bad batches have nulls which no pushed filter sees.
        return filters if self.options.is_permissive else left


@cache
def leave_modules_to_no_collector() -> None:
    """Once a worker process, when everything is imported.

    A Python worker of Spark collects garbage after each task. The hundreds of thousands of objects
    that numba and pyarrow made at import are never garbage, and walking over them took a fifth of a
    scan's time.
    """
    gc.freeze()
