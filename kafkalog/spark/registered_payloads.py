"""Payloads by the schemas in the topic `_schemas` of the disk, as columns of a DataFrame.

They are decoded in `mapInArrow`, the same on every release of Spark, by the code that SQL without
Spark runs: a Python object a record, some microseconds each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.payloads.payload import decoded, frames_in_headers
from kafkalog.payloads.registered import SubjectPayloads
from kafkalog.payloads.topic_table import TopicTable
from kafkalog.reading.registered_schemas import topic_tables
from kafkalog.reading.request import ReadMode, read_mode
from kafkalog.spark.internal_topics import load_view
from kafkalog.spark.loading import Paths
from kafkalog.spark.releases import arrow_from_spark, spark_from_arrow
from kafkalog.spark.same_code import on_same_code


def decode_registered(
    df: DataFrame, payloads: SubjectPayloads, *, column: str, into: str
) -> DataFrame:
    """`df` with columns `into`, `<into>Error` and `<into>SchemaId`."""
    fields = [(into, payloads.decoder().type)]
    fields += [(f"{into}Error", pa.string()), (f"{into}SchemaId", pa.int64())]
    added = spark_from_arrow(pa.schema(fields))
    kept = [field for field in df.schema.fields if field.name not in added.names]
    schema = type(df.schema)([*kept, *added.fields])
    work = _Decoding(payloads, column, arrow_from_spark(added))
    return df.select(*(f"`{field.name}`" for field in kept)).mapInArrow(on_same_code(work), schema)


@dataclass(frozen=True)
class _Decoding:
    """The function of a task. added: the columns it puts behind those that come."""

    payloads: SubjectPayloads
    column: str
    added: pa.Schema

    @property
    def side(self) -> str:
        return "key" if self.column == "key" else "value"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = replace(self.payloads.decoder(), type=self.added.field(0).type)
        for batch in batches:
            frames = None
            if "headers" in batch.schema.names:
                frames = frames_in_headers(batch.column("headers"), self.side)
            parts = decoded(batch.column(self.column), decoder, frames)
            columns = [*batch.columns, *(parts.field(i) for i in range(3))]
            schema = pa.schema([*batch.schema, *self.added])
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def topic_frames(spark: SparkSession, path: Paths, *, mode: str) -> dict[str, DataFrame]:
    """A frame for each table of `topic_tables`, by its name."""
    paths = [path] if isinstance(path, str) else list(path)
    return {
        name: _frame(spark, path, table, mode)
        for name, table in topic_tables(paths, mode=read_mode(mode)).items()
    }


def _frame(spark: SparkSession, path: Paths, table: TopicTable, mode: str) -> DataFrame:
    found = table.schema(with_error=read_mode(mode) == ReadMode.PERMISSIVE)
    schema = spark_from_arrow(found)
    columns = table.read_columns(found.names)
    records = load_view(spark, "records", path, table.topic, columns, mode=mode)
    return records.mapInArrow(on_same_code(_Rows(table, arrow_from_spark(schema))), schema)


@dataclass(frozen=True)
class _Rows:
    """The function of a task."""

    table: TopicTable
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.table.rows(batches, self.schema)
