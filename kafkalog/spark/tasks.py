"""Work on partitions or segments as Spark tasks, a pack of them each.

A pack is a number of a range, and each number a partition: nothing is shuffled, no row is sent. The
packs travel with the function, each as compressed JSON that only its own task opens; a function
that large Spark hands to an executor once. Where there is a SparkContext the numbers are an RDD: in
a fresh session the first query of a DataFrame costs the JVM three times what the tasks of an RDD
do (7 and 2 s of CPU on a busy machine). Spark Connect has none: a DataFrame there.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.log.json_facts import JsonFacts
from kafkalog.spark.ended_tasks import EndedTasks, send
from kafkalog.spark.releases import add_tag, remove_tag
from kafkalog.spark.same_code import code_differences, on_same_code

Task = TypeVar("Task", bound=JsonFacts)
Result = TypeVar("Result", bound=JsonFacts)
AnyTask = TypeVar("AnyTask")
AnyResult = TypeVar("AnyResult")
Row = TypeVar("Row", str, bytes)


def run_packs(
    spark: SparkSession,
    packs: Sequence[Sequence[Task]],
    work: Callable[[Sequence[Task]], Iterable[Result]],
    task_type: type[Task],
    result_type: type[Result],
    description: str,
) -> Iterator[Result]:
    """`work` on each pack, and its results when its task has ended; Spark starts the tasks of a
    stage in the order given. `work` is pickled and must not raise. `description` is what Spark's UI
    shows of the job.
    """
    texts = [zlib.compress(json.dumps([task.to_json() for task in p]).encode(), 1) for p in packs]
    ended = EndedTasks[str](spark)
    function = _Work(texts, work, task_type, ended.sent)
    for text in _rows(spark, len(packs), function, "result string", description, ended, str):
        yield result_type.from_json(json.loads(text))


def run_pickled_packs(
    spark: SparkSession,
    packs: Sequence[Sequence[AnyTask]],
    work: Callable[[Sequence[AnyTask]], Iterable[AnyResult]],
    description: str,
) -> Iterator[AnyResult]:
    """The same for tasks and results of any kind, which travel pickled: they are of this program,
    and come from its own tasks alone.
    """
    packed = [zlib.compress(pickle.dumps(tuple(pack)), 1) for pack in packs]
    ended = EndedTasks[bytes](spark)
    function = _PickledWork(packed, work, ended.sent)
    for results in _rows(spark, len(packs), function, "result binary", description, ended, bytes):
        yield from pickle.loads(zlib.decompress(results))


def _rows(
    spark: SparkSession,
    tasks: int,
    function: Callable[[Iterator[int]], Iterator[Row]],
    schema: str,
    description: str,
    ended: EndedTasks[Row],
    kind: Callable[[Row], Row],
) -> Iterator[Row]:
    """What `function` makes of each number below `tasks`, in a task of its own. `kind`: the type of
    a row, since before Spark 4.1 one of bytes is a bytearray.
    """
    if not tasks:
        return iter(())
    context = getattr(spark, "sparkContext", None)  # Connect has none

    def collect() -> list[Row]:
        with described(spark, description), code_differences():
            if context is None:
                numbers = spark.range(0, tasks, 1, tasks)
                frame = numbers.mapInArrow(on_same_code(_InArrow(function)), schema)
                return [kind(row.result) for row in frame.collect()]
            numbers = context.parallelize(range(tasks), tasks)
            return [kind(row) for row in numbers.mapPartitions(on_same_code(function)).collect()]

    return ended.rows(collect)


class _InArrow(Generic[Row]):
    """The same function for batches of numbers and batches of rows."""

    def __init__(self, function: Callable[[Iterator[int]], Iterator[Row]]) -> None:
        self._function: Callable[[Iterator[int]], Iterator[Row]] = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in self._function(iter(batch.column("id").to_pylist())):
                yield pa.RecordBatch.from_pydict({"result": [row]})


def tasks_at_once(spark: SparkSession) -> int:
    """How many tasks this session runs side by side: spark.default.parallelism, else the cores of
    the executors that are there. Asked twice, since executors may come with the first job.
    """

    def count() -> int:
        ids = spark.range(1_000_000).select(F.spark_partition_id().alias("id"))
        return ids.distinct().count()

    return max(count(), count(), 1)


def usual_tasks(spark: SparkSession) -> int:
    """The same as far as the driver knows, which starts no job: executors may still be to come.
    With Spark Connect it knows the setting alone, 1 without it.
    """
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return max(int(context.defaultParallelism), 1)
    given = str(spark.conf.get("spark.default.parallelism", "1"))
    return max(int(given), 1) if given.isdigit() else 1


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
        sent: Accumulator[list[str]] | None,
    ) -> None:
        self._texts = texts
        self._work = work
        self._task_type = task_type
        self._sent = sent

    def __call__(self, numbers: Iterator[int]) -> Iterator[str]:
        for number in numbers:
            tasks = json.loads(zlib.decompress(self._texts[number]))
            pack = [self._task_type.from_json(values) for values in tasks]
            for result in self._work(pack):
                yield send(self._sent, json.dumps(result.to_json()))


class _PickledWork:
    """A task: the number of its pack in, its results out at once."""

    def __init__(
        self,
        packed: Sequence[bytes],
        work: Callable[[Sequence[AnyTask]], Iterable[AnyResult]],
        sent: Accumulator[list[bytes]] | None,
    ) -> None:
        self._packed = packed
        self._work: Callable[[Sequence[AnyTask]], Iterable[AnyResult]] = work
        self._sent = sent

    def __call__(self, numbers: Iterator[int]) -> Iterator[bytes]:
        for number in numbers:
            pack = pickle.loads(zlib.decompress(self._packed[number]))
            yield send(self._sent, zlib.compress(pickle.dumps(list(self._work(pack))), 1))
