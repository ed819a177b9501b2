"""What groups of the source have committed, up to what is restored: for `offsets_topic`, which
makes `__consumer_offsets` of a new cluster, or as files for Kafka's own tool, once a cluster runs:

    kafka-consumer-groups.sh --reset-offsets --group G --from-file G.csv --execute

A file has a group's offsets, `topic,partition,offset` a line, of what was restored and under its
new name. An offset outside of the restored log is clamped to its end or start, and counted.

Source: Kafka ConsumerGroupCommand (CsvRecordNoGroup).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.statuses import REFUSED
from kafkalog.restoring.plan import RestorePlan

_GLOB = frozenset("*?[")
# Of a name on the disk, with its ending.
_MOST_NAME_BYTES = 255
# By partition of the source: what it is called in the target, where it starts and ends there.
Ranges = Mapping[TopicPartition, tuple[TopicPartition, int, int]]


@dataclass(frozen=True, slots=True)
class GroupOffset(JsonFacts):
    """What a group has committed of a partition, by its new name; leader_epoch: of the last record
    that was read, -1 where that is not known or not restored.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class GroupScript(JsonFacts):
    """A group's offsets; clamped: how many lay outside of what is restored; left_out: of how many
    partitions nothing is restored; offsets_partition: in which partition of `__consumer_offsets`
    they are, None where they are in a file.
    """

    group: str
    rows: tuple[GroupOffset, ...]
    clamped: int
    left_out: int
    offsets_partition: int | None = None

    @property
    def file(self) -> str:
        """Its name."""
        return f"{quote(self.group, safe='')}.csv"

    @property
    def text(self) -> str:
        """The file's lines."""
        out = StringIO()
        rows = ((each.topic, each.partition, each.offset) for each in self.rows)
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()

    @property
    def said(self) -> str:
        """What is in it, in words."""
        notes = [f"{len(self.rows)} offsets"]
        notes += [f"{self.clamped} clamped to what is restored"] if self.clamped else []
        notes += [f"{self.left_out} of partitions that are not restored left out"] * bool(
            self.left_out
        )
        where = self.file
        if self.offsets_partition is not None:
            where = f"{OFFSETS_TOPIC}-{self.offsets_partition}"
        return f"group {self.group}: {', '.join(notes)}, in {where}"


def restored_ranges(plans: Iterable[RestorePlan]) -> Ranges:
    """Of what is restored."""
    return {
        plan.source_name: (plan.topic_partition, plan.cut.start_offset, plan.cut.end_offset)
        for plan in plans
        if plan.cut is not None and plan.status != REFUSED
    }


def group_scripts(
    sources: Sequence[str], groups: Sequence[str], ranges: Ranges
) -> list[GroupScript]:
    """A script for each group that is asked for. InvalidConfigError where the source does not tell
    what groups have committed, and for a group that it does not have.
    """
    # Imported late: to read groups takes a fifth of the start of a restore, and few ask for them.
    from kafkalog.reading.function_views.group_offsets import commits_in_force
    from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
    from kafkalog.reading.function_views.topic_rows import live_partitions

    reads = SharedReads(list(sources), FunctionOptions())
    if not live_partitions(reads.inventory, OFFSETS_TOPIC):
        raise InvalidConfigError(
            f"--groups: no partition of {OFFSETS_TOPIC} is in the source, which has what groups "
            "have committed"
        )
    known: dict[str, list[dict[str, Any]]] = {}
    for row in commits_in_force(reads).to_pylist():
        known.setdefault(row["group"], []).append(row)
    missing = [name for name in groups if not _GLOB & set(name) and name not in known]
    if missing:
        raise InvalidConfigError(f"--groups: not in the source: {', '.join(missing)}")
    chosen = sorted(name for name in known if any(fnmatchcase(name, each) for each in groups))
    return [_script(name, known[name], ranges) for name in chosen]


def _script(group: str, rows: Sequence[dict[str, Any]], ranges: Ranges) -> GroupScript:
    found, clamped, left_out = [], 0, 0
    for row in sorted(rows, key=lambda row: (row["topic"], row["partition"])):
        known = ranges.get(TopicPartition(row["topic"], row["partition"]))
        if known is None or row["offset"] is None:
            left_out += 1
            continue
        name, start, end = known
        offset = min(max(row["offset"], start), end)
        clamped += offset != row["offset"]
        epoch = -1 if row["leaderEpoch"] is None or offset != row["offset"] else row["leaderEpoch"]
        found.append(
            GroupOffset(name.topic, name.partition, offset, epoch, row.get("metadata") or "")
        )
    return GroupScript(group, tuple(found), clamped, left_out)


def group_rows(scripts: Iterable[GroupScript]) -> list[dict[str, Any]]:
    """As they are in a run's document."""
    return [
        {
            "group": script.group,
            "file": script.file if script.offsets_partition is None else None,
            "offsetsPartition": script.offsets_partition,
            "offsets": len(script.rows),
            "clamped": script.clamped,
            "leftOut": script.left_out,
        }
        for script in scripts
    ]


def write_scripts(scripts: Iterable[GroupScript], directory: str) -> None:
    """Write them into a new or empty directory. InvalidConfigError for any other one, and for a
    group whose name is too long for a file.
    """
    path, scripts = Path(directory), list(scripts)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidConfigError("--output: a new or empty directory", path=directory)
    for script in scripts:
        if len(script.file.encode()) > _MOST_NAME_BYTES:
            raise InvalidConfigError(f"--groups: {script.group!r} is too long for a file's name")
    path.mkdir(parents=True, exist_ok=True)
    for script in scripts:
        (path / script.file).write_text(script.text, encoding="utf-8")
