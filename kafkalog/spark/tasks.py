"""Work on partitions as Spark tasks, one each.

Tasks are the partitions of a range with one row each, so Spark neither merges nor hashes them
together; DataFrame operations only, as Spark Connect has no SparkContext. Tasks and results travel
as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkalog.log.json_facts import JsonFacts

Task = TypeVar("Task", bound=JsonFacts)
Result = TypeVar("Result", bound=JsonFacts)


def run_tasks(
    spark: SparkSession,
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    task_type: type[Task],
    result_type: type[Result],
) -> list[Result]:
    """`work` on each task; Spark starts the tasks of a stage in the order given. `work` is pickled
    and must not raise.
    """
    if not tasks:
        return []
    rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        _Tasks([json.dumps(task.to_json()) for task in tasks], work, task_type), "result string"
    )
    return [result_type.from_json(json.loads(row.result)) for row in rows.collect()]


class _Tasks:
    """The function of a task: ids in, results as JSON out."""

    def __init__(
        self, tasks: Sequence[str], work: Callable[[Task], Result], task_type: type[Task]
    ) -> None:
        self._tasks = tasks
        self._work = work
        self._task_type = task_type

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                task = self._task_type.from_json(json.loads(self._tasks[number]))
                result = self._work(task)
                yield pa.RecordBatch.from_pydict({"result": [json.dumps(result.to_json())]})
