"""What groups cost their coordinator: who commits most, who rebalances, what a partition of
`__consumer_offsets` has to bear. Estimates from the log as it is: what was compacted away does not
count.

Each is summed up in two steps: rows of any part of the topic become sums, and sums of all parts
together a table. Sums of sums are sums, so the parts may be one or many.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns import group_schemas
from kafkalog.columns.column import TIMESTAMP, arrow_schema
from kafkalog.messages.group_types import CLASSIC, KINDS

TOP_COMMITTERS = arrow_schema(group_schemas.TOP_COMMITTERS, all_nullable=True)
REBALANCES = arrow_schema(group_schemas.REBALANCES, all_nullable=True)
COORDINATOR_LOAD = arrow_schema(group_schemas.COORDINATOR_LOAD, all_nullable=True)

_HOUR_MS = 3_600_000
# Sums are put together when there are so many of them.
_MOST_SUMS = 64

# -- who commits most ------------------------------------------------------------------------------

# Columns of view `offset_commits` that are summed.
COMMITTER_COLUMNS = (
    "group", "offsetsPartition", "isTombstone", "recordBytes", "commitTimestampMs",
)  # fmt: skip
COMMITTER_SUMS = pa.schema(
    [
        ("group", pa.string()), ("coordinatorPartition", pa.int32()), ("commits", pa.int64()),
        ("tombstones", pa.int64()), ("bytes", pa.int64()), ("firstCommitMs", pa.int64()),
        ("lastCommitMs", pa.int64()),
    ]
)  # fmt: skip
_COMMITTER = ("group", "coordinatorPartition")


def committer_sums(commits: Iterable[pa.RecordBatch]) -> pa.Table:
    """COMMITTER_SUMS of rows with COMMITTER_COLUMNS."""
    return _summed(map(_committers, commits), COMMITTER_SUMS, _COMMITTER)


def _committers(batch: pa.RecordBatch) -> pa.Table:
    times = batch["commitTimestampMs"]
    is_tombstone = batch["isTombstone"].cast(pa.int64())
    columns = [
        batch["group"], batch["offsetsPartition"], pc.subtract(1, is_tombstone), is_tombstone,
        batch["recordBytes"].cast(pa.int64()), times, times,
    ]  # fmt: skip
    return _sums(pa.table(columns, schema=COMMITTER_SUMS), _COMMITTER)


def top_committers(sums: Iterable[pa.RecordBatch]) -> pa.Table:
    """TOP_COMMITTERS of COMMITTER_SUMS, the group with the most bytes first."""
    found = _summed(map(_table, sums), COMMITTER_SUMS, _COMMITTER)
    span = pc.subtract(found["lastCommitMs"], found["firstCommitMs"])
    hours = pc.divide(pc.max_element_wise(span, 1).cast(pa.float64()), float(_HOUR_MS))
    rate = pc.divide(found["commits"].cast(pa.float64()), hours)
    rate = pc.if_else(pc.greater(found["commits"], 1), rate, pa.scalar(None, pa.float64()))
    table = found.append_column("commitsPerHour", rate)
    return table.cast(TOP_COMMITTERS).sort_by([("bytes", "descending"), ("group", "ascending")])


# -- who rebalances --------------------------------------------------------------------------------

# Columns of view `group_messages` that are looked at.
REBALANCE_COLUMNS = ("messageType", "key", "value", "timestamp")
# When a generation, or an epoch, began.
GROUP_EPOCHS = pa.schema(
    [("group", pa.string()), ("kind", pa.string()), ("epoch", pa.int32()), ("since", TIMESTAMP)]
)
_KIND_OF = {"GroupMetadata": CLASSIC, **{f"{name}Metadata": kind for name, kind in KINDS.items()}}
_EPOCH = ("group", "kind", "epoch")


def group_epochs(messages: Iterable[pa.RecordBatch]) -> pa.Table:
    """GROUP_EPOCHS of rows with REBALANCE_COLUMNS, one for each generation or epoch."""
    return _summed(map(_epochs, messages), GROUP_EPOCHS, _EPOCH)


def _epochs(batch: pa.RecordBatch) -> pa.Table:
    types = pa.array(list(_KIND_OF), pa.string())
    is_group = pc.and_(pc.is_in(batch["messageType"], types), pc.is_valid(batch["value"]))
    rows = []
    for row in batch.filter(is_group).to_pylist():
        key, value = json.loads(row["key"]), json.loads(row["value"])
        is_classic = row["messageType"] == "GroupMetadata"
        group = key["group"] if is_classic else key["groupId"]
        epoch = value["generation"] if is_classic else value["epoch"]
        rows.append((group, _KIND_OF[row["messageType"]], epoch, row["timestamp"]))
    columns = list(zip(*rows, strict=True)) or [()] * len(GROUP_EPOCHS)
    return pa.table([list(column) for column in columns], schema=GROUP_EPOCHS)


def rebalances(epochs: Iterable[pa.RecordBatch]) -> pa.Table:
    """REBALANCES of GROUP_EPOCHS: a row for each group and hour, in that order."""
    each = _summed(map(_table, epochs), GROUP_EPOCHS, _EPOCH)
    hours = pc.floor_temporal(each["since"], unit="hour")
    each = each.set_column(3, "hour", hours)
    counted = each.group_by(["group", "kind", "hour"], use_threads=False).aggregate(
        [("epoch", "count"), ("epoch", "max")]
    )
    table = counted.rename_columns(REBALANCES.names).cast(REBALANCES)
    return table.sort_by([("group", "ascending"), ("hour", "ascending"), ("kind", "ascending")])


# -- what a partition has to bear ------------------------------------------------------------------

# Columns of view `batches` that are summed.
LOAD_COLUMNS = ("partition", "sizeInBytes", "recordsCount", "maxTimestampMs")
LOAD_SUMS = pa.schema(
    [
        ("coordinatorPartition", pa.int32()), ("bytes", pa.int64()), ("batches", pa.int64()),
        ("records", pa.int64()), ("firstMs", pa.int64()), ("lastMs", pa.int64()),
    ]
)  # fmt: skip
_COORDINATOR = ("coordinatorPartition",)


def load_sums(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """LOAD_SUMS of rows with LOAD_COLUMNS."""
    return _summed(map(_loads, batches), LOAD_SUMS, _COORDINATOR)


def _loads(batch: pa.RecordBatch) -> pa.Table:
    times = batch["maxTimestampMs"]
    columns = [
        batch["partition"], batch["sizeInBytes"].cast(pa.int64()),
        pa.repeat(pa.scalar(1, pa.int64()), len(batch)), batch["recordsCount"].cast(pa.int64()),
        times, times,
    ]  # fmt: skip
    return _sums(pa.table(columns, schema=LOAD_SUMS), _COORDINATOR)


def coordinator_load(sums: pa.Table, commits: pa.Table, groups: pa.Table) -> pa.Table:
    """COORDINATOR_LOAD of LOAD_SUMS, the commits in force and GROUPS, a row a partition."""
    found = _sums(sums, _COORDINATOR)
    offsets_of = _counts(commits["offsetsPartition"])
    groups_of = _counts(groups["coordinatorPartition"])
    partitions = found["coordinatorPartition"].to_pylist()
    span = pc.subtract(found["lastMs"], found["firstMs"])
    seconds = pc.divide(pc.max_element_wise(span, 1).cast(pa.float64()), 1000.0)
    is_several = pc.greater(found["records"], 1)
    made: dict[str, Any] = {
        "offsets": pa.array([offsets_of.get(p, 0) for p in partitions], pa.int64()),
        "groups": pa.array([groups_of.get(p, 0) for p in partitions], pa.int64()),
        "recordsPerSecond": _rate(found["records"], seconds, is_several),
        "bytesPerSecond": _rate(found["bytes"], seconds, is_several),
    }
    columns = [made[n] if n in made else found[n] for n in COORDINATOR_LOAD.names]
    return pa.table(columns, schema=COORDINATOR_LOAD).sort_by("coordinatorPartition")


def _counts(partitions: pa.ChunkedArray) -> dict[int | None, int]:
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(partitions).to_pylist()}


def _rate(sums: pa.ChunkedArray, seconds: pa.ChunkedArray, is_known: Any) -> Any:
    rate = pc.divide(sums.cast(pa.float64()), seconds)
    return pc.if_else(is_known, rate, pa.scalar(None, pa.float64()))


# -- sums ------------------------------------------------------------------------------------------

# How a column is put together; others are added up.
_HOW = {
    "since": "min", "firstCommitMs": "min", "lastCommitMs": "max", "firstMs": "min",
    "lastMs": "max",
}  # fmt: skip


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _summed(parts: Iterable[pa.Table], schema: pa.Schema, key: Sequence[str]) -> pa.Table:
    """Some at a time, so that memory is that of the different keys."""
    kept = [schema.empty_table()]
    for part in parts:
        kept.append(part.cast(schema))
        if len(kept) > _MOST_SUMS:
            kept = [_sums(pa.concat_tables(kept), key)]
    return _sums(pa.concat_tables(kept), key)


def _sums(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Rows of equal keys as one, in the same columns."""
    how = {name: _HOW.get(name, "sum") for name in rows.column_names if name not in key}
    found = rows.group_by(list(key), use_threads=False).aggregate(list(how.items()))
    columns = [found[f"{name}_{how[name]}" if name in how else name] for name in rows.column_names]
    return pa.table(columns, schema=rows.schema)
