"""Work on partitions or segments as Spark tasks, a pack of them each.

A pack is a number of a range, and each number a partition: nothing is shuffled, no row is sent. The
packs travel with the function, each as compressed JSON that only its own task opens; a function
that large Spark hands to an executor once. DataFrame operations alone, as Spark Connect has no
SparkContext.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.log.json_facts import JsonFacts
from kafkalog.spark.releases import add_tag, remove_tag
from kafkalog.spark.same_code import code_differences, on_same_code

Task = TypeVar("Task", bound=JsonFacts)
Result = TypeVar("Result", bound=JsonFacts)
AnyTask = TypeVar("AnyTask")
AnyResult = TypeVar("AnyResult")


def run_packs(
    spark: SparkSession,
    packs: Sequence[Sequence[Task]],
    work: Callable[[Sequence[Task]], Iterable[Result]],
    task_type: type[Task],
    result_type: type[Result],
    description: str,
) -> list[Result]:
    """`work` on each pack; Spark starts the tasks of a stage in the order given. `work` is pickled
    and must not raise. `description` is what Spark's UI shows of the job.
    """
    if not packs:
        return []
    texts = [zlib.compress(json.dumps([task.to_json() for task in p]).encode(), 1) for p in packs]
    with described(spark, description), code_differences():
        rows = (
            spark.range(0, len(packs), 1, len(packs))
            .mapInArrow(on_same_code(_Work(texts, work, task_type)), "result string")
            .collect()
        )
    return [result_type.from_json(json.loads(row.result)) for row in rows]


def run_pickled_packs(
    spark: SparkSession,
    packs: Sequence[Sequence[AnyTask]],
    work: Callable[[Sequence[AnyTask]], Iterable[AnyResult]],
    description: str,
) -> list[AnyResult]:
    """The same for tasks and results of any kind, which travel pickled: they are of this program,
    and come from its own tasks alone.
    """
    if not packs:
        return []
    packed = [zlib.compress(pickle.dumps(tuple(pack)), 1) for pack in packs]
    with described(spark, description), code_differences():
        rows = (
            spark.range(0, len(packs), 1, len(packs))
            .mapInArrow(on_same_code(_PickledWork(packed, work)), "results binary")
            .collect()
        )
    return [result for row in rows for result in pickle.loads(zlib.decompress(row.results))]


def tasks_at_once(spark: SparkSession) -> int:
    """How many tasks this session runs side by side: spark.default.parallelism, else the cores of
    the executors that are there. Asked twice, since executors may come with the first job.
    """

    def count() -> int:
        ids = spark.range(1_000_000).select(F.spark_partition_id().alias("id"))
        return ids.distinct().count()

    return max(count(), count(), 1)


@contextmanager
def described(spark: SparkSession, description: str) -> Iterator[None]:
    """Jobs started meanwhile carry this text: as their description, and as a tag of the session,
    which is all that Spark Connect has.
    """
    tag = f"kafkalog: {description}".replace(",", ";")
    context = getattr(spark, "sparkContext", None)  # Connect has none
    add_tag(spark, tag)
    if context is not None:
        context.setJobDescription(tag)
    try:
        yield
    finally:
        remove_tag(spark, tag)
        if context is not None:
            context.setJobDescription(None)


class _Work:
    """A task: the number of its pack in, results as JSON out, each as soon as it is there."""

    def __init__(
        self,
        texts: Sequence[bytes],
        work: Callable[[Sequence[Task]], Iterable[Result]],
        task_type: type[Task],
    ) -> None:
        self._texts = texts
        self._work = work
        self._task_type = task_type

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                tasks = json.loads(zlib.decompress(self._texts[number]))
                pack = [self._task_type.from_json(values) for values in tasks]
                for result in self._work(pack):
                    yield pa.RecordBatch.from_pydict({"result": [json.dumps(result.to_json())]})


class _PickledWork:
    """A task: the number of its pack in, its results out at once."""

    def __init__(
        self, packed: Sequence[bytes], work: Callable[[Sequence[AnyTask]], Iterable[AnyResult]]
    ) -> None:
        self._packed = packed
        self._work: Callable[[Sequence[AnyTask]], Iterable[AnyResult]] = work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                pack = pickle.loads(zlib.decompress(self._packed[number]))
                results = zlib.compress(pickle.dumps(list(self._work(pack))), 1)
                yield pa.RecordBatch.from_pydict({"results": [results]})
