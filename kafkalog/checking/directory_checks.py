"""Files and directories around a log: what a broker would refuse to start on, set aside, finish or
delete.

Source: Kafka LogManager.loadLogs, LogLoader (temporary files and swaps), BrokerServer's stray
detection; KIP-858 for directory ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.partition_view import PartitionView
from kafkalog.errors import KafkaLogError
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    PARTITION_METADATA_FILE,
    SWAP_SUFFIX,
    LogFileKind,
    parse_file_name,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, MetaProperties
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.format.uuid_text import parse_uuid
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.partition_dir import NUMBERED_SUFFIXES, REMOTE_INDEX_CACHE_DIR
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import CLUSTER_METADATA_TOPIC, parse_partition_dir_name

_INDEX_KINDS = (
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)
# Of a KRaft controller's meta.properties on; before, partition.metadata may be missing.
_KRAFT_VERSION = 1
# Directory ids below are reserved: unassigned, migrating, lost (KIP-858).
_RESERVED_IDS = 100

Identities = Mapping[str, MetaProperties | None]


# -- the log dir -----------------------------------------------------------------------------------


def check_log_dir(log_dir: str) -> Iterator[Finding]:
    """The root of one log dir. OSError if it cannot be listed."""
    found = FindingList(log_dir)
    for entry in sorted(Path(log_dir).iterdir()):
        is_named = parse_partition_dir_name(entry.name) or entry.name == REMOTE_INDEX_CACHE_DIR
        if entry.is_dir() and not is_named:
            found.add("foreign-directory", "its name is no partition's", path=str(entry))
    for problem in read_log_dir_files(Path(log_dir)).problems:
        path, _, text = problem.partition(": ")
        found.add("checkpoint-unreadable", text, path=path)
    yield from found.findings()


def check_identities(identities: Identities) -> Iterator[Finding]:
    """Log dirs that were opened together: each has an id of its own."""
    owners: dict[tuple[str | None, str], str] = {}
    for log_dir, meta in sorted(identities.items()):
        if meta is None or meta.directory_id is None:
            continue
        key = meta.cluster_id, meta.directory_id
        other = owners.setdefault(key, log_dir)
        if other != log_dir:
            found = FindingList(str(Path(log_dir, META_PROPERTIES_FILE)))
            found.add("directory-id-twice", f"{meta.directory_id} is that of {other} as well")
            yield from found.findings()


# -- a partition's directory -----------------------------------------------------------------------


def check_directory(
    view: PartitionView, meta: MetaProperties | None, cluster: ClusterSettings | None
) -> Iterator[Finding]:
    """The files beside the segments, and whether a broker would take the directory for its own."""
    found = FindingList(view.partition.path)
    try:
        names = sorted(entry.name for entry in Path(view.partition.path).iterdir())
    except OSError as error:
        found.add("unreadable", error.strerror or str(error))
        names = []
    _check_names(view, names, found)
    _check_leftovers(view, names, found)
    if view.is_replica:
        _check_identity(view, meta, cluster, found)
        for problem in view.partition.problems:
            if problem.startswith("the same node has this partition"):
                found.add("partition-twice", problem)
    yield from found.findings()


def _check_names(view: PartitionView, names: Iterable[str], found: FindingList) -> None:
    bases = {report.task.base_offset for report in view.reports}
    for name in names:
        path = Path(view.partition.path, name)
        parsed = parse_file_name(name)
        if name.endswith(NUMBERED_SUFFIXES) and (parsed is None or not _is_file(path)):
            found.add("foreign-file", "a broker does not load it", path=str(path))
        elif parsed is not None and parsed.kind in _INDEX_KINDS and not parsed.suffix:
            if parsed.offset not in bases:
                found.add(
                    "orphan-index",
                    f"no segment begins at {parsed.offset}",
                    path=str(path),
                    offset=parsed.offset,
                )


def _is_file(path: Path) -> bool:
    # A file that went meanwhile is no foreign one.
    return not path.is_symlink() and (path.is_file() or not path.exists())


def _check_leftovers(view: PartitionView, names: list[str], found: FindingList) -> None:
    directory = view.partition.path
    there = set(names)
    cleaned = [p.offset for n in names if (p := parse_file_name(n)) and p.suffix == CLEANED_SUFFIX]
    for name in names:
        path = str(Path(directory, name))
        parsed = parse_file_name(name)
        if parsed is None:
            continue
        if parsed.suffix == SWAP_SUFFIX:
            is_dropped = bool(cleaned) and parsed.offset >= min(cleaned)
            fate = "dropped: a .cleaned is there" if is_dropped else "swapped in at the next start"
            found.add("swap-left", fate, path=path, offset=parsed.offset)
            index = name.removesuffix(f"{LogFileKind.LOG}{SWAP_SUFFIX}")
            if index != name and f"{index}{LogFileKind.OFFSET_INDEX}{SWAP_SUFFIX}" not in there:
                found.add("swap-without-index", "its index is missing", path=path)
        elif parsed.suffix == CLEANED_SUFFIX:
            found.add("cleaned-left", "dropped at the next start", path=path, offset=parsed.offset)
        elif parsed.suffix == DELETED_SUFFIX and not view.is_loaded_as_left:
            found.add("deleted-left", "dropped at the next start", path=path, offset=parsed.offset)


def _check_identity(
    view: PartitionView,
    meta: MetaProperties | None,
    cluster: ClusterSettings | None,
    found: FindingList,
) -> None:
    partition = view.partition
    path = Path(partition.path, PARTITION_METADATA_FILE)
    is_kraft = meta is not None and meta.version >= _KRAFT_VERSION
    try:
        topic_id = parse_partition_metadata(read_small_file(path), str(path))
    except FileNotFoundError:
        if is_kraft:
            found.add("partition-metadata-missing", "the topic id is not known", path=str(path))
        return
    except (KafkaLogError, OSError) as error:
        found.add("partition-metadata-unreadable", str(error), path=str(path))
        return
    name = partition.topic_partition
    if cluster is None or cluster.problems or name.topic == CLUSTER_METADATA_TOPIC:
        return
    topic = cluster.topics.get(name.topic)
    if topic is None:
        found.add("not-assigned", "the cluster has no topic of this name")
        return
    if topic.topic_id and topic.topic_id != topic_id:
        found.add(
            "topic-id-foreign", f"{topic_id}, the cluster's is {topic.topic_id}", path=str(path)
        )
        return
    replicas = topic.replicas.get(name.partition, ())
    node_id = None if meta is None else meta.node_id
    if node_id not in replicas:
        found.add("not-assigned", f"it is on nodes {list(replicas)}, this is node {node_id}")
        return
    directories = topic.directories.get(name.partition, ())
    at = replicas.index(node_id)
    assigned = directories[at] if at < len(directories) else None
    own = None if meta is None else meta.directory_id
    if assigned is not None and own is not None and not _is_reserved(assigned) and assigned != own:
        found.add(
            "directory-id-foreign",
            f"this log dir is {own}, the cluster has the partition in {assigned}",
            path=str(Path(partition.log_dir, META_PROPERTIES_FILE)),
        )


def _is_reserved(directory_id: str) -> bool:
    number = parse_uuid(directory_id)
    return number is None or int.from_bytes(number) < _RESERVED_IDS
