"""The root of each log dir, and the log dirs of a node against each other: what a broker reads
before it loads any log.

`meta.properties` says whose a log dir is. Of the log dirs that are given some may be of other
nodes, which is no fault; what the metadata log has assigned to a directory id tells whose it is
whatever the file says.

Source: Kafka KafkaRaftServer.initializeLogDirs, MetaPropertiesEnsemble, LogManager.loadLogs,
BootstrapDirectory; KIP-858 for directory ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.metadata_checks import check_bootstrap, controller_ids
from kafkalog.format.checkpoints import HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kafkalog.format.meta_properties import (
    KRAFT_VERSION,
    META_PROPERTIES_FILE,
    MetaProperties,
)
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.log_dir_files import LogDirFiles
from kafkalog.log.metadata_records import BOOTSTRAP_FILE, METADATA_DIR, metadata_files
from kafkalog.log.partition_dir import REMOTE_INDEX_CACHE_DIR
from kafkalog.log.topic_partition import PartitionKind, parse_partition_dir_name

# Of an entry, not of version or count: a broker takes all recovery points for 0 and goes on.
_NO_NUMBER = re.compile(r"line (?!1:|2:)[0-9]+: .* is no number")


# Checkpoints with a line of every log that a broker has had open for a while.
_OF_EVERY_LOG = (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE)
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class GivenLogDir:
    """A log dir that is to be checked as a whole. cluster: what its node's metadata log says, None
    without one among the log dirs that are given.
    """

    files: LogDirFiles
    cluster: ClusterSettings | None

    @property
    def path(self) -> Path:
        return self.files.path

    @property
    def meta(self) -> MetaProperties | None:
        """Whose it is; None if there is no file or it cannot be read."""
        return self.files.meta

    @property
    def meta_path(self) -> str:
        return str(self.path / META_PROPERTIES_FILE)

    @property
    def is_kraft(self) -> bool:
        return self.meta is not None and self.meta.version >= KRAFT_VERSION

    @property
    def has_metadata_log(self) -> bool:
        """Whether anything of a metadata log is in it."""
        try:
            return any(metadata_files(self.path / METADATA_DIR))
        except OSError:
            return False

    @property
    def has_partitions(self) -> bool:
        return any(
            name.kind is PartitionKind.LIVE and entry.name != METADATA_DIR
            for entry in self.path.iterdir()
            if (name := parse_partition_dir_name(entry.name)) is not None and entry.is_dir()
        )


def check_log_dir(log_dir: GivenLogDir, given: Sequence[GivenLogDir]) -> Iterator[Finding]:
    """The root of one log dir, one of those `given`. OSError if it cannot be listed."""
    found = FindingList(str(log_dir.path))
    for entry in sorted(log_dir.path.iterdir()):
        if entry.is_dir() and _is_foreign(entry):
            found.add("foreign-directory", "its name is no partition's", path=str(entry))
    for problem in log_dir.files.problems:
        path, _, text = problem.partition(": ")
        is_reset = Path(path).name == RECOVERY_POINT_FILE and _NO_NUMBER.match(text)
        severity = Severity.WARNING if is_reset else None
        found.add("checkpoint-unreadable", text, path=path, severity=severity)
    if (log_dir.path / METADATA_DIR).is_dir():
        found.extend(check_bootstrap(log_dir.path / BOOTSTRAP_FILE))
    of_node = [each.path for each in given if _node(each) == _node(log_dir)]
    found.extend(_missing_partitions(log_dir, of_node))
    yield from found.findings()


def _is_foreign(entry: Path) -> bool:
    if entry.name == CLEAN_SHUTDOWN_FILE:
        return any(entry.iterdir())  # an empty one is deleted as the file would be
    return not parse_partition_dir_name(entry.name) and entry.name != REMOTE_INDEX_CACHE_DIR


def _missing_partitions(log_dir: GivenLogDir, of_node: Sequence[Path]) -> Iterator[Finding]:
    """What the cluster has in this log dir, by its id, and is in none of its node."""
    cluster, meta = log_dir.cluster, log_dir.meta
    if cluster is None or cluster.problems or meta is None or meta.directory_id is None:
        return
    found = FindingList(str(log_dir.path))
    unknown = []
    for name, topic in cluster.topics.items():
        for number, directories in topic.directories.items():
            path = log_dir.path / f"{name}-{number}"
            if meta.directory_id not in directories:
                continue
            if any((each / path.name).is_dir() for each in of_node):
                continue
            lines = (log_dir.files.checkpoints[file] for file in _OF_EVERY_LOG)
            if any((name, number) in entries for entries in lines):
                text = "cluster and checkpoints have it in this log dir"
                found.add("partition-missing", text, path=str(path))
            else:
                unknown.append(path.name)
    if unknown:
        more = ", …" if len(unknown) > _MOST_NAMES else ""
        found.add(
            "partition-missing",
            f"{len(unknown)} that the cluster has in this log dir and its checkpoints have not: "
            f"{', '.join(unknown[:_MOST_NAMES])}{more}",
            severity=Severity.WARNING,
        )
    yield from found.findings()


# -- log dirs against each other -------------------------------------------------------------------


def check_log_dirs(given: Sequence[GivenLogDir]) -> Iterator[Finding]:
    """All log dirs that are given, as far as they are one node's."""
    has_kraft = any(log_dir.is_kraft for log_dir in given)
    strangers: set[Path] = set()
    for log_dir in given:
        if not log_dir.files.has_meta_file:
            yield from _no_meta_properties(log_dir, has_kraft=has_kraft)
            continue
        why = _why_stranger(log_dir, given)
        if why is not None:
            strangers.add(log_dir.path)
            found = FindingList(log_dir.meta_path)
            found.add(*why)
            yield from found.findings()
    yield from _same_directory_id(given)
    yield from _no_metadata_log([each for each in given if each.path not in strangers])


