"""What `__consumer_offsets` says at its end, of all its parts together: whatever engine read them,
this makes groups, members and offsets of what the parts found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.column import arrow_schema
from kafkalog.columns.schemas import ERROR, LATEST_RECORDS
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.inventory import LogInventory
from kafkalog.reading.consumer_offsets import groups, offset_facts, parts, problems
from kafkalog.reading.consumer_offsets.group_changes import settle_types
from kafkalog.reading.request import ReadMode
from kafkalog.reading.views import default_columns

# Columns of the view `latest_offset_commits`.
COMMITS = arrow_schema(
    [c for c in LATEST_RECORDS if c.name in default_columns("latest_offset_commits")],
    all_nullable=True,
)


@dataclass(frozen=True, slots=True)
class OffsetsTopicState:
    """records: LATEST_RECORDS of all parts; partitions: LOG_END_COLUMNS of what is on the disk.

    mode: in PERMISSIVE the tables of groups, members, commits and offsets have a column `error`,
    and rows for what cannot be read; DROPMALFORMED leaves those out. Each says once how many.
    """

    records: pa.Table
    partitions: pa.Table
    mode: ReadMode = ReadMode.FAILFAST

    @classmethod
    def of(
        cls,
        records: Iterable[pa.Table],
        partitions: Iterable[pa.Table],
        mode: ReadMode = ReadMode.FAILFAST,
    ) -> OffsetsTopicState:
        """Of what each part found; of none where there is none."""
        latest = arrow_schema(LATEST_RECORDS, all_nullable=True)
        ends = arrow_schema(offset_facts.LOG_END_COLUMNS)
        return cls(
            pa.concat_tables([latest.empty_table(), *records]),
            pa.concat_tables([ends.empty_table(), *partitions]),
            mode,
        )

    def commits(self) -> pa.Table:
        """The rows of the view `latest_offset_commits`."""
        in_force, bad = parts.commits_in_force(self.records), self._shown(self.records)
        if self.mode != ReadMode.PERMISSIVE:
            return in_force.select(COMMITS.names)
        bad = bad.filter(pc.is_null(bad["messageType"]))
        return pa.concat_tables([in_force, bad]).select([*COMMITS.names, ERROR.name])

    def messages(self) -> pa.Table:
        """The last record of each key of groups and members: columns GROUP_MESSAGES."""
        return parts.group_messages(self.records)

    def groups(self) -> pa.Table:
        """A row a group, simple ones too: columns GROUPS. Raises as `settle_types`."""
        records = self._settled(fails_fast=self.mode == ReadMode.FAILFAST)
        commits = parts.commits_in_force(records)
        found = groups.groups(parts.group_messages(records), commits)
        found = problems.with_unreadable_groups(found, self._shown(records))
        return found if self.mode == ReadMode.PERMISSIVE else found.drop_columns(ERROR.name)

    def members(self) -> pa.Table:
        """A row a member of a group: columns GROUP_MEMBERS. Raises as `settle_types`."""
        records = self._settled(fails_fast=self.mode == ReadMode.FAILFAST)
        found = groups.group_members(parts.group_messages(records))
        found = problems.with_unreadable_members(found, self._shown(records))
        return found if self.mode == ReadMode.PERMISSIVE else found.drop_columns(ERROR.name)

    def use(self) -> pa.Table:
        """What decides about a group's offsets, a row a group: columns GROUP_USE."""
        return offset_facts.group_use(parts.group_messages(self._settled(fails_fast=False)))

    def log_ends(self) -> pa.Table:
        """Where the partitions on the disk begin and end: columns LOG_ENDS."""
        return offset_facts.log_ends(self.partitions)

    def offsets(self, now_ms: int, retention_ms: int) -> pa.Table:
        """The commits with their lag and when they expire: columns GROUP_OFFSETS."""
        return self.judged(self.commits(), now_ms, retention_ms)

    def judged(self, commits: pa.Table, now_ms: int, retention_ms: int) -> pa.Table:
        """The same of other commits, those of the history or of ZooKeeper: the columns of COMMITS
        and, where they are not of this topic, `source`.
        """
        if "source" not in commits.column_names:
            commits = commits.append_column("source", pa.repeat(OFFSETS_TOPIC, len(commits)))
        rows = offset_facts.with_facts(commits, self.log_ends(), ("topic", "partition"))
        rows = offset_facts.with_use(rows, self.use())
        return offset_facts.group_offsets(rows, now_ms, retention_ms)

    def _settled(self, *, fails_fast: bool) -> pa.Table:
        return settle_types(parts.latest_messages(self.records), fails_fast=fails_fast)

    def _shown(self, records: pa.Table) -> pa.Table:
        """What of the records cannot be read, as far as the mode shows it."""
        bad, is_left_out = parts.unreadable(records), self.mode == ReadMode.DROPMALFORMED
        problems.warn_of(bad, is_left_out=is_left_out)
        return bad.slice(0, 0) if is_left_out else bad


def read_offsets_topic(
    inventory: LogInventory, named: frozenset[str], mode: ReadMode = ReadMode.FAILFAST
) -> OffsetsTopicState:
    """Read here, part by part. Raises as the view `latest_offset_commits`."""
    records: list[pa.Table] = []
    partitions: list[pa.Table] = []
    for task in parts.plan_latest_of(inventory, named, mode, with_log_ends=True):
        if isinstance(task, parts.CommitsPart):
            found, batches = records, parts.read_latest_records(task, mode)
        else:
            found, batches = partitions, parts.read_log_ends(task)
        found.extend(pa.Table.from_batches([batch]) for batch in batches)
    return OffsetsTopicState.of(records, partitions, mode)
