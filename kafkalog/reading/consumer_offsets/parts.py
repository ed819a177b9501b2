"""A large partition of `__consumer_offsets` by several tasks, and their results put together.

The view `latest_offset_commits` is a task a partition. Here each task has a part of one, and tells
the latest record of each key in it, of groups and members too. Of a key's records in several parts
the one with the highest offset counts, and a tombstone there means that nothing is there.
Coordinators have all of it in memory, and so has this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.column import arrow_schema
from kafkalog.columns.places import rows_batch
from kafkalog.columns.schemas import ERROR, LATEST_RECORDS, OFFSET_COMMITS
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.reading.consumer_offsets.groups import GROUP_MESSAGES
from kafkalog.reading.consumer_offsets.latest import LatestGroupRecords, read_latest_commits
from kafkalog.reading.consumer_offsets.offset_facts import LOG_END_COLUMNS
from kafkalog.reading.consumer_offsets.view import offset_partitions
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.scan import open_paths, plan_scan, read_task
from kafkalog.reading.selection import (
    PartitionSelection,
    furthest_replicas,
    select_partitions,
)
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.splits import SPLIT_BYTES, ScanSplit
from kafkalog.reading.view_reader import ScanTask

# Where there are transactions each part looks at the headers behind it: so many parts at most.
_MOST_PARTS = 4
# A group of thousands of members is some megabytes, and texts of an Arrow array end at 2 GiB.
_MESSAGES_PER_BATCH = 256
# Of several copies of a partition each has its own commits; their messages are one.
_COMMIT_KEY = ("group", "topic", "partition", "offsetsPartition", "path")
_MESSAGE_KEY = ("offsetsPartition", "messageType", "key")


@dataclass(frozen=True, slots=True)
class CommitsPart:
    """Some splits of a partition, and the segments behind them. Can be pickled."""

    splits: tuple[ScanSplit, ...]
    later_paths: tuple[str, ...]

    @property
    def last_path(self) -> str:
        """The partition's last segment, the same of all its parts."""
        return self.later_paths[-1] if self.later_paths else self.splits[-1].path


def plan_latest_records(
    paths: Sequence[str],
    mode: ReadMode = ReadMode.FAILFAST,
    *,
    with_log_ends: bool = False,
    part_bytes: int = SPLIT_BYTES,
) -> list[CommitsPart | ScanTask[PartitionInventory]]:
    """Parts of about `part_bytes` of every partition of the topic below the paths; `with_log_ends`
    also what reads where all partitions there begin and end. With FAILFAST a loss of records that
    is proven raises OffsetOutOfRangeError.
    """
    inventory, named = open_paths(paths)
    return plan_latest_of(
        inventory, named, mode, with_log_ends=with_log_ends, part_bytes=part_bytes
    )


