"""The data source `kafkalog`.

Spark finds it by itself through the package `pyspark_kafkalog`, or is told by `register`.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from kafkalog.columns.schemas import select_columns
from kafkalog.errors import InvalidConfigError
from kafkalog.spark.batch_reader import KafkaLogReader
from kafkalog.spark.options import SourceOptions, parse_options
from kafkalog.spark.types import asked_columns, spark_schema


class KafkaLogSource(DataSource):
    """`spark.read.format("kafkalog")`: views records, batches, segments and partitions of Kafka's
    log directories."""

    @classmethod
    def name(cls) -> str:
        return "kafkalog"

    def schema(self) -> StructType:
        """The columns of option `columns`, or the view's default ones."""
        options = self._options()
        columns = select_columns(
            options.view, options.column_names, with_error=options.is_permissive
        )
        return spark_schema(columns, all_nullable=options.is_permissive)

    def reader(self, schema: StructType) -> KafkaLogReader:
        """A reader of exactly the columns of `schema`; Spark calls it by keyword."""
        if not self.options:
            # Spark 4.2 knows a catalog table's options when it asks for the schema, and hands none
            # to the reader.
            raise InvalidConfigError(
                "Spark gives the reader of a table none of its options;"
                " use CREATE TEMPORARY VIEW … USING kafkalog OPTIONS (…)"
            )
        options = self._options()
        columns, arrow_schema = asked_columns(
            options.view, schema, with_error=options.is_permissive
        )
        names = tuple(column.name for column in columns)
        if options.columns_are_named and names != options.column_names:
            raise InvalidConfigError("option columns and the given schema contradict each other")
        if options.is_permissive and "error" not in names:
            # Without it the row of a bad batch looks like a tombstone.
            raise InvalidConfigError("mode PERMISSIVE needs the column 'error' in the schema")
        return KafkaLogReader(options, columns, arrow_schema)

    def _options(self) -> SourceOptions:
        return parse_options(self.options)
