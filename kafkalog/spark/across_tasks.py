"""The stages of `operations.across_tasks` as one Spark job: three shuffles of packed rows.

Rows go to the task they name (`repartitionById`), never by the hash of a small number; DataFrame
operations only, as Spark Connect has no SparkContext.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.cleaning.shuffle_rows import ShuffleRow
from kafkalog.operations.across_tasks import AcrossTasks
from kafkalog.operations.clean_result import CleanResult
from kafkalog.spark.same_code import code_differences, on_same_code

_SCHEMA = "target int, plan int, kind int, number int, first long, payload binary"
_ARROW_SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in ("target", "plan", "kind", "number")),
        ("first", pa.int64()),
        ("payload", pa.binary()),
    ]
)
# Rows are of 1 MiB: so many make one of the batches that a worker holds.
_ROWS_PER_BATCH = "8"
_ROWS_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


def run_across_tasks(spark: SparkSession, across: AcrossTasks) -> list[CleanResult]:
    """The result of each plan."""
    tasks = len(across.map_tasks)
    mapped = spark.range(0, tasks, 1, tasks).mapInArrow(
        on_same_code(partial(_map, across)), _SCHEMA
    )
    merged = _stage(mapped, across.mergers, across.merge)
    rewritten = _stage(merged, across.rewrites, across.rewrite)
    swapped = rewritten.repartitionById(len(across.plans), "target").mapInArrow(
        on_same_code(partial(_swap, across)), "result string"
    )
    with _small_batches(spark), code_differences():
        return [CleanResult.from_json(json.loads(row.result)) for row in swapped.collect()]


def _stage(
    rows: DataFrame, tasks: int, stage: Callable[[Iterable[ShuffleRow]], Iterator[ShuffleRow]]
) -> DataFrame:
    return rows.repartitionById(tasks, "target").mapInArrow(
        on_same_code(partial(_run, stage)), _SCHEMA
    )


@contextmanager
def _small_batches(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(_ROWS_SETTING)
    spark.conf.set(_ROWS_SETTING, _ROWS_PER_BATCH)
    try:
        yield
    finally:
        spark.conf.set(_ROWS_SETTING, str(before))


def _map(across: AcrossTasks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column("id").to_pylist():
            yield from map(_packed, across.map(task))


def _run(
    stage: Callable[[Iterable[ShuffleRow]], Iterator[ShuffleRow]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    yield from map(_packed, stage(_rows(batches)))


def _swap(across: AcrossTasks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for result in across.swap(_rows(batches)):
        yield pa.RecordBatch.from_pydict({"result": [json.dumps(result.to_json())]})


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[ShuffleRow]:
    for batch in batches:
        columns = [batch.column(name) for name in _ARROW_SCHEMA.names]
        for r in range(batch.num_rows):
            yield ShuffleRow(*(column[r].as_py() for column in columns))


def _packed(row: ShuffleRow) -> pa.RecordBatch:
    values = (row.target, row.plan, row.kind, row.number, row.first, row.payload)
    return pa.RecordBatch.from_arrays(
        [pa.array([v], t.type) for v, t in zip(values, _ARROW_SCHEMA, strict=True)],
        schema=_ARROW_SCHEMA,
    )
