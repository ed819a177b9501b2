"""View `open_transactions` of the source. What its rows are made of lies in several partitions, so
one task makes them all; columns and rows are those of `reading.function_views`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkalog import clock
from kafkalog.columns.column import Column
from kafkalog.columns.schemas import ERROR
from kafkalog.columns.selection import choose_columns
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.function_views.table import FUNCTION_VIEWS
from kafkalog.reading.option_table import OPEN_TRANSACTIONS, OPTIONS
from kafkalog.reading.request import ReadMode
from kafkalog.reading.source_options import option_values, paths_of
from kafkalog.spark.batch_reader import ScanPartition
from kafkalog.spark.releases import DataSourceReader, InputPartition
from kafkalog.spark.types import asked_schema, spark_schema
from kafkalog.spark.worker_errors import in_one_line, in_one_line_of_task

_OPTIONS = ("path", "paths", "view", "columns", "mode", "now")


def is_open_transactions(options: Mapping[str, str]) -> bool:
    """Whether options as Spark hands them over are for this view."""
    return any(n.lower() == "view" and text == OPEN_TRANSACTIONS for n, text in options.items())


@dataclass(frozen=True, slots=True)
class OpenTransactionsOptions:
    """now_ms: the time that ages are computed for, None for the clock when a query is planned."""

    paths: tuple[str, ...]
    columns: tuple[Column, ...]
    mode: ReadMode
    now_ms: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> OpenTransactionsOptions:
        """InvalidConfigError for options of other views, and as `parse_options`."""
        values = option_values(options)
        for name in values:
            if name not in _OPTIONS:
                raise InvalidConfigError(f"option {name} is not for view '{OPEN_TRANSACTIONS}'")
        mode = values.get("mode", OPTIONS["mode"].default)
        columns = FUNCTION_VIEWS[OPEN_TRANSACTIONS].columns
        names = values.get("columns", tuple(column.name for column in columns))
        if mode == ReadMode.PERMISSIVE:
            columns = (*columns, ERROR)
            # Without it the row of a record that cannot be read looks like a transaction.
            names = tuple(dict.fromkeys((*names, ERROR.name)))
        chosen = choose_columns(OPEN_TRANSACTIONS, columns, names)
        return cls(paths_of(values), chosen, mode, values.get("now"))

    @property
    def schema(self) -> StructType:
        """As the function of this name has it: each column can be null."""
        return spark_schema(self.columns, all_nullable=True)

    def reader(self, schema: StructType) -> OpenTransactionsReader:
        """A reader of exactly the columns of `schema`."""
        columns = choose_columns(OPEN_TRANSACTIONS, self.columns, schema.fieldNames())
        if self.mode == ReadMode.PERMISSIVE and ERROR not in columns:
            raise InvalidConfigError("mode PERMISSIVE needs the column 'error' in the schema")
        return OpenTransactionsReader(self, asked_schema(columns, schema))


@dataclass
class OpenTransactionsReader(DataSourceReader):
    """Spark pickles it with the schema that was asked for."""

    options: OpenTransactionsOptions
    arrow_schema: pa.Schema

    @in_one_line
    def partitions(self) -> list[InputPartition]:
        """One, with the time of the query. InvalidConfigError for a path that is not there."""
        from kafkalog.reading.scan import open_paths

        open_paths(self.options.paths)
        now_ms = self.options.now_ms
        return [ScanPartition(clock.now_ms() if now_ms is None else now_ms)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows, the oldest transaction first."""
        return in_one_line_of_task(self._rows(partition))

    def _rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads

        if isinstance(partition, ScanPartition):
            partition.check_code()
        made = FUNCTION_VIEWS[OPEN_TRANSACTIONS].made
        if made is None or partition.value is None:
            return
        options = FunctionOptions(self.options.mode, now_ms=partition.value)
        rows = made(SharedReads(self.options.paths, options))
        yield from rows.select(self.arrow_schema.names).cast(self.arrow_schema).to_batches()
