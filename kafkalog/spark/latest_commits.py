"""What `__consumer_offsets` says at its end: the offset commits in force and the last records of
groups and members, in one pass by several tasks a partition.

A task's rows travel packed, a row each, to one task that puts them together: each shuffle, sort,
aggregate and join of wide rows that Spark plans instead is more code that it generates and compiles
in a fresh session, which took longer than reading twenty million commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.reading.consumer_offsets import groups, offset_facts
from kafkalog.reading.consumer_offsets.problems import ERROR_FIELD
from kafkalog.reading.consumer_offsets.topic_state import COMMITS, OffsetsTopicState
from kafkalog.reading.request import ReadMode
from kafkalog.spark.loading import Paths
from kafkalog.spark.releases import spark_from_arrow
from kafkalog.spark.same_code import on_same_code

if TYPE_CHECKING:
    from kafkalog.log.inventory import PartitionInventory
    from kafkalog.reading.consumer_offsets.parts import CommitsPart
    from kafkalog.reading.view_reader import ScanTask

_PACKED = pa.schema([("isRecords", pa.bool_()), ("payload", pa.binary())])


@dataclass(frozen=True, slots=True)
class LatestRecords:
    """Frames over one that is read once and kept: what the tasks found, packed. `mode` as in
    OffsetsTopicState.
    """

    packed: DataFrame
    mode: ReadMode

    @property
    def commits(self) -> DataFrame:
        """The rows of the view `latest_offset_commits`."""
        return self._frame(OffsetsTopicState.commits, COMMITS, with_errors=True)

    @property
    def messages(self) -> DataFrame:
        """The last record of each key of groups and members: columns partition, messageType, key,
        value, offset, timestampMs.
        """
        return self._frame(OffsetsTopicState.messages, groups.GROUP_MESSAGES)

    @property
    def groups(self) -> DataFrame:
        """A row a group, simple ones too."""
        return self._frame(OffsetsTopicState.groups, groups.GROUPS, with_errors=True)

    @property
    def members(self) -> DataFrame:
        """A row a member of a group."""
        return self._frame(OffsetsTopicState.members, groups.GROUP_MEMBERS, with_errors=True)

    @property
    def use(self) -> DataFrame:
        """What decides about a group's offsets, a row a group."""
        return self._frame(OffsetsTopicState.use, offset_facts.GROUP_USE)

    @property
    def log_ends(self) -> DataFrame:
        """Where the partitions on the disk begin and end."""
        return self._frame(OffsetsTopicState.log_ends, offset_facts.LOG_ENDS)

    def offsets(self, now_ms: int, retention_ms: int) -> DataFrame:
        """The commits with their lag and when they expire, see `offset_facts.GROUP_OFFSETS`."""
        judged = partial(OffsetsTopicState.offsets, now_ms=now_ms, retention_ms=retention_ms)
        return self._frame(judged, offset_facts.GROUP_OFFSETS, with_errors=True)

    def _frame(
        self,
        function: Callable[[OffsetsTopicState], pa.Table],
        schema: pa.Schema,
        *,
        with_errors: bool = False,
    ) -> DataFrame:
        """with_errors: in PERMISSIVE the table has a column more."""
        if with_errors and self.mode == ReadMode.PERMISSIVE:
            schema = schema.append(ERROR_FIELD)
        work = partial(_put_together, function, mode=self.mode)
        return self.packed.mapInArrow(on_same_code(work), spark_from_arrow(schema))


def latest_records(
    spark: SparkSession,
    path: Paths,
    *,
    with_log_ends: bool = False,
    mode: ReadMode = ReadMode.FAILFAST,
) -> LatestRecords:
    """Without rows where there is no such topic below `path`."""
    # Needs kernels; nobody else in this module does.
    from kafkalog.reading.consumer_offsets.parts import plan_latest_records

    paths = [path] if isinstance(path, str) else list(path)
    tasks = plan_latest_records(paths, mode, with_log_ends=with_log_ends)
    schema = spark_from_arrow(_PACKED)
    if not tasks:
        return LatestRecords(spark.createDataFrame([], schema), mode)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    read = on_same_code(_Read(tasks, mode))
    return LatestRecords(numbers.mapInArrow(read, schema).repartition(1).cache(), mode)


@dataclass(frozen=True, slots=True)
class _Read:
    """The function of a task: its number in, what it found out."""

    tasks: Sequence[CommitsPart | ScanTask[PartitionInventory]]
    mode: ReadMode

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafkalog.reading.consumer_offsets.parts import (
            CommitsPart,
            read_latest_records,
            read_log_ends,
        )
        from kafkalog.spark.batch_reader import leave_modules_to_no_collector

        leave_modules_to_no_collector()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                task = self.tasks[number]
                is_records = isinstance(task, CommitsPart)
                found = read_latest_records(task, self.mode) if is_records else read_log_ends(task)
                yield from (_packed(is_records, rows) for rows in found)


def _packed(is_records: bool, rows: pa.RecordBatch) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_LZ4) as writer:
        writer.write_batch(rows)
    columns = [pa.array([is_records]), pa.array([sink.getvalue().to_pybytes()])]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def _put_together(
    function: Callable[[OffsetsTopicState], pa.Table],
    batches: Iterator[pa.RecordBatch],
    *,
    mode: ReadMode,
) -> Iterator[pa.RecordBatch]:
    found: dict[bool, list[pa.Table]] = {True: [], False: []}
    for batch in batches:
        for is_records, payload in zip(batch["isRecords"], batch["payload"], strict=True):
            table = pa.ipc.open_stream(payload.as_buffer()).read_all()
            found[is_records.as_py()].append(table)
    yield from function(OffsetsTopicState.of(found[True], found[False], mode)).to_batches()


def judged_offsets(commits: DataFrame, now_ms: int, retention_ms: int) -> DataFrame:
    """The same of commits that were joined with `log_ends` and `use` by Spark."""
    work = partial(_judged, now_ms=now_ms, retention_ms=retention_ms)
    schema = offset_facts.GROUP_OFFSETS
    if ERROR_FIELD.name in commits.columns:
        schema = schema.append(ERROR_FIELD)
    return commits.mapInArrow(on_same_code(work), spark_from_arrow(schema))


def _judged(
    batches: Iterator[pa.RecordBatch], now_ms: int, retention_ms: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        yield from offset_facts.group_offsets(table, now_ms, retention_ms).to_batches()
