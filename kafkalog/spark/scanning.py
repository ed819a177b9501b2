"""All rows of a view in one pass, without the data source.

Spark turns each row of a Python data source into its own format twice: when it leaves the reader,
and in the projection that is put over every source. The same Arrow batches out of `mapInArrow` are
turned once, which is a third less of what a scan costs the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafkalog.errors import KafkaLogError
from kafkalog.spark.releases import DataSourceReader, InputPartition
from kafkalog.spark.same_code import on_same_code
from kafkalog.spark.source import KafkaLogSource


def scan(
    spark: SparkSession, path: str | Sequence[str], *, view: str = "records", **options: str
) -> DataFrame:
    """The rows of `view` below `path`, for whoever wants all of them: columns and options are those
    of the data source, and nothing else narrows what is read.

    What is read is settled now, not when the frame is used: segments that came later are not in it,
    and one that changed meanwhile raises LogChangedError in the task.
    """
    reader, schema = _reader(path, view, options)
    return _frame(spark, schema, reader, reader.partitions())


def scan_when_asked(
    spark: SparkSession, path: str | Sequence[str], view: str, options: Mapping[str, str]
) -> DataFrame:
    """The same where Spark has no data source: what stands against reading is said when the frame
    is used, as a source does, so that one view that cannot be read takes no other with it."""
    reader, schema = _reader(path, view, options)
    try:
        tasks = reader.partitions()
    except KafkaLogError as error:
        return spark.range(0, 1, 1, 1).mapInArrow(_Refusal(error), schema)
    return _frame(spark, schema, reader, tasks)


def _reader(
    path: str | Sequence[str], view: str, options: Mapping[str, str]
) -> tuple[DataSourceReader, StructType]:
    paths = [path] if isinstance(path, str) else list(path)
    source = KafkaLogSource({**options, "view": view, "paths": json.dumps(paths)})
    schema = source.schema()
    return source.reader(schema), schema


def _frame(
    spark: SparkSession,
    schema: StructType,
    reader: DataSourceReader,
    tasks: Sequence[InputPartition],
) -> DataFrame:
    # One row a task: a range of n numbers in n partitions.
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(on_same_code(_Scan(reader, tasks)), schema)


@dataclass(frozen=True, slots=True)
class _Scan:
    """The function of a task: its number in, the batches of its range out."""

    reader: DataSourceReader
    tasks: Sequence[InputPartition]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.reader.read(self.tasks[number])


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The function of a task that says why nothing can be read."""

    error: KafkaLogError

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise self.error