def _no_meta_properties(log_dir: GivenLogDir, *, has_kraft: bool) -> Iterator[Finding]:
    own = [name for name in (METADATA_DIR, BOOTSTRAP_FILE) if (log_dir.path / name).exists()]
    if own or has_kraft:
        found = FindingList(log_dir.meta_path)
        why = f"{' and '.join(own)} there" if own else "another log dir is of a KRaft node"
        found.add("meta-properties-missing", why)
        yield from found.findings()


def _why_stranger(log_dir: GivenLogDir, given: Sequence[GivenLogDir]) -> tuple[str, str] | None:
    """(kind, text) where a log dir cannot be of the node it names."""
    meta = log_dir.meta
    if meta is None or not log_dir.is_kraft:
        return None
    with_log = [each for each in given if each.is_kraft and each.has_metadata_log]
    for other in with_log:
        owner = _owner(other.cluster, meta.directory_id)
        same_cluster = other.meta is not None and other.meta.cluster_id == meta.cluster_id
        if same_cluster and owner is not None:
            if owner == meta.node_id:
                return None
            text = f"node.id {meta.node_id}, the cluster has {meta.directory_id} on node {owner}"
            return "node-id-foreign", text
    own = [each for each in with_log if _node(each) == _node(log_dir)]
    if own or not with_log:
        return None
    other_meta = with_log[0].meta
    if other_meta is None:
        return None
    if other_meta.cluster_id != meta.cluster_id:
        text = (
            f"cluster.id {meta.cluster_id}, that of {with_log[0].path} is {other_meta.cluster_id}"
        )
        return "cluster-id-differs", text
    text = f"node.id {meta.node_id}, the metadata log in {with_log[0].path} is of node "
    return "node-id-foreign", text + str(other_meta.node_id)


def _owner(cluster: ClusterSettings | None, directory_id: str | None) -> int | None:
    """The node that has partitions in the log dir of this id."""
    if cluster is None or cluster.problems or directory_id is None:
        return None
    for topic in cluster.topics.values():
        for number, directories in topic.directories.items():
            if directory_id in directories and not is_reserved_directory_id(directory_id):
                return topic.replicas[number][directories.index(directory_id)]
    return None


def _node(log_dir: GivenLogDir) -> tuple[str | None, int | None] | None:
    meta = log_dir.meta
    return None if meta is None else (meta.cluster_id, meta.node_id)


def _same_directory_id(given: Sequence[GivenLogDir]) -> Iterator[Finding]:
    """Log dirs that were opened together: each has an id of its own."""
    owners: dict[tuple[str | None, str], GivenLogDir] = {}
    for log_dir in given:
        meta = log_dir.meta
        if meta is None or meta.directory_id is None:
            continue
        other = owners.setdefault((meta.cluster_id, meta.directory_id), log_dir)
        if other is not log_dir:
            found = FindingList(log_dir.meta_path)
            text = f"{meta.directory_id} is that of {other.path} as well"
            found.add("directory-id-twice", text)
            yield from found.findings()


def _no_metadata_log(given: Sequence[GivenLogDir]) -> Iterator[Finding]:
    """Nodes of which log dirs with partitions were given, and none with a metadata log."""
    nodes: dict[tuple[str | None, int | None], list[GivenLogDir]] = {}
    for log_dir in given:
        node = _node(log_dir)
        if node is not None and log_dir.is_kraft:
            nodes.setdefault(node, []).append(log_dir)
    for (_, node_id), own in nodes.items():
        if any(each.has_metadata_log for each in own):
            continue
        with_partitions = [each for each in own if each.has_partitions]
        if not with_partitions:
            continue
        voters = [controller_ids(each.path / METADATA_DIR) for each in own]
        is_controller = any(node_id in each for each in voters)
        found = FindingList(str(with_partitions[0].path / METADATA_DIR))
        if is_controller:
            text = "a controller without it begins with an empty one"
        else:
            text = "cannot be checked: a start may rename to -stray what the cluster does not have"
        found.add("metadata-log-missing", text, severity=Severity.ERROR if is_controller else None)
        yield from found.findings()
