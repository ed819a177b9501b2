"""Results of a Spark job as each of its tasks ends; `collect` has them when all have.

A task hands its results out twice: as rows, and in an accumulator, whose update comes to the driver
with the end of the task, once for each that ended well. Rows are what counts: what came with no
update is taken from them. Spark Connect has no accumulators, so there all of them come at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from pyspark import Accumulator, AccumulatorParam, InheritableThread
from pyspark.sql import SparkSession

Row = TypeVar("Row", str, bytes)


class _Sent(AccumulatorParam[list[Any]]):
    """In a task a list that grows; on the driver what each task sent goes into a queue."""

    def __init__(self, queue: SimpleQueue[Any]) -> None:
        self._queue: SimpleQueue[Any] | None = queue

    def __getstate__(self) -> dict[str, None]:
        return {"_queue": None}

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:
        if self._queue is not None:
            self._queue.put(value2)
            return value1
        return value1 + value2


class _End:
    """Behind the last task: the rows, or why there are none."""

    def __init__(self, rows: Sequence[Any], error: BaseException | None) -> None:
        self.rows = rows
        self.error = error


class EndedTasks(Generic[Row]):
    """What the tasks of one job hand out. `sent` goes into the function of a task, which calls
    `send` with it for each row that it yields.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._queue: SimpleQueue[list[Row] | _End] = SimpleQueue()
        context = getattr(spark, "sparkContext", None)  # Connect has none
        self.sent: Accumulator[list[Row]] | None = (
            None if context is None else context.accumulator([], _Sent(self._queue))
        )

    def rows(self, collect: Callable[[], Sequence[Row]]) -> Iterator[Row]:
        """Each row that `collect`, which runs the job, gives: as soon as its task has ended.

        Closed before the job has ended, and after an error or Ctrl-C, it waits until no task runs
        any more: a caller may hold locks for them.
        """
        if self.sent is None:
            yield from collect()
            return
        job = InheritableThread(target=self._run, args=(collect,))
        job.start()
        early: Counter[Row] = Counter()
        try:
            while not isinstance(coming := self._queue.get(), _End):
                early.update(coming)
                yield from coming
        finally:
            job.join()
        if coming.error is not None:
            raise coming.error
        for row in coming.rows:
            if early[row]:
                early[row] -= 1
            else:
                yield row

    def _run(self, collect: Callable[[], Sequence[Row]]) -> None:
        try:
            end = _End(collect(), None)
        except BaseException as error:
            end = _End((), error)
        self._queue.put(end)


def send(sent: Accumulator[list[Row]] | None, row: Row) -> Row:
    """In a task: the row, sent as well."""
    if sent is not None:
        sent.add([row])
    return row
