"""The data source `kafkalog`.

Spark finds it by itself through the package `pyspark_kafkalog`, or `register` names it.
"""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkalog.columns.column import Column
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.reading.source_options import SourceOptions, parse_options
from kafkalog.reading.views import select_columns
from kafkalog.spark.batch_reader import KafkaLogReader, PushingReader
from kafkalog.spark.releases import HAS_READ_LIMITS, DataSource, DataSourceReader, needs
from kafkalog.spark.stream_reader import KafkaLogStreamReader, RefusingStreamReader
from kafkalog.spark.transactions_view import OpenTransactionsOptions, is_open_transactions
from kafkalog.spark.types import asked_schema, spark_schema
from kafkalog.spark.worker_errors import in_one_line


class KafkaLogSource(DataSource):
    """`spark.read.format("kafkalog")`: views records, batches, segments and partitions of Kafka's
    log directories."""

    # With a reader that takes filters every query fails in a session that does not push them.
    _reader_class: ClassVar[type[KafkaLogReader]] = KafkaLogReader

    @classmethod
    def name(cls) -> str:
        return "kafkalog"

    @in_one_line
    def schema(self) -> StructType:
        """The columns of option `columns`, or the view's default ones."""
        if is_open_transactions(self.options):
            return OpenTransactionsOptions.of(self.options).schema
        options = self._options()
        columns = select_columns(
            options.view, options.column_names, with_error=options.is_permissive
        )
        return spark_schema(columns, all_nullable=options.is_permissive)

    @in_one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of exactly the columns of `schema`; Spark calls it by keyword."""
        if is_open_transactions(self.options):
            return OpenTransactionsOptions.of(self.options).reader(schema)
        return self._reader_class(*self._asked(schema))

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader | RefusingStreamReader:
        """The same for `spark.readStream`: view records only."""
        try:
            return self._stream_reader(schema)
        except KafkaLogError as error:
            # pyspark would stop the reader that there is not, and show that error instead.
            return RefusingStreamReader(error)

    def _stream_reader(self, schema: StructType) -> KafkaLogStreamReader:
        if is_open_transactions(self.options):
            raise InvalidConfigError("a stream is of view records, not of 'open_transactions'")
        options, columns, arrow_schema = self._asked(schema)
        if options.view != "records":
            raise InvalidConfigError(f"a stream is of view records, not of '{options.view}'")
        if options.selection.ending_timestamp is not None or not isinstance(
            options.selection.ending_offsets, str
        ):
            raise InvalidConfigError("a stream has no end by number or time")
        if options.selection.file_glob is not None:
            raise InvalidConfigError("a stream follows all segments: it takes no pathGlobFilter")
        if options.max_offsets_per_trigger is not None:
            needs(HAS_READ_LIMITS, "option maxOffsetsPerTrigger", "4.2")
        return KafkaLogStreamReader(options, columns, arrow_schema)

    def _asked(self, schema: StructType) -> tuple[SourceOptions, tuple[Column, ...], pa.Schema]:
        """The options, and the columns of `schema` as ours and as Arrow's."""
        if not self.options:
            # Spark 4.2 knows a catalog table's options when it asks for the schema, and hands none
            # to the reader.
            raise InvalidConfigError(
                "Spark gives the reader of a table none of its options;"
                " use CREATE TEMPORARY VIEW … USING kafkalog OPTIONS (…)"
            )
        options = self._options()
        columns = select_columns(
            options.view, schema.fieldNames(), with_error=options.is_permissive
        )
        names = tuple(column.name for column in columns)
        if options.columns_are_named and names != options.column_names:
            raise InvalidConfigError("option columns and the given schema contradict each other")
        if options.is_permissive and "error" not in names:
            # Without it the row of a bad batch looks like a tombstone.
            raise InvalidConfigError("mode PERMISSIVE needs the column 'error' in the schema")
        return options, columns, asked_schema(columns, schema)

    def _options(self) -> SourceOptions:
        return parse_options(self.options)


class PushingSource(KafkaLogSource):
    """The source for sessions with spark.sql.python.filterPushdown.enabled; `register` picks it."""

    _reader_class: ClassVar[type[KafkaLogReader]] = PushingReader
