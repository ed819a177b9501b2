"""The data source `kafkalog`.

Spark finds it by itself through the package `pyspark_kafkalog`, or `register` names it.

Each session starts a Python process that only asks for the names of sources: what the schema and
the readers need, Arrow first of all, is imported in the methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkalog.errors import KafkaLogError
from kafkalog.spark.releases import DataSource, DataSourceReader
from kafkalog.spark.worker_errors import in_one_line

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafkalog.spark.batch_reader import KafkaLogReader
    from kafkalog.spark.stream_reader import KafkaLogStreamReader, RefusingStreamReader


class KafkaLogSource(DataSource):
    """`spark.read.format("kafkalog")`: views records, batches, segments and partitions of Kafka's
    log directories."""

    @classmethod
    def name(cls) -> str:
        return "kafkalog"

    @in_one_line
    def schema(self) -> StructType:
        """The columns of option `columns`, or the view's default ones."""
        from kafkalog.spark.asked_reads import schema_of

        return schema_of(self.options)

    @in_one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of exactly the columns of `schema`; Spark calls it by keyword."""
        from kafkalog.spark.asked_reads import batch_reader_of

        return batch_reader_of(self.options, schema, self._reader_class())

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader | RefusingStreamReader:
        """The same for `spark.readStream`: view records only."""
        from kafkalog.spark.asked_reads import stream_reader_of
        from kafkalog.spark.stream_reader import RefusingStreamReader

        try:
            return stream_reader_of(self.options, schema)
        except KafkaLogError as error:
            # pyspark would stop the reader that there is not, and show that error instead.
            return RefusingStreamReader(error)

    def _reader_class(self) -> type[KafkaLogReader]:
        # With a reader that takes filters every query fails in a session that does not push them.
        from kafkalog.spark.batch_reader import KafkaLogReader

        return KafkaLogReader


class PushingSource(KafkaLogSource):
    """The source for sessions with spark.sql.python.filterPushdown.enabled; `register` picks it."""

    def _reader_class(self) -> type[KafkaLogReader]:
        from kafkalog.spark.batch_reader import PushingReader

        return PushingReader
