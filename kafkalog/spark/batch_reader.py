"""The batch reader: plans on the driver, reads in the tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkalog.code_digest import check_same_code, code_digest
from kafkalog.columns.column import Column
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.source_options import SourceOptions
from kafkalog.reading.views import view_named
from kafkalog.spark.releases import DataSourceReader, InputPartition
from kafkalog.spark.worker_errors import in_one_line, in_one_line_of_task

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class ScanPartition(InputPartition):
    """One task's work as a Spark input partition, and the code it was planned with."""

    def __init__(self, value: object) -> None:
        super().__init__(value)
        self.code = code_digest()

    def check_code(self) -> None:
        """CodeDiffersError in a task that runs another."""
        check_same_code(self.code)


@dataclass
class KafkaLogReader(DataSourceReader):
    """Reads one view. Spark pickles it with the columns and schema that were asked for.

    The rooms that have kernels are imported in the methods: a driver that only looks up a schema
    does not wait for them.
    """

    options: SourceOptions
    columns: tuple[Column, ...]
    arrow_schema: pa.Schema

    @in_one_line
    def partitions(self) -> list[InputPartition]:
        """One input partition a task, in the order of topic, partition and offset."""
        from kafkalog.reading.scan import open_paths, plan_scan
        from kafkalog.reading.view_reader import ScanNeeds

        options = self.options
        inventory, named_paths = open_paths(options.paths, options.selection)
        selection = options.selection.naming(named_paths)
        sizes = (
            view_named(options.view)
            .reader()
            .sizes_of(
                self._request(),
                split_bytes=options.max_bytes_per_partition,
                min_splits=options.min_partitions,
            )
        )
        needs = ScanNeeds.of(self._request(), sizes)
        return [ScanPartition(t) for t in plan_scan(options.view, inventory, selection, needs)]

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one task."""
        from kafkalog.reading.scan import read_task

        # Spark makes one empty partition where a reader has none.
        if partition.value is None:
            return iter(())
        if isinstance(partition, ScanPartition):
            partition.check_code()
        leave_modules_to_no_collector()
        return in_one_line_of_task(read_task(partition.value, self._request()))

    def _request(self) -> ReadRequest:
        return self.options.request(self.columns, self.arrow_schema)


@dataclass
class PushingReader(KafkaLogReader):
    """The same reader where the session lets Spark push filters: what the reader cannot do, and all
    of them in mode PERMISSIVE, Spark does again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that partitions, headers and records can be held against; the others
        are handed back."""
        # Not before 4.1, whose classes it compares with.
        from kafkalog.spark.pushdown import push_filters

        row_filter, left = push_filters(self.options.view, self.options.row_filter, filters)
        self.options = replace(self.options, row_filter=row_filter)
        # Rows that stand for bad batches have nulls which no pushed filter sees.
        return filters if self.options.is_permissive else left


@cache
def leave_modules_to_no_collector() -> None:
    """Once a worker process, when everything is imported.

    A Python worker of Spark collects garbage after each task. The hundreds of thousands of objects
    that pandas and pyarrow made at import are never garbage, and walking over them took 1.5 s of
    3.4 s of CPU for 8 M records. The worker is Spark's: garbage that other code left there by then
    stays until the worker ends, which is why this is done once and early.
    """
    gc.freeze()
