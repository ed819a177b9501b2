"""The files in a partition's directory, and whose it is: what a broker would refuse to load, set
aside, finish or delete.

Source: Kafka LogManager.loadLogs, LogLoader (temporary files and swaps), BrokerServer's stray
detection; KIP-858 for directory ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.partition_view import PartitionView
from kafkalog.errors import KafkaLogError
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    OF_KAFKA_0_7,
    PARTITION_METADATA_FILE,
    SWAP_SUFFIX,
    LogFileKind,
    is_of_kafka_0_7,
    parse_file_name,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, MetaProperties, is_kraft
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.listing import Entry, entries_in, is_directory
from kafkalog.log.partition_dir import NUMBERED_SUFFIXES
from kafkalog.log.small_files import is_there, read_small_file
from kafkalog.log.topic_partition import PartitionKind

_INDEX_KINDS = (
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose log dir a partition lies in. cluster: what the node's metadata log says, None without
    one. directory_ids: of all log dirs of the node that are given.
    """

    meta: MetaProperties | None
    cluster: ClusterSettings | None
    directory_ids: frozenset[str]

    @property
    def is_kraft(self) -> bool:
        return is_kraft(self.meta)


def check_directory(view: PartitionView, owner: Owner) -> Iterator[Finding]:
    """The files beside the segments, and whether a broker would take the directory for its own."""
    found = FindingList(view.partition.path)
    try:
        entries = {entry.name: entry for entry in entries_in(view.partition.path)}
    except OSError as error:
        found.add("unreadable", error.strerror or str(error))
        entries = {}
    names = sorted(entries)
    _check_names(view, entries, found)
    _check_leftovers(view, names, found)
    if view.partition.kind is PartitionKind.FUTURE:
        live = f"{view.partition.log_dir}/{view.partition.topic_partition}"
        if is_there(live) or is_directory(live):
            found.add("partition-twice", f"{live} is in the same log dir")
    if view.is_replica:
        _check_identity(view, owner, found)
        for problem in view.partition.problems:
            if problem.startswith("the same node has this partition"):
                found.add("partition-twice", problem)
    yield from found.findings()


def _check_names(view: PartitionView, entries: Mapping[str, Entry], found: FindingList) -> None:
    bases = {report.task.base_offset for report in view.reports}
    for name, entry in sorted(entries.items()):
        path = f"{view.partition.path}/{name}"
        parsed = parse_file_name(name)
        if parsed is None and name.endswith(NUMBERED_SUFFIXES) and entry.is_file():
            _check_foreign_name(name, path, found)
        elif is_of_kafka_0_7(name):
            found.add("format-not-read", f"{name}: {OF_KAFKA_0_7}", path=path)
        elif parsed is not None and parsed.kind in _INDEX_KINDS and not parsed.suffix:
            log = entries.get(f"{name.partition('.')[0]}{LogFileKind.LOG}")
            # Where one .log of the directory was named, the others are there and were not read.
            if parsed.offset not in bases and (log is None or not log.is_file()):
                found.add(
                    "orphan-index",
                    f"no segment begins at {parsed.offset}",
                    path=path,
                    offset=parsed.offset,
                )


def _check_foreign_name(name: str, path: str, found: FindingList) -> None:
    """A broker looks at files only, and reads a number up to the first point of their name."""
    number = name.partition(".")[0]
    if not _NUMBER.fullmatch(number):
        found.add("foreign-file", "a broker does not load it", path=path)
    elif name.endswith(LogFileKind.LOG):
        text = f"a broker makes an empty segment at {int(number)}, which hides the records there"
        severity = Severity.WARNING if int(number) < 0 else None  # below all records
        found.add("foreign-file", text, path=path, severity=severity)


def _check_leftovers(view: PartitionView, names: list[str], found: FindingList) -> None:
    directory = view.partition.path
    there = set(names)
    cleaned = [p.offset for n in names if (p := parse_file_name(n)) and p.suffix == CLEANED_SUFFIX]
    for name in names:
        parsed = parse_file_name(name)
        if parsed is None or not parsed.suffix:
            continue
        path = f"{directory}/{name}"
        if parsed.suffix == SWAP_SUFFIX:
            is_dropped = bool(cleaned) and parsed.offset >= min(cleaned)
            text = "dropped: a .cleaned is there" if is_dropped else "swapped in at the next start"
            found.add("swap-left", text, path=path, offset=parsed.offset)
            index = name.removesuffix(f"{LogFileKind.LOG}{SWAP_SUFFIX}")
            if index != name and f"{index}{LogFileKind.OFFSET_INDEX}{SWAP_SUFFIX}" not in there:
                found.add("swap-without-index", "its index is missing", path=path)
        elif parsed.suffix == CLEANED_SUFFIX:
            found.add("cleaned-left", "dropped at the next start", path=path, offset=parsed.offset)
        elif parsed.suffix == DELETED_SUFFIX and not view.is_loaded_as_left:
            found.add("deleted-left", "dropped at the next start", path=path, offset=parsed.offset)


def _check_identity(view: PartitionView, owner: Owner, found: FindingList) -> None:
    partition, cluster, meta = view.partition, owner.cluster, owner.meta
    path = Path(partition.path, PARTITION_METADATA_FILE)
    name = partition.topic_partition
    try:
        topic_id = parse_partition_metadata(read_small_file(path), str(path))
    except FileNotFoundError:
        if owner.is_kraft and name.topic != CLUSTER_METADATA_TOPIC:
            found.add("partition-metadata-missing", "the topic id is not known", path=str(path))
        return
    except (KafkaLogError, OSError) as error:
        found.add("partition-metadata-unreadable", str(error), path=str(path))
        return
    if cluster is None or cluster.problems or name.topic == CLUSTER_METADATA_TOPIC:
        return
    if meta is None or meta.node_id is None:
        return  # whose log dir it is nobody knows
    # A broker of ZooKeeper's era leaves such a directory alone.
    severity = None if owner.is_kraft else Severity.WARNING
    topic = cluster.topics.get(name.topic)
    if topic is None:
        text = "the cluster has no topic of this name"
        found.add("not-assigned", text, severity=severity)
        return
    if topic.topic_id and topic.topic_id != topic_id:
        found.add(
            "topic-id-foreign", f"{topic_id}, the cluster's is {topic.topic_id}", path=str(path)
        )
        return
    replicas = topic.replicas.get(name.partition, ())
    directories = topic.directories.get(name.partition, ())
    if meta.node_id not in replicas:
        if meta.directory_id not in directories:  # else it is the node id that is wrong
            text = f"it is on nodes {list(replicas)}, this is node {meta.node_id}"
            found.add("not-assigned", text, severity=severity)
        return
    at = replicas.index(meta.node_id)
    assigned = directories[at] if at < len(directories) else None
    if assigned is None or is_reserved_directory_id(assigned):
        return
    # A replica in another log dir of its node is reported as moved, and stays.
    if assigned not in owner.directory_ids:
        own = f"is {meta.directory_id}" if meta.directory_id else "has no id"
        found.add(
            "directory-id-foreign",
            f"this log dir {own}, the cluster has the partition in {assigned}",
            path=str(Path(partition.log_dir, META_PROPERTIES_FILE)),
        )
