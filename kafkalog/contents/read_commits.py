"""What one partition of `__consumer_offsets` tells of its groups' commits (`committed_offsets`).

Rows come as Arrow columns; there is a row a commit in memory only for a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.contents.committed_offsets import BusyCommitter, Commits, CommittedRange
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.consumer_offsets.commits import read_commit_history
from kafkalog.reading.consumer_offsets.latest import read_latest_commits
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.views import select_columns

# Who commits oftener than once a second for each partition, counted over so many commits.
_BUSY_PER_SECOND = 1.0
_BUSY_COMMITS = 1000
_MOST_BUSY = 10
# Sums are put together when there are so many rows of them.
_MERGE_ROWS = 1 << 18


def read_commits_of(
    partition: PartitionInventory, max_batch_bytes: int = MAX_BATCH_BYTES
) -> Commits:
    """The commits in one partition of `__consumer_offsets`; batches that cannot be read are left
    out. Raises OSError, and LogChangedError where somebody rewrites the log meanwhile.
    """
    return Commits(_ranges(partition, max_batch_bytes), _busy(partition, max_batch_bytes))


def _ranges(partition: PartitionInventory, max_batch_bytes: int) -> tuple[CommittedRange, ...]:
    names = ("topic", "partition", "group", "offset", "commitTimestampMs")
    table = _table(_batches(partition, names, max_batch_bytes, latest=True), names)
    if not table.num_rows:
        return ()
    ordered = table.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
    grouped = ordered.group_by(["topic", "partition"], use_threads=False).aggregate(
        [
            ("group", "count"), ("offset", "first"), ("group", "first"),
            ("commitTimestampMs", "first"), ("offset", "last"), ("group", "last"),
        ]
    )  # fmt: skip
    columns = (
        "topic", "partition", "group_count", "offset_first", "group_first",
        "commitTimestampMs_first", "offset_last", "group_last",
    )  # fmt: skip
    rows = zip(*(grouped.column(name).to_pylist() for name in columns), strict=True)
    return tuple(CommittedRange(*row) for row in rows)


def _busy(partition: PartitionInventory, max_batch_bytes: int) -> tuple[BusyCommitter, ...]:
    names = ("group", "topic", "partition", "commitTimestampMs", "recordBytes", "isTombstone")
    parts: list[pa.Table] = []
    rows = 0
    for batch in _batches(partition, names, max_batch_bytes, latest=False):
        commits = batch.filter(pc.invert(batch.column("isTombstone")))
        parts.append(_summed(_with_counts(pa.Table.from_batches([commits]))))
        rows += parts[-1].num_rows
        if rows > _MERGE_ROWS:
            parts = [_summed(pa.concat_tables(parts))]
            rows = min(parts[0].num_rows, _MERGE_ROWS // 2)
    if not parts:
        return ()
    by_partition = _summed(pa.concat_tables(parts))
    summed = by_partition.group_by(["group", "topic"]).aggregate(
        [
            ("commits", "sum"), ("partition", "count"), ("bytes", "sum"), ("first", "min"),
            ("last", "max"),
        ]
    )  # fmt: skip
    columns = ("group", "topic", "commits_sum", "partition_count", "bytes_sum", "first_min",
               "last_max")  # fmt: skip
    seconds = pc.divide(
        pc.cast(pc.subtract(summed["last_max"], summed["first_min"]), "double"), 1e3
    )
    allowed = pc.multiply(pc.cast(summed["partition_count"], "double"), seconds)
    often = pc.greater(
        pc.cast(summed["commits_sum"], "double"), pc.multiply(allowed, _BUSY_PER_SECOND)
    )
    many = pc.greater_equal(summed["commits_sum"], _BUSY_COMMITS)
    found = summed.filter(pc.and_(often, many)).sort_by([("bytes_sum", "descending")])
    rows_found = zip(*(found.column(name).to_pylist() for name in columns), strict=True)
    return tuple(BusyCommitter(*row) for row in rows_found)[:_MOST_BUSY]


_SUMS = {"commits": "sum", "bytes": "sum", "first": "min", "last": "max"}
_KEYS = ["group", "topic", "partition"]


def _with_counts(commits: pa.Table) -> pa.Table:
    times = commits["commitTimestampMs"]
    return pa.table(
        {
            "group": commits["group"],
            "topic": commits["topic"],
            "partition": commits["partition"],
            "commits": pc.cast(pc.is_valid(commits["group"]), pa.int64()),
            "bytes": pc.cast(commits["recordBytes"], pa.int64()),
            "first": times,
            "last": times,
        }
    )


def _summed(table: pa.Table) -> pa.Table:
    summed = table.group_by(_KEYS).aggregate(list(_SUMS.items()))
    return summed.select([*_KEYS, *(f"{n}_{how}" for n, how in _SUMS.items())]).rename_columns(
        [*_KEYS, *_SUMS]
    )


def _batches(
    partition: PartitionInventory, names: tuple[str, ...], max_batch_bytes: int, *, latest: bool
) -> Iterator[pa.RecordBatch]:
    view = "latest_offset_commits" if latest else "offset_commits"
    request = ReadRequest.of(
        select_columns(view, names), mode=ReadMode.DROPMALFORMED, max_batch_bytes=max_batch_bytes
    )
    splits = plan_splits([partition], PartitionSelection())
    read = read_latest_commits if latest else read_commit_history
    return read(splits, request, ReadCounts())


def _table(batches: Iterable[pa.RecordBatch], names: tuple[str, ...]) -> pa.Table:
    schema = ReadRequest.of(select_columns("latest_offset_commits", names)).schema
    return pa.Table.from_batches(list(batches), schema)
