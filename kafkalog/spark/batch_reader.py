"""The batch reader: plans on the driver, reads in the tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkalog.columns.schemas import Column
from kafkalog.spark.options import SourceOptions


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
        from kafkalog.reading.scan import open_paths, plan_scan

        inventory, named_paths = open_paths(self.options.paths)
        selection = self.options.selection.naming(named_paths)
        return [ScanPartition(t) for t in plan_scan(self.options.view, inventory, selection)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one task."""
        from kafkalog.reading.request import ReadRequest
        from kafkalog.reading.scan import read_task

        # Spark makes one empty partition where a reader has none.
        if partition.value is None:
            return iter(())
        _leave_modules_to_no_collector()
        request = ReadRequest(
            self.columns,
            self.arrow_schema,
            self.options.mode,
            self.options.verify_checksums,
            self.options.include_control,
        )
        return read_task(partition.value, request)


@cache
def _leave_modules_to_no_collector() -> None:
    """Once a worker process, when everything is imported.

    A Python worker of Spark collects garbage after each task. The hundreds of thousands of objects
    that numba and pyarrow made at import are never garbage, and walking over them took a fifth of a
    scan's time.
    """
    gc.freeze()
