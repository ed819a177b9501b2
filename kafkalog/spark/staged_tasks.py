"""Work in stages of many tasks each as one Spark job: shuffles of packed rows; see
`resources.staged_tasks`, which does the same in processes.

Rows go to the task they name, never by the hash of a small number; DataFrame operations only, as
Spark Connect has no SparkContext.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkalog.log.json_facts import JsonFacts
from kafkalog.resources.staged_tasks import First, ShuffleRow, Stage
from kafkalog.spark.releases import to_tasks
from kafkalog.spark.same_code import code_differences, on_same_code

Result = TypeVar("Result", bound=JsonFacts)

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


def run_stages(
    spark: SparkSession,
    tasks: int,
    first: First,
    stages: Sequence[tuple[int, Stage]],
    last: tuple[int, Callable[[Iterable[ShuffleRow]], Iterable[Result]]],
    result_type: type[Result],
) -> list[Result]:
    """`first` of each number below `tasks`, then each stage by so many tasks, and `last`. All are
    pickled, and must not raise.
    """
    rows = spark.range(0, tasks, 1, tasks).mapInArrow(on_same_code(partial(_first, first)), _SCHEMA)
    for count, stage in stages:
        rows = to_tasks(rows, count, "target").mapInArrow(
            on_same_code(partial(_run, stage)), _SCHEMA
        )
    results = to_tasks(rows, last[0], "target").mapInArrow(
        on_same_code(partial(_last, last[1])), "result string"
    )
    with _small_batches(spark), code_differences():
        return [result_type.from_json(json.loads(row.result)) for row in results.collect()]


@contextmanager
def _small_batches(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(_ROWS_SETTING)
    spark.conf.set(_ROWS_SETTING, _ROWS_PER_BATCH)
    try:
        yield
    finally:
        spark.conf.set(_ROWS_SETTING, str(before))


def _first(first: First, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column("id").to_pylist():
            yield from map(_packed, first(task))


def _run(stage: Stage, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from map(_packed, stage(_rows(batches)))


def _last(
    last: Callable[[Iterable[ShuffleRow]], Iterable[JsonFacts]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for result in last(_rows(batches)):
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
