"""What a load of the data source asks for: its schema, and the reader of it.

Apart from `source`, which each session starts a process for that only wants to know its name.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkalog.columns.column import Column
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.source_options import SourceOptions, parse_options
from kafkalog.reading.views import select_columns
from kafkalog.spark.batch_reader import KafkaLogReader
from kafkalog.spark.releases import HAS_READ_LIMITS, DataSourceReader, needs
from kafkalog.spark.stream_reader import KafkaLogStreamReader
from kafkalog.spark.transactions_view import OpenTransactionsOptions, is_open_transactions
from kafkalog.spark.types import asked_schema, spark_schema

_Asked = tuple[SourceOptions, tuple[Column, ...], pa.Schema]


def schema_of(given: Mapping[str, str]) -> StructType:
    """The columns of option `columns`, or the view's default ones."""
    if is_open_transactions(given):
        return OpenTransactionsOptions.of(given).schema
    options = parse_options(given)
    columns = select_columns(options.view, options.column_names, with_error=options.is_permissive)
    return spark_schema(columns, all_nullable=options.is_permissive)


def batch_reader_of(
    given: Mapping[str, str], schema: StructType, reader: type[KafkaLogReader]
) -> DataSourceReader:
    """A `reader` of exactly the columns of `schema`."""
    if is_open_transactions(given):
        return OpenTransactionsOptions.of(given).reader(schema)
    return reader(*_asked(given, schema))


def stream_reader_of(given: Mapping[str, str], schema: StructType) -> KafkaLogStreamReader:
    """The same for a stream: view records only."""
    if is_open_transactions(given):
        raise InvalidConfigError("a stream is of view records, not of 'open_transactions'")
    options, columns, arrow_schema = _asked(given, schema)
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


def _asked(given: Mapping[str, str], schema: StructType) -> _Asked:
    """The options, and the columns of `schema` as ours and as Arrow's."""
    if not given:
        # Spark 4.2 knows a catalog table's options when it asks for the schema, and hands none to
        # the reader.
        raise InvalidConfigError(
            "Spark gives the reader of a table none of its options;"
            " use CREATE TEMPORARY VIEW … USING kafkalog OPTIONS (…)"
        )
    options = parse_options(given)
    columns = select_columns(options.view, schema.fieldNames(), with_error=options.is_permissive)
    names = tuple(column.name for column in columns)
    if options.columns_are_named and names != options.column_names:
        raise InvalidConfigError("option columns and the given schema contradict each other")
    if options.is_permissive and "error" not in names:
        # Without it the row of a bad batch looks like a tombstone.
        raise InvalidConfigError("mode PERMISSIVE needs the column 'error' in the schema")
    return options, columns, asked_schema(columns, schema)
