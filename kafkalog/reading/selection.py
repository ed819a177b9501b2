"""Which partitions and offsets of an inventory are read.

Offsets follow Spark's Kafka dialect: the start is included, the end is excluded, -2 is the earliest
and -1 the latest. `earliest` is the log start offset, as for a consumer; an explicit number reads
what is still on the disk below it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.topic_partition import PartitionKind, TopicPartition
from kafkalog.options import did_you_mean_of
from kafkalog.remote.paths import KeyFiles, RemoteStorage

EARLIEST_OFFSET = -2
LATEST_OFFSET = -1

EARLIEST = "earliest"
LATEST = "latest"
HIGH_WATERMARK = "highWatermark"

_MOST_LISTED = 20

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """Topics or single partitions, and the offsets to read of each; by default everything."""

    topics: frozenset[str] | None = None
    partitions: frozenset[TopicPartition] | None = None
    # A regular expression that a topic's whole name matches.
    topic_pattern: str | None = None
    starting_offsets: str | Mapping[TopicPartition, int] = EARLIEST
    ending_offsets: str | Mapping[TopicPartition, int] = LATEST
    # In place of offsets: from the first record at or above a time (ms), as a broker looks it up.
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    # Up to the last stable offset, without data of aborted transactions.
    read_committed: bool = False
    # Offsets that are not there any more, or asked for by number and not there yet, are an error.
    fail_on_data_loss: bool = True
    # In a mode that bears damage a loss is said, and what is there is read.
    bears_damage: bool = False
    # False where the caller has looked for losses already.
    reports_loss: bool = True
    # Of the partitions' segments those whose `.log` has such a name.
    file_glob: str | None = None
    # Places of remote storage with the older segments of tiered partitions, their layout, and files
    # of RSA keys by their ids.
    remote_dirs: tuple[str, ...] = ()
    remote_layout: str | None = None
    remote_keys: KeyFiles = ()
    # Of a partition that is there more than once every directory is read.
    all_replicas: bool = False
    # Ids of applications of Kafka Streams, whose internal topics' names begin with them.
    applications: frozenset[str] = frozenset()
    # Partition directories named by the caller are read whatever their kind (`-delete`, `-future`,
    # stray).
    named_paths: frozenset[str] = field(default_factory=frozenset)

    def naming(self, paths: frozenset[str]) -> PartitionSelection:
        """The same selection with the directories the caller named."""
        return replace(self, named_paths=paths)

    @property
    def refuses_loss(self) -> bool:
        """Whether segments that are proven to be missing end the read."""
        return self.fail_on_data_loss and not self.bears_damage

    @property
    def remote(self) -> RemoteStorage:
        """Where the older segments of tiered partitions are; or what the paths themselves are."""
        return RemoteStorage(self.remote_dirs, self.remote_layout, self.remote_keys)

    def accepts(self, partition: TopicPartition) -> bool:
        if self.partitions is not None:
            return partition in self.partitions
        if self.topic_pattern is not None:
            return re.fullmatch(self.topic_pattern, partition.topic) is not None
        return self.topics is None or partition.topic in self.topics

    def accepts_file(self, path: str) -> bool:
        """Whether a segment is read, by the name of its `.log`."""
        return self.file_glob is None or fnmatchcase(Path(path).name, self.file_glob)


def select_partitions(
    inventory: LogInventory,
    selection: PartitionSelection,
    *,
    every_kind: bool,
    concerns: Callable[[TopicPartition], bool] = lambda _: True,
) -> list[PartitionInventory]:
    """The selected partitions in order, with their remote segments where these are asked for;
    InvalidConfigError when a topic or partition asked for is not there, and as `report_unread`.

    Directories of other kinds than live are left out unless `every_kind` or named by the caller:
    they hold copies of records, or records of a topic that is gone.
    """
    chosen = [
        p
        for p in inventory.partitions
        if selection.accepts(p.topic_partition)
        and (every_kind or p.kind == PartitionKind.LIVE or _is_named(p, selection))
    ]
    report_unread(inventory, selection, concerns)
    present = {p.topic_partition for p in chosen}
    _refuse_missing(inventory, selection, present)
    for name, offsets in (
        ("startingOffsets", selection.starting_offsets),
        ("endingOffsets", selection.ending_offsets),
    ):
        if not isinstance(offsets, str) and (extra := sorted(set(offsets) - present)):
            raise InvalidConfigError(f"{name} names {_listed(extra)}, which is not selected")
    if selection.remote.places:
        # Needs kernels, for which a process that only looks up a schema does not wait.
        from kafkalog.log.remote_segments import say_left_out, with_remote_segments
        from kafkalog.reading.remote_log_events import copy_states

        chosen = with_remote_segments(
            chosen,
            selection.remote,
            copy_states(inventory),
            note=None if selection.refuses_loss else say_left_out,
        )
    elif selection.remote_keys and not selection.remote.is_tree:
        raise InvalidConfigError("a remote key is given, and neither remote directory nor layout")
    return sorted(chosen, key=lambda p: (p.topic_partition, p.path))


def report_unread(
    inventory: LogInventory,
    selection: PartitionSelection,
    concerns: Callable[[TopicPartition], bool] = lambda _: True,
) -> None:
    """InvalidConfigError for a selected partition that the read `concerns` and whose directory
    cannot be read, where losses end the read; else that is said."""
    for unread in inventory.unread:
        name = unread.topic_partition
        if not selection.reports_loss or not (selection.accepts(name) and concerns(name)):
            continue
        if selection.refuses_loss:
            raise InvalidConfigError(
                f"{unread.topic_partition} cannot be read: {unread.reason}; failOnDataLoss=false "
                "(fail_on_data_loss=False) or mode PERMISSIVE reads the others",
                path=unread.path,
            )
        _logger.warning(
            "%s: %s cannot be read: %s", unread.path, unread.topic_partition, unread.reason
        )


def say_absent(topic: str) -> None:
    """That an internal topic is not there, which a view is made of."""
    _logger.warning(
        "no partition of %s is here: what views take from it is empty (give the log dirs of the "
        "brokers that have it)",
        topic,
    )


def is_all_replicas(text: str | None) -> bool:
    """Option `replicas`: `all`, or not given; InvalidConfigError for any other word."""
    if text not in (None, "all"):
        raise InvalidConfigError(f"replicas {text!r}: 'all' is all there is")
    return text is not None


def refuse_replicas(
    partitions: Iterable[PartitionInventory], selection: PartitionSelection
) -> None:
    """InvalidConfigError for partitions of which several directories are to be read: replicas hold
    the same records, and each would be a row of its own. Not where all of them are asked for.
    """
    if selection.all_replicas:
        return
    places: dict[TopicPartition, list[str]] = {}
    for partition in partitions:
        places.setdefault(partition.topic_partition, []).append(partition.path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    if not twice:
        return
    name, paths = min(twice.items())
    others = f", and {len(twice) - 1} more partitions" if len(twice) > 1 else ""
    raise InvalidConfigError(
        f"{name} is there {len(paths)} times ({', '.join(paths)}){others}: replicas would give "
        "each record as often; name the log dir of one of them, or replicas=all for all of them"
    )


def furthest_replicas(partitions: Iterable[PartitionInventory]) -> list[PartitionInventory]:
    """Of each partition the directory whose log goes furthest, for what is reported once whatever
    the replicas: groups, transactions.
    """
    found: dict[TopicPartition, PartitionInventory] = {}
    for partition in partitions:
        known = found.setdefault(partition.topic_partition, partition)
        if partition.log_end_offset > known.log_end_offset:
            found[partition.topic_partition] = partition
    return list(found.values())


def _is_named(partition: PartitionInventory, selection: PartitionSelection) -> bool:
    return str(Path(partition.path).resolve()) in selection.named_paths


def _refuse_missing(
    inventory: LogInventory, selection: PartitionSelection, present: set[TopicPartition]
) -> None:
    if selection.partitions is not None:
        missing = [str(tp) for tp in sorted(selection.partitions - present)]
        there = sorted({str(p.topic_partition) for p in inventory.partitions})
    else:
        missing = sorted((selection.topics or frozenset()) - {tp.topic for tp in present})
        there = sorted({p.topic_partition.topic for p in inventory.partitions})
    if missing:
        # Of many the near ones help more than the first ones.
        near = did_you_mean_of(missing, there) if len(there) > _MOST_LISTED else ""
        raise InvalidConfigError(
            f"not there: {_listed(missing)}{near or f'; there are: {_listed(there)}'}"
        )


def _listed(names: Sequence[str | TopicPartition]) -> str:
    shown, more = ", ".join(map(str, names[:_MOST_LISTED])), len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown or "none"
