"""THE table of function views: a row a view, with its columns and how it is made.

Who adds one adds its columns to `columns`, and a row here with either a function that makes its
rows of `SharedReads`, or a query. Spark's functions, DuckDB's views and the documents' tables have
the names and columns of the row. Light to import: what makes the rows is imported when they are
first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalog.columns import coordinator_schemas, group_schemas, record_summaries
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES, OLD_CONSUMER_OFFSETS
from kafkalog.columns.column import Column, arrow_schema
from kafkalog.columns.schemas import ERROR
from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import (
    CLUSTER_METADATA_TOPIC,
    OFFSETS_TOPIC,
    REMOTE_LOG_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kafkalog.reading.function_views import record_queries
from kafkalog.reading.function_views.record_queries import RecordQuery
from kafkalog.reading.request import ReadMode

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.reading.function_views.shared_reads import SharedReads

# Kafka's default of offsets.retention.minutes: seven days.
OFFSETS_RETENTION_MINUTES = 7 * 24 * 60
# What the names of the views of a dead ZooKeeper begin with.
ZOOKEEPER_PREFIX = "zookeeper_"


@dataclass(frozen=True, slots=True)
class FunctionView:
    """One view: `made` of what was read, or a `query` over a view of the source.

    row: what a row of it is. has_errors: in mode PERMISSIVE it has a column `error` more.
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    made: Callable[[SharedReads], pa.Table] | None = None
    query: RecordQuery | None = None
    has_errors: bool = False

    @property
    def reads(self) -> str:
        """The view of the source that the query is over, whose options it takes; empty without."""
        return "" if self.query is None else self.query.view

    @property
    def schema(self) -> pa.Schema:
        """Of its rows in every engine; each column can be null."""
        return arrow_schema(self.columns, all_nullable=True)

    def schema_in(self, mode: ReadMode) -> pa.Schema:
        """The same in a mode of reading."""
        shows_errors = self.has_errors and mode == ReadMode.PERMISSIVE
        columns = (*self.columns, ERROR) if shows_errors else self.columns
        return arrow_schema(columns, all_nullable=True)


# -- what makes the rows ---------------------------------------------------------------------------


def _groups(reads: SharedReads) -> pa.Table:
    return reads.offsets_topic.groups()


def _group_members(reads: SharedReads) -> pa.Table:
    return reads.offsets_topic.members()


