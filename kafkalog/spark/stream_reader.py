"""The stream reader: follows growing log directories from checkpoint to checkpoint.

Offsets are those of Spark's Kafka source: {topic: {partition: next offset}}. `maxOffsetsPerTrigger`
bounds a batch, Trigger.AvailableNow ends where the logs ended when it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafkalog.columns.column import Column
from kafkalog.errors import KafkaLogError
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.source_options import SourceOptions
from kafkalog.spark.batch_reader import ScanPartition, leave_modules_to_no_collector
from kafkalog.spark.releases import (
    DataSourceStreamReader,
    InputPartition,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from kafkalog.spark.worker_errors import in_one_line, in_one_line_of_task


class KafkaLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads view `records`. Spark keeps it on the driver, and pickles it for the tasks."""

    def __init__(
        self, options: SourceOptions, columns: tuple[Column, ...], schema: pa.Schema
    ) -> None:
        self._options = options
        self._columns = columns
        self._schema = schema
        self._available: dict[str, Any] | None = None

    @in_one_line
    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        from kafkalog.reading.following import first_offsets

        return dict(first_offsets(self._options.paths, self._options.selection))

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where the logs end now: no batch of this query goes past it."""
        self._available = self.reportLatestOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @in_one_line
    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """The end of the next batch; Spark 4.0 and 4.1 say nothing of where it starts."""
        if start is None:
            return self.reportLatestOffset()
        from kafkalog.reading.following import latest_offsets

        found = latest_offsets(
            self._options.paths,
            self._options.selection,
            start,
            up_to=self._available,
            max_offsets=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
        )
        return dict(found)

    @in_one_line
    def reportLatestOffset(self) -> dict[str, Any]:
        from kafkalog.reading.following import end_offsets

        return dict(end_offsets(self._options.paths, self._options.selection))

    @in_one_line
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One input partition a task, the same whenever a batch is run again, as far as the log
        still has it."""
        from kafkalog.reading.following import plan_between
        from kafkalog.reading.view_reader import ScanNeeds

        options, needs = self._options, ScanNeeds.of(self._request())
        return [
            ScanPartition(task)
            for task in plan_between(options.paths, options.selection, start, end, needs)
        ]

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one task."""
        from kafkalog.reading.following import read_following

        if partition.value is None:
            return iter(())
        if isinstance(partition, ScanPartition):
            partition.check_code()
        leave_modules_to_no_collector()
        rows = read_following(partition.value, self._request(), self._options.selection)
        return in_one_line_of_task(rows)

    def _request(self) -> ReadRequest:
        return self._options.request(self._columns, self._schema)


class RefusingStreamReader(DataSourceStreamReader):
    """In the place of a reader that cannot be made: says why when it is first asked."""

    def __init__(self, error: KafkaLogError) -> None:
        self._error = error

    @in_one_line
    def initialOffset(self) -> dict[str, Any]:
        raise self._error

    @in_one_line
    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        raise self._error

    @in_one_line
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error
