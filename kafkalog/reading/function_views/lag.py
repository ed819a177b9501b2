"""How far groups are behind, by the disk alone: what `kafka-consumer-groups --describe` shows, and
bytes and time.

The tool's LOG-END-OFFSET is the high watermark that the leader answers. On a disk that is only as
fresh as the checkpoint, written every five seconds; a leader that starts again moves it to its
log's end as soon as the in-sync replicas have caught up. So the lag counts to the log's end, and
the high watermark stands beside it. Of several replicas here the leader's is read, else the one
that goes furthest.

Source: Kafka ConsumerGroupCommand, ReplicaManager.checkpointHighWatermarks, Partition.makeLeader.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns import group_schemas
from kafkalog.columns.column import arrow_schema
from kafkalog.columns.schemas import ERROR
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.log_behind import LogBehind, LogEnd, log_behind, log_end
from kafkalog.reading.lookups import high_watermark

LAG = arrow_schema(group_schemas.LAG, all_nullable=True)

BEHIND, AT_END = "behind", "atEnd"
BEYOND_END, BELOW_START = "beyondEnd", "belowStart"
NO_COMMIT, NO_LOG = "noCommit", "noLog"
_NO_LEADER = -1
_LEADERS = ("leader", "isr", "eligibleLeaderReplicas", "lastKnownElr")


def lag(
    commits: pa.Table,
    members: pa.Table,
    inventory: LogInventory,
    changes: pa.Table,
    groups: Collection[str] = (),
) -> pa.Table:
    """LAG of the commits in force, of GROUP_MEMBERS (for partitions without a commit), and of the
    cluster's table `partition_changes` (for leaders), in the order of group, topic, partition; of
    these groups, or of all.
    """
    if groups:
        names = pa.array(sorted(groups), pa.string())
        commits = commits.filter(pc.is_in(commits["group"], names))
        members = members.filter(pc.is_in(members["group"], names))
    unreadable = _unreadable(commits)
    commits = commits.filter(pc.is_valid(commits["offset"]))
    logs = _Logs.of(inventory, changes)
    committed = {
        (row["group"], row["topic"], row["partition"]): row
        for row in commits.select(
            ["group", "topic", "partition", "offset", "commitTimestampMs"]
        ).to_pylist()
    }
    rows = [
        _row(name, committed.get(name), logs)
        for name in sorted({*committed, *_assigned(members, logs)})
    ]
    return pa.Table.from_pylist([*rows, *unreadable], LAG)


def _unreadable(commits: pa.Table) -> list[dict[str, Any]]:
    """A row for each commit that cannot be read, with what its key tells; none where errors are
    left out."""
    if ERROR.name not in commits.column_names:
        return []
    bad = commits.filter(pc.is_valid(commits[ERROR.name]))
    found: list[dict[str, Any]] = bad.select(
        ["group", "topic", "partition", ERROR.name]
    ).to_pylist()
    return found


# -- where the logs are ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Log:
    """The replica that is read, and what was found out of it already."""

    partition: PartitionInventory
    is_leader_here: bool | None
    _ends: list[LogEnd | None] = field(default_factory=list)
    _behind: dict[int, LogBehind] = field(default_factory=dict)

    def end(self) -> LogEnd | None:
        if not self._ends:
            self._ends.append(log_end(self.partition))
        return self._ends[0]

    def behind(self, offset: int, end: LogEnd) -> LogBehind:
        """Groups mostly want the same."""
        if offset not in self._behind:
            self._behind[offset] = log_behind(self.partition, offset, end)
        return self._behind[offset]


@dataclass(frozen=True, slots=True)
class _Logs:
    """By name, and the names of topics by their ids."""

    by_name: Mapping[tuple[str, int], _Log]
    topics: Mapping[str, str]

    @classmethod
    def of(cls, inventory: LogInventory, changes: pa.Table) -> _Logs:
        leaders = _leaders(changes)
        replicas: dict[TopicPartition, list[PartitionInventory]] = {}
        for partition in inventory.partitions:
            if partition.kind == PartitionKind.LIVE:
                replicas.setdefault(partition.topic_partition, []).append(partition)
        nodes = _nodes(inventory)
        logs = {}
        for name, its in replicas.items():
            leading = leaders.get((name.topic, name.partition))
            here = [p for p in its if leading is not None and nodes[p.log_dir] in leading]
            best = max(here or its, key=lambda p: p.log_end_offset)
            is_known = leading is not None and nodes[best.log_dir] is not None
            logs[name.topic, name.partition] = _Log(best, bool(here) if is_known else None)
        topics = {
            p.topic_id: p.topic_partition.topic
            for its in replicas.values()
            for p in its
            if p.topic_id is not None
        }
        return cls(logs, topics)


def _nodes(inventory: LogInventory) -> dict[str, int | None]:
    """The node that a log dir is of, None where its meta.properties does not tell."""
    metas = {
        log_dir: read_log_dir_files(Path(log_dir)).meta
        for log_dir in {partition.log_dir for partition in inventory.partitions}
    }
    return {log_dir: None if meta is None else meta.node_id for log_dir, meta in metas.items()}


def _leaders(changes: pa.Table) -> dict[tuple[str, int], frozenset[int]]:
    """The leader of each partition at the end of the metadata; of one without, as all are when the
    cluster has stopped, the replicas that may lead without losing records, each of them at once.
    """
    found: dict[tuple[str, int], frozenset[int]] = {}
    for batch in changes.select(["topic", "partition", "event", *_LEADERS]).to_batches():
        for row in batch.to_pylist():
            name = row["topic"], row["partition"]
            if row["event"] == "deleted":
                found.pop(name, None)
            elif row["leader"] is not None and row["leader"] != _NO_LEADER:
                found[name] = frozenset([row["leader"]])
            elif may_lead := frozenset(row["isr"] or ()).union(row["eligibleLeaderReplicas"] or ()):
                found[name] = may_lead
            elif row["lastKnownElr"]:
                found[name] = frozenset(row["lastKnownElr"])
    return found


def _assigned(members: pa.Table, logs: _Logs) -> Iterator[tuple[str, str, int]]:
    """What members of consumer groups, classic ones too, have been given: group, topic, partition;
    topics that have no name here are left out.
    """
    for row in members.select(["group", "kind", "assignment"]).to_pylist():
        if row["kind"] not in ("classic", "consumer") or not row["assignment"]:
            continue
        try:
            assignment = json.loads(row["assignment"])
        except ValueError:
            continue  # of a protocol that is no consumer's: base64
        given = assignment.get("assignedPartitions") if isinstance(assignment, dict) else None
        for its in given or ():
            topic = its.get("topic") or logs.topics.get(its.get("topicId", ""))
            if topic is not None:
                yield from ((row["group"], topic, number) for number in its["partitions"])


# -- a row -----------------------------------------------------------------------------------------


def _row(
    name: tuple[str, str, int], commit: Mapping[str, Any] | None, logs: _Logs
) -> dict[str, Any]:
    group, topic, number = name
    offset = None if commit is None else commit["offset"]
    row: dict[str, Any] = {
        "group": group,
        "topic": topic,
        "partition": number,
        "committedOffset": offset,
        "commitTimestampMs": None if commit is None else commit["commitTimestampMs"],
    }
    log = logs.by_name.get((topic, number))
    if log is None:
        return row | {"state": NO_LOG}
    start, end = log.partition.log_start_offset, log.partition.log_end_offset
    row |= {
        "state": _state(offset, start, end),
        "logStartOffset": start,
        "highWatermark": high_watermark(log.partition),
        "logEndOffset": end,
        "isLeaderHere": log.is_leader_here,
    }
    if offset is None:
        return row
    row |= {"lag": end - offset, "lostOffsets": max(start - offset, 0)}
    return row | _size_and_time(log, max(offset, start))


def _state(offset: int | None, start: int, end: int) -> str:
    if offset is None:
        return NO_COMMIT
    if offset > end:
        return BEYOND_END
    if offset < start:
        return BELOW_START
    return AT_END if offset == end else BEHIND


def _size_and_time(log: _Log, offset: int) -> dict[str, Any]:
    """Of what can still be read, from the log start on where the group is below it."""
    partition = log.partition
    try:
        end = log.end()
        row: dict[str, Any] = {"logEndTimestampMs": None if end is None else end.timestamp_ms}
        if offset >= partition.log_end_offset or end is None:
            return row | {"lagBytes": 0, "lagMs": 0}
        if not partition.segments or offset < partition.segments[0].base_offset:
            first = partition.segments[0].base_offset if partition.segments else "none"
            return row | {"error": f"offset {offset} is in tiered storage; here from {first} on"}
        behind = log.behind(offset, end)
    except (KafkaLogError, OSError) as error:
        return {"error": str(error)}
    row |= {
        "lagBytes": behind.size_in_bytes,
        "firstTimestampMs": behind.first_timestamp_ms,
    }
    if end.timestamp_ms is not None and behind.first_timestamp_ms is not None:
        row["lagMs"] = max(end.timestamp_ms - behind.first_timestamp_ms, 0)
    return row