def _group_offsets(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views.group_offsets import group_offsets

    return group_offsets(reads)


def _lag(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views.group_offsets import commits_in_force
    from kafkalog.reading.function_views.lag import lag

    members = reads.offsets_topic.members()
    return lag(commits_in_force(reads), members, reads.inventory, reads.partition_changes)


def _top_committers(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views import group_costs

    commits = reads.topic("offset_commits", OFFSETS_TOPIC, group_costs.COMMITTER_COLUMNS)
    found = group_costs.top_committers(group_costs.committer_sums(commits).to_batches())
    return reads.with_errors(found, ("offset_commits", OFFSETS_TOPIC))


def _rebalances(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views import group_costs

    messages = reads.topic("group_messages", OFFSETS_TOPIC, group_costs.REBALANCE_COLUMNS)
    found = group_costs.rebalances(group_costs.group_epochs(messages).to_batches())
    return reads.with_errors(found, ("group_messages", OFFSETS_TOPIC))


def _coordinator_load(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views import group_costs

    sums = group_costs.load_sums(reads.topic("batches", OFFSETS_TOPIC, group_costs.LOAD_COLUMNS))
    state = reads.offsets_topic
    found = group_costs.coordinator_load(sums, state.commits(), state.groups())
    return reads.with_errors(found, ("batches", OFFSETS_TOPIC))


def _transactional_ids(reads: SharedReads) -> pa.Table:
    return reads.with_errors(reads.transactional_ids, ("messages", TRANSACTION_TOPIC))


def _open_transactions(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views import transactions

    now_ms = reads.options.now_ms
    found = transactions.find_open_transactions(reads.inventory, now_ms)
    # Only open transactions on the topic itself can block a group.
    is_of_groups = any(each.topic == OFFSETS_TOPIC for each in found)
    columns = transactions.BLOCKED_COLUMNS
    commits = reads.topic("offset_commits", OFFSETS_TOPIC, columns) if is_of_groups else ()
    blocked = transactions.blocked_groups(commits)
    rows = transactions.open_transactions(found, reads.transactional_ids, blocked, now_ms)
    sources = ("messages", TRANSACTION_TOPIC), ("offset_commits", OFFSETS_TOPIC)
    return reads.with_errors(rows, *sources)


def _remote_segments(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views import remote_segments as table

    found = table.remote_segments(reads.topic("messages", REMOTE_LOG_TOPIC, table.EVENT_COLUMNS))
    return reads.with_errors(found, ("messages", REMOTE_LOG_TOPIC))


def _share_states(reads: SharedReads) -> pa.Table:
    from kafkalog.reading.function_views import share_states as table

    found = table.share_states(reads.topic("messages", SHARE_STATE_TOPIC, table.STATE_COLUMNS))
    return reads.with_errors(found, ("messages", SHARE_STATE_TOPIC))


def _cluster_table(name: str) -> Callable[[SharedReads], pa.Table]:
    def rows(reads: SharedReads) -> pa.Table:
        reads.note_absent(CLUSTER_METADATA_TOPIC)
        return reads.cluster_tables[name]

    return rows


def _zookeeper_table(name: str) -> Callable[[SharedReads], pa.Table]:
    return lambda reads: reads.zookeeper_tables[name]


# -- the table -------------------------------------------------------------------------------------

_OF_RECORDS = (
    FunctionView(
        "latest_by_key", "a key's last committed record in a partition",
        record_summaries.LATEST_BY_KEY, query=record_queries.LATEST_BY_KEY,
    ),
    FunctionView(
        "key_stats", "a topic: its keys and what they cost", record_summaries.KEY_STATS,
        query=record_queries.KEY_STATS,
    ),
    FunctionView(
        "hot_keys", "a key of a topic: what it costs", record_summaries.HOT_KEYS,
        query=record_queries.HOT_KEYS,
    ),
    FunctionView(
        "gaps", "a range of offsets of which some have no record", record_summaries.GAPS,
        query=record_queries.GAPS,
    ),
)  # fmt: skip
_OF_TOPICS = (
    FunctionView("groups", "a group", group_schemas.GROUPS, _groups, has_errors=True),
    FunctionView(
        "group_members", "a member of a group", group_schemas.GROUP_MEMBERS, _group_members,
        has_errors=True,
    ),
    FunctionView(
        "group_offsets", "a group's offset of a partition", group_schemas.GROUP_OFFSETS,
        _group_offsets, has_errors=True,
    ),
    # Its column `error` is there in each mode.
    FunctionView("lag", "a group's lag in a partition", group_schemas.LAG, _lag),
    FunctionView(
        "top_committers", "a group, the one with the most bytes first",
        group_schemas.TOP_COMMITTERS, _top_committers, has_errors=True,
    ),
    FunctionView(
        "rebalances", "a group and hour with rebalances", group_schemas.REBALANCES, _rebalances,
        has_errors=True,
    ),
    FunctionView(
        "coordinator_load", "a partition of `__consumer_offsets`", group_schemas.COORDINATOR_LOAD,
        _coordinator_load, has_errors=True,
    ),
    FunctionView(
        "transactional_ids", "a transactional id", coordinator_schemas.TRANSACTIONAL_IDS,
        _transactional_ids, has_errors=True,
    ),
    FunctionView(
        "open_transactions", "a partition that an open transaction keeps waiting",
        coordinator_schemas.OPEN_TRANSACTIONS, _open_transactions, has_errors=True,
    ),
    FunctionView(
        "remote_segments", "a remote segment", coordinator_schemas.REMOTE_SEGMENTS,
        _remote_segments, has_errors=True,
    ),
    FunctionView(
        "share_states", "a share group's state of a partition", coordinator_schemas.SHARE_STATES,
        _share_states, has_errors=True,
    ),
)  # fmt: skip
_CLUSTER_ROWS = {
    "brokers": "an event of a broker",
    "controllers": "an event of a controller",
    "partition_changes": "a change of a partition",
    "topics": "a topic's id",
    "configs": "a span of time in which a setting had a value",
    "features": "a span of time in which a feature had a level",
    "client_quotas": "a span of time in which a quota held",
    "acls": "a span of time in which an access control entry held",
    "scram": "a span of time in which a SCRAM credential held, without its secrets",
    "tokens": "a span of time in which a delegation token held, without its secrets",
}
_OF_CLUSTERS = tuple(
    FunctionView(name, _CLUSTER_ROWS[name], columns, _cluster_table(name))
    for name, columns in CLUSTER_TABLES.items()
)

FUNCTION_VIEWS: dict[str, FunctionView] = {
    view.name: view for view in (*_OF_RECORDS, *_OF_CLUSTERS, *_OF_TOPICS)
}

# Those of a dead ZooKeeper, where its directory is given.
_OLD_OFFSETS = "old_consumer_offsets"
_IN_ZOOKEEPER = (
    "brokers", "controllers", "partition_changes", "topics", "configs", "client_quotas", "acls",
    "scram",
)  # fmt: skip
ZOOKEEPER_VIEWS: dict[str, FunctionView] = {
    view.name: view
    for view in (
        *(
            FunctionView(
                ZOOKEEPER_PREFIX + name, _CLUSTER_ROWS[name], CLUSTER_TABLES[name],
                _zookeeper_table(name),
            )
            for name in _IN_ZOOKEEPER
        ),
        FunctionView(
            ZOOKEEPER_PREFIX + _OLD_OFFSETS, "a commit of a consumer before 0.9",
            OLD_CONSUMER_OFFSETS, _zookeeper_table(_OLD_OFFSETS),
        ),
    )
}  # fmt: skip


def names_of(views: Sequence[FunctionView]) -> tuple[str, ...]:
    return tuple(view.name for view in views)


# The names as `create_views` and `create_topic_views` of `kafkalog.spark` have them.
RECORD_VIEWS = names_of(_OF_RECORDS)
TOPIC_VIEWS = names_of(_OF_TOPICS)


def function_view_named(name: str) -> FunctionView:
    """The row of a view; InvalidConfigError names the views there are."""
    view = FUNCTION_VIEWS.get(name) or ZOOKEEPER_VIEWS.get(name)
    if view is None:
        known = ", ".join((*FUNCTION_VIEWS, *ZOOKEEPER_VIEWS))
        raise InvalidConfigError(f"view '{name}' is unknown; available: {known}")
    return view