def plan_latest_of(
    inventory: LogInventory,
    named: frozenset[str],
    mode: ReadMode = ReadMode.FAILFAST,
    *,
    with_log_ends: bool = False,
    part_bytes: int = SPLIT_BYTES,
) -> list[CommitsPart | ScanTask[PartitionInventory]]:
    """The same of what is opened already; `named`: the partition directories that were named. Of
    several replicas of a partition the one that goes furthest is read. InvalidConfigError in mode
    FAILFAST for a directory that cannot be read; the others say so and go on.
    """
    selection = PartitionSelection(bears_damage=mode != ReadMode.FAILFAST).naming(named)
    tasks: list[CommitsPart | ScanTask[PartitionInventory]] = []
    wanted = select_partitions(
        inventory,
        selection,
        every_kind=False,
        concerns=lambda name: name.topic == OFFSETS_TOPIC,
    )
    for partition in furthest_replicas(offset_partitions(wanted, selection)):
        size = max(part_bytes, -(-partition.size_in_bytes // _MOST_PARTS))
        # Segments smaller than a part are not cut, which where they have no index costs a walk.
        splits = plan_splits([partition], selection, split_bytes=max(size, SPLIT_BYTES))
        tasks.extend(_parts(splits, size))
    return tasks + (plan_scan("partitions", inventory, selection) if with_log_ends else [])


def read_log_ends(task: ScanTask[PartitionInventory]) -> Iterator[pa.RecordBatch]:
    """Rows of view `partitions`, what there is of them without a walk over headers."""
    return read_task(task, ReadRequest.of(LOG_END_COLUMNS))


def _parts(splits: Sequence[ScanSplit], part_bytes: int) -> Iterator[CommitsPart]:
    """Each split goes to the part that its middle is in.

    Parts follow each other as the log does, so what is behind one is the segments behind its last:
    where markers may lie that end its transactions.
    """
    paths = list(dict.fromkeys(split.path for split in splits))
    ends = accumulate(split.end - split.start for split in splits)
    numbered = [
        ((2 * end - (split.end - split.start)) // (2 * part_bytes), split)
        for end, split in zip(ends, splits, strict=True)
    ]
    for _, group in groupby(numbered, lambda pair: pair[0]):
        part = tuple(split for _, split in group)
        behind = paths[paths.index(part[-1].path) + 1 :]
        yield CommitsPart(part, tuple(behind))


def read_latest_records(
    part: CommitsPart, mode: ReadMode = ReadMode.FAILFAST
) -> Iterator[pa.RecordBatch]:
    """The latest record of each key of the part: columns LATEST_RECORDS, all nullable. Raises as
    the view `latest_offset_commits`; in the other modes a row with an `error` stands for each
    record and batch that cannot be read, DROPMALFORMED too: `consumer_offsets.problems` counts.
    """
    schema = arrow_schema(LATEST_RECORDS, all_nullable=True)
    if mode == ReadMode.DROPMALFORMED:
        mode = ReadMode.PERMISSIVE
    request = ReadRequest.of((*OFFSET_COMMITS, ERROR), mode=mode)
    request = replace(request, schema=arrow_schema(request.columns, all_nullable=True))
    others = LatestGroupRecords()
    found = read_latest_commits(
        part.splits,
        request,
        ReadCounts(),
        later_paths=part.later_paths,
        others=others,
    )
    for batch in found:
        made = dict(zip(request.names, batch.columns, strict=True))
        columns = [
            made[field.name] if field.name in made else pa.nulls(len(batch), field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
    place = {"offsetsPartition": part.splits[0].partition, "path": part.last_path}
    rows = [place | row for row in others.rows()]
    for first in range(0, len(rows), _MESSAGES_PER_BATCH):
        some = rows[first : first + _MESSAGES_PER_BATCH]
        yield rows_batch(some, schema, schema.names)


# -- put together ----------------------------------------------------------------------------------


def commits_in_force(records: pa.Table) -> pa.Table:
    """Of LATEST_RECORDS of all parts."""
    is_commit = pc.and_(pc.is_null(records["messageType"]), pc.is_null(records["error"]))
    return _latest(records.filter(is_commit), _COMMIT_KEY)


def group_messages(records: pa.Table) -> pa.Table:
    """Of LATEST_RECORDS of all parts the columns GROUP_MESSAGES."""
    messages = records.filter(pc.is_valid(records["messageType"]))
    latest = _latest(messages, _MESSAGE_KEY)
    times = latest["timestampMs"]
    columns = [
        latest["offsetsPartition"], latest["messageType"], latest["key"], latest["value"],
        latest["recordOffset"], pc.if_else(pc.equal(times, -1), None, times),
    ]  # fmt: skip
    return pa.table(columns, schema=GROUP_MESSAGES)


def latest_messages(records: pa.Table) -> pa.Table:
    """Of LATEST_RECORDS of all parts the last record of each key of groups and members, tombstones
    and errors too; and all others.
    """
    is_message = pc.and_(pc.is_valid(records["messageType"]), pc.is_valid(records["key"]))
    messages = records.filter(is_message)
    messages = messages.filter(_is_latest(messages, _MESSAGE_KEY))
    return pa.concat_tables([records.filter(pc.invert(is_message)), messages])


def unreadable(records: pa.Table) -> pa.Table:
    """Of LATEST_RECORDS of all parts those with an `error`, if no later one of the key is there."""
    found = latest_messages(records)
    return found.filter(pc.is_valid(found["error"]))


def _latest(records: pa.Table, key: Sequence[str]) -> pa.Table:
    """The record with the highest offset of each key, unless it is a tombstone."""
    is_latest = _is_latest(records, key)
    return records.filter(pc.and_(is_latest, pc.invert(records["isTombstone"])))


def _is_latest(records: pa.Table, key: Sequence[str]) -> pa.Array:
    """Which records have the highest offset of their keys.

    Texts are neither sorted nor taken by row numbers: both make one array of a column, and Arrow's
    texts end at 2 GiB. What is kept is filtered, chunk by chunk.
    """
    # Offsets of several partitions may be equal, so records are ranked: by offset, each rank once.
    # The highest rank of a key then names one record, and the aggregate is over numbers alone.
    order = np.argsort(records["recordOffset"].to_numpy(), kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    ranked = pa.table({name: _numbers(records[name]) for name in key} | {"rank": ranks})
    last = ranked.group_by(key, use_threads=False).aggregate([("rank", "max")])
    is_latest = np.zeros(len(order), np.bool_)
    is_latest[order[last["rank_max"].to_numpy()]] = True
    return pa.array(is_latest)


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A number for each different text; other columns as they are."""
    if not pa.types.is_string(column.type):
        return column
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    return pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())
