"""Offsets of groups: those of `__consumer_offsets`, and beside them those that consumers before 0.9
kept in a ZooKeeper that is dead.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.reading.consumer_offsets.topic_state import COMMITS
from kafkalog.reading.function_views.shared_reads import SharedReads
from kafkalog.reading.zookeeper_tables import OLD_OFFSETS

_SOURCE = pa.field("source", pa.string())


def group_offsets(reads: SharedReads) -> pa.Table:
    """GROUP_OFFSETS; with `zookeeper_dir` in the options ZooKeeper's too. Of these `recordOffset`
    is the zxid, and none expires."""
    options = reads.options
    retention_ms = options.offsets_retention_minutes * 60_000
    return reads.offsets_topic.judged(commits_in_force(reads), options.now_ms, retention_ms)


def commits_in_force(reads: SharedReads) -> pa.Table:
    """In the columns of COMMITS and `source`."""
    commits = reads.offsets_topic.commits()
    commits = commits.append_column(_SOURCE, pa.repeat(OFFSETS_TOPIC, len(commits)))
    if not reads.options.zookeeper_dir:
        return commits
    old = old_commits(reads.zookeeper_tables[OLD_OFFSETS])
    return pa.concat_tables([commits, old], promote_options="default")


def old_commits(table: pa.Table) -> pa.Table:
    """Those in force of the table of ZooKeeper, in the columns of COMMITS that they have and
    `source`: the last one of each group, topic and partition, unless it was deleted."""
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in table.to_pylist():
        name = row["group"], row["topic"], row["partition"]
        if name not in last or row["offset"] > last[name]["offset"]:
            last[name] = row
    rows = [
        {
            "group": row["group"],
            "topic": row["topic"],
            "partition": row["partition"],
            "offset": row["committedOffset"],
            "commitTimestampMs": row["timestampMs"],
            "isTombstone": False,
            "recordOffset": row["offset"],
            "source": row["source"],
        }
        for row in last.values()
        if row["committedOffset"] is not None
    ]
    return pa.Table.from_pylist(rows, COMMITS.append(_SOURCE))
