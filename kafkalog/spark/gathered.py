"""What is made of whole frames by code that other engines use, too: in one task, of Arrow tables.

The frames are small, or summed up by the tasks that read them. Their rows travel packed, a row a
batch, so that Spark plans no join, sort or aggregate of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.releases import arrow_from_spark, spark_from_arrow
from kafkalog.spark.same_code import on_same_code

_PACKED = pa.schema([("part", pa.string()), ("payload", pa.binary())])
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")

Batches = Iterable[pa.RecordBatch]


def summed_up(
    frame: DataFrame, sums: Callable[[Batches], pa.Table], schema: pa.Schema
) -> DataFrame:
    """The sums of the rows of each task."""
    return frame.mapInArrow(on_same_code(partial(_table, sums)), spark_from_arrow(schema))


def made_in_one_task(
    frame: DataFrame, table: Callable[[Batches], pa.Table], schema: pa.Schema
) -> DataFrame:
    """A table of all rows of a frame, in whatever order they come."""
    return summed_up(frame.repartition(1), table, schema)


def _table(function: Callable[[Batches], pa.Table], rows: Batches) -> Iterator[pa.RecordBatch]:
    yield from function(rows).to_batches()


def made_of_all(
    spark: SparkSession,
    frames: Mapping[str, DataFrame],
    table: Callable[[Mapping[str, pa.Table]], pa.Table],
    schema: pa.Schema,
) -> DataFrame:
    """A table of several frames, which get the names that they have here; each frame is a table
    without rows where it has none.
    """
    packed = [
        frame.mapInArrow(on_same_code(partial(_pack, name)), spark_from_arrow(_PACKED))
        for name, frame in frames.items()
    ]
    # So that there is a row, and with it a task that makes the table, where no frame has one.
    packed.append(spark.sql("SELECT '' AS part, CAST(NULL AS BINARY) AS payload"))
    schemas = {name: arrow_from_spark(frame.schema) for name, frame in frames.items()}
    whole = reduce(DataFrame.unionByName, packed).repartition(1)
    work = partial(_put_together, table, schemas)
    return whole.mapInArrow(on_same_code(work), spark_from_arrow(schema))


def _pack(name: str, rows: Batches) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=_LZ4) as writer:
            writer.write_batch(batch)
        columns = [pa.array([name]), pa.array([sink.getvalue().to_pybytes()], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def _put_together(
    table: Callable[[Mapping[str, pa.Table]], pa.Table],
    schemas: Mapping[str, pa.Schema],
    rows: Batches,
) -> Iterator[pa.RecordBatch]:
    found = {name: [schema.empty_table()] for name, schema in schemas.items()}
    for batch in rows:
        for name, payload in zip(batch["part"], batch["payload"], strict=True):
            if payload.is_valid:
                part = pa.ipc.open_stream(payload.as_buffer()).read_all()
                found[name.as_py()].append(part.cast(schemas[name.as_py()]))
    whole = {name: pa.concat_tables(parts) for name, parts in found.items()}
    yield from table(whole).to_batches()
