"""What the groups of a cluster have committed, from one partition of `__consumer_offsets`: per
partition of a topic the lowest and the highest offset, and who commits more than anybody needs.

A group's commits are all in one partition of the offsets topic, so these are sums that other
partitions are put together with. Rows come as Arrow columns; there is a row a commit in memory only
for a batch.

Source: Kafka GroupMetadataManager, OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.redaction import redacted_name
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
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


@dataclass(frozen=True, slots=True)
class CommittedRange(JsonFacts):
    """Of one partition of a topic: how many groups have committed for it, the lowest and the
    highest offset in force, whose they are, and when (ms) the lowest was committed.
    """

    topic: str
    partition: int
    groups: int
    lowest: int
    lowest_group: str
    lowest_commit_ms: int
    highest: int
    highest_group: str


@dataclass(frozen=True, slots=True)
class BusyCommitter(JsonFacts):
    """A group that commits for a topic oftener than once a second and partition, as far as the log
    still has its commits; `size_in_bytes` are those of keys and values.
    """

    group: str
    topic: str
    commits: int
    partitions: int
    size_in_bytes: int
    first_ms: int
    last_ms: int

    @property
    def commits_per_second(self) -> float:
        """Of all partitions together."""
        return self.commits * 1000 / max(self.last_ms - self.first_ms, 1)


@dataclass(frozen=True, slots=True)
class Commits(JsonFacts):
    """What one partition of the offsets topic tells."""

    ranges: tuple[CommittedRange, ...]
    busy: tuple[BusyCommitter, ...]

    def redacted(self) -> Commits:
        """The same with a digest in place of each group's name."""
        ranges = (
            replace(
                r,
                lowest_group=redacted_name(r.lowest_group),
                highest_group=redacted_name(r.highest_group),
            )
            for r in self.ranges
        )
        busy = (replace(b, group=redacted_name(b.group)) for b in self.busy)
        return Commits(tuple(ranges), tuple(busy))


def read_commits_of(
    partition: PartitionInventory, max_batch_bytes: int = MAX_BATCH_BYTES
) -> Commits:
    """The commits in one partition of `__consumer_offsets`; batches that cannot be read are left
    out. Raises OSError, and LogChangedError where somebody rewrites the log meanwhile.
    """
    return Commits(_ranges(partition, max_batch_bytes), _busy(partition, max_batch_bytes))


def merge_ranges(ranges: Iterable[CommittedRange]) -> dict[tuple[str, int], CommittedRange]:
    """One range a topic's partition."""
    merged: dict[tuple[str, int], CommittedRange] = {}
    for found in ranges:
        key = found.topic, found.partition
        known = merged.get(key)
        if known is None:
            merged[key] = found
            continue
        low = min(known, found, key=lambda r: r.lowest)
        high = max(known, found, key=lambda r: r.highest)
        merged[key] = CommittedRange(
            *key, known.groups + found.groups, low.lowest, low.lowest_group, low.lowest_commit_ms,
            high.highest, high.highest_group,
        )  # fmt: skip
    return merged


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
