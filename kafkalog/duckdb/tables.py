"""The tables that SQL has over a log, by their names: the views of `reading.sql_views`, the
function views of `reading.function_views`, and those of a dead ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkalog.duckdb.dataset import ComputedRows, RowSource
from kafkalog.duckdb.log_rows import LogRows, Progress
from kafkalog.payloads.topic_table import PLACES, TopicTable
from kafkalog.reading.function_views.record_queries import RecordQuery
from kafkalog.reading.function_views.table import (
    FUNCTION_VIEWS,
    OFFSETS_RETENTION_MINUTES,
    ZOOKEEPER_VIEWS,
)
from kafkalog.reading.pushing import Comparison
from kafkalog.reading.request import ReadMode, read_mode
from kafkalog.reading.source_options import option_values
from kafkalog.reading.sql_views import SQL_VIEWS, options_for

if TYPE_CHECKING:
    from kafkalog.reading.function_views.shared_reads import SharedReads


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table: the rows that DuckDB asks us for, under `schema`; or made of these by a query, given
    the name of their relation. lengths: columns that the rows have beside the schema's, by the
    column whose length they are."""

    name: str
    schema: pa.Schema
    rows: RowSource
    query: Callable[[str], str] | None = None
    lengths: Mapping[str, str] = field(default_factory=dict)


# Columns of view `records` and those that hold their lengths.
LENGTHS = {"key": "keySize", "value": "valueSize"}

# Options that say which topics: a topic's table has its own.
_SELECTING = ("subscribe", "assign", "subscribepattern")


@dataclass(frozen=True, slots=True)
class TopicRows:
    """A topic's records with their payloads decoded; see `dataset.RowSource`."""

    table: TopicTable
    schema: pa.Schema
    records: LogRows

    def read(
        self, columns: Sequence[str], comparisons: Sequence[Comparison]
    ) -> Iterator[pa.RecordBatch]:
        """What is compared of payloads is not what is on the disk, so only places reach it."""
        places = [one for one in comparisons if one.column.lower() in PLACES]
        records = self.records.read(self.table.read_columns(columns), places)
        return self.table.rows(records, pa.schema([self.schema.field(n) for n in columns]))


@dataclass(frozen=True, slots=True)
class LogTables:
    """What the tables are of.

    paths: log dirs, partition directories, `.log` files, globs. options: those of the data source,
    for the views that take them. threads: that decode a view at once. zookeeper_dir, zk_root: a
    dead ZooKeeper's directories, and one cluster of it.
    """

    paths: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1
    zookeeper_dir: tuple[str, ...] = ()
    zk_root: str | None = None
    offsets_retention_minutes: int = OFFSETS_RETENTION_MINUTES
    topics: Mapping[str, TopicTable] = field(default_factory=dict, repr=False)
    progress: Progress | None = None

    @property
    def mode(self) -> ReadMode:
        """What becomes of what cannot be read; InvalidConfigError for a mode that is not there."""
        given = (text for name, text in self.options.items() if name.lower() == "mode")
        return read_mode(next(given, ReadMode.FAILFAST))

    @property
    def now_ms(self) -> int | None:
        """The time that ages are computed for, where option `now` gives one."""
        given = {name: text for name, text in self.options.items() if name.lower() == "now"}
        now_ms: int | None = option_values(given).get("now")
        return now_ms

    def names(self) -> list[str]:
        """Of all tables there are."""
        names = [*SQL_VIEWS, *FUNCTION_VIEWS, *self.topics] if self.paths else []
        return [*names, *(ZOOKEEPER_VIEWS if self.zookeeper_dir else ())]

    def with_topics(self) -> LogTables:
        """With a table for each topic that has schemas in the topic `_schemas`, which is read
        now. Raises as `topic_tables`."""
        # Readers need kernels, for which nobody waits who does not ask for this.
        from kafkalog.reading.registered_schemas import topic_tables

        return replace(self, topics=topic_tables(self.paths, mode=self.mode))

    def tables(self, names: Sequence[str], reads: Reads) -> list[SqlTable]:
        """Those of these names; nothing is read. InvalidConfigError for options that no view knows,
        or that are malformed."""
        if self.paths:
            self._rows_of("records", {})  # is refused whatever the query is about
        return [self._table(name, reads) for name in names]

    def _table(self, name: str, reads: Reads) -> SqlTable:
        if name in SQL_VIEWS:
            view, own = SQL_VIEWS[name]
            rows = self._rows_of(view, own)
            known = LENGTHS if view == "records" else {}
            lengths = {of: length for of, length in known.items() if of in rows.schema.names}
            return SqlTable(name, rows.schema, rows.with_columns(lengths.values()), lengths=lengths)
        if name in self.topics:
            topic_rows = self._rows_of_topic(self.topics[name])
            return SqlTable(name, topic_rows.schema, topic_rows)
        view_of = FUNCTION_VIEWS.get(name) or ZOOKEEPER_VIEWS[name]
        schema = view_of.schema_in(self.mode)
        if view_of.query is not None:
            return SqlTable(name, schema, self._source_of(view_of.query), view_of.query.over)
        if view_of.made is None:
            raise NotImplementedError(f"view {name} is neither made nor a query")
        return SqlTable(name, schema, ComputedRows(schema, partial(reads.of, view_of.made)))

    def _source_of(self, query: RecordQuery) -> LogRows:
        level = {"isolationLevel": "read_committed"} if query.read_committed else {}
        given = {name.lower() for name in self.options}
        own = {name: text for name, text in level.items() if name.lower() not in given}
        return self._rows_of(query.view, {**own, "columns": ",".join(query.columns)})

    def _rows_of_topic(self, table: TopicTable) -> TopicRows:
        schema = table.schema(with_error=self.mode == ReadMode.PERMISSIVE)
        columns = ",".join(table.read_columns(schema.names))
        others = {k: v for k, v in self.options.items() if k.lower() not in _SELECTING}
        own = {"subscribe": table.topic, "columns": columns}
        rows = replace(self, options=others)._rows_of("records", own)
        return TopicRows(table, schema, rows)

    def _rows_of(self, view: str, own: Mapping[str, str]) -> LogRows:
        chosen = {**options_for(view, self.options), **own}
        return LogRows.of(view, self.paths, chosen, self.threads, self.progress)


class Reads:
    """What the function views are made of, read once for all of them until it is renewed."""

    def __init__(self, log: LogTables) -> None:
        self._log = log
        self._shared: SharedReads | None = None

    def renew(self) -> None:
        """What is asked from now on is read anew."""
        self._shared = None

    def of(self, make: Callable[[SharedReads], pa.Table]) -> pa.Table:
        """A view of what was read."""
        # Readers need kernels, for which nobody waits before there is something to read.
        from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads

        log = self._log
        if self._shared is None:
            options = FunctionOptions(
                mode=log.mode,
                offsets_retention_minutes=log.offsets_retention_minutes,
                zookeeper_dir=log.zookeeper_dir,
                zk_root=log.zk_root,
            )
            if log.now_ms is not None:
                options = replace(options, now_ms=log.now_ms)
            self._shared = SharedReads(log.paths, options)
        return make(self._shared)
