"""What several function views are made of, read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike

import pyarrow as pa

from kafkalog import clock
from kafkalog.format.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kafkalog.log.inventory import LogInventory
from kafkalog.reading.cluster_tables import histories_of, history_tables
from kafkalog.reading.consumer_offsets.topic_state import OffsetsTopicState, read_offsets_topic
from kafkalog.reading.function_views.table import OFFSETS_RETENTION_MINUTES
from kafkalog.reading.function_views.topic_rows import read_topic
from kafkalog.reading.function_views.transactions import STATE_COLUMNS, transactional_ids
from kafkalog.reading.function_views.unreadable import (
    columns_with_errors,
    errors_of,
    sound_rows,
    with_errors,
)
from kafkalog.reading.request import ReadMode
from kafkalog.reading.scan import open_paths
from kafkalog.reading.selection import say_absent
from kafkalog.reading.zookeeper_tables import ZOOKEEPER_TABLES, read_zookeeper


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """mode: what becomes of what internal topics have that cannot be read. now_ms: the time that
    ages and expiry are computed for. offsets_retention_minutes: the brokers'
    `offsets.retention.minutes`.
    zookeeper_dir, zk_root: a dead ZooKeeper's data directory, and one cluster of it, for the views
    of it and the offsets that old consumers kept there.
    """

    mode: ReadMode = ReadMode.FAILFAST
    now_ms: int = field(default_factory=clock.now_ms)
    offsets_retention_minutes: int = OFFSETS_RETENTION_MINUTES
    zookeeper_dir: tuple[str, ...] = ()
    zk_root: str | None = None


class SharedReads:
    """Log dirs, and what was read of them: each thing when a view first wants it, and not again,
    so that all views of one object are of the same time.
    """

    def __init__(
        self, paths: Sequence[str | PathLike[str]], options: FunctionOptions | None = None
    ) -> None:
        self.paths = tuple(paths)
        self.options = options or FunctionOptions()
        self._errors: dict[tuple[str, str], list[str]] = {}
        self._said_absent: set[str] = set()

    @cached_property
    def opened(self) -> tuple[LogInventory, frozenset[str]]:
        """The inventory, and the partitions that are named directly. InvalidConfigError for a path
        that is not there."""
        return open_paths(self.paths)

    @property
    def inventory(self) -> LogInventory:
        return self.opened[0]

    @cached_property
    def cluster_tables(self) -> dict[str, pa.Table]:
        """The cluster's own tables; what cannot be read of them is left out, and said."""
        return history_tables(histories_of(self.inventory), mode=ReadMode.PERMISSIVE)

    @cached_property
    def zookeeper_tables(self) -> dict[str, pa.Table]:
        """Those of the ZooKeeper in the options. InvalidConfigError where it is none."""
        options = self.options
        return read_zookeeper(
            list(ZOOKEEPER_TABLES),
            options.zookeeper_dir,
            zk_root=options.zk_root,
            mode=ReadMode.PERMISSIVE,
        )

    @property
    def partition_changes(self) -> pa.Table:
        """The table of that name, of the metadata log and of ZooKeeper where one is given."""
        found = [self.cluster_tables["partition_changes"]]
        if self.options.zookeeper_dir:
            found.insert(0, self.zookeeper_tables["partition_changes"])
        return pa.concat_tables(found)

    @cached_property
    def offsets_topic(self) -> OffsetsTopicState:
        """What `__consumer_offsets` says at its end, and where the partitions on the disk end."""
        inventory, named = self.opened
        # Old consumers' offsets may be in ZooKeeper instead.
        if not self.options.zookeeper_dir:
            self.note_absent(OFFSETS_TOPIC)
        return read_offsets_topic(inventory, named, self.options.mode)

    def topic(self, view: str, topic: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a source view of one internal topic, see `topic_rows`; what cannot be
        read is set aside in mode PERMISSIVE, for `with_errors`.
        """
        self.note_absent(topic)
        mode = self.options.mode
        if mode != ReadMode.PERMISSIVE:
            yield from read_topic(view, self.inventory, topic, columns, mode)
            return
        errors = self._errors[view, topic] = []
        asked = columns_with_errors(view, columns)
        for batch in read_topic(view, self.inventory, topic, asked, mode):
            for found in errors_of(view, [batch]):
                errors.extend(found[0].to_pylist())
            yield sound_rows(batch)

    def with_errors(self, table: pa.Table, *sources: tuple[str, str]) -> pa.Table:
        """In mode PERMISSIVE with rows for what could not be read of these views and topics, which
        the table is made of."""
        if self.options.mode != ReadMode.PERMISSIVE:
            return table
        return with_errors(table, [t for its in sources for t in self._errors.get(its, ())])

    def note_absent(self, topic: str) -> None:
        """Say once that there is no partition of a topic."""
        names = {p.topic_partition.topic for p in self.inventory.partitions}
        names |= {unread.topic_partition.topic for unread in self.inventory.unread}
        if topic not in names | self._said_absent:
            self._said_absent.add(topic)
            say_absent(topic)

    @cached_property
    def transactional_ids(self) -> pa.Table:
        """What the coordinators of transactions know."""
        return transactional_ids(self.topic("messages", TRANSACTION_TOPIC, STATE_COLUMNS))
