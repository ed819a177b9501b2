"""The log dirs of a node against each other, as far as they were given.

Some of them may be of other nodes, which is no fault; what the metadata log has assigned to a
directory id tells whose it is whatever the file says.

Source: Kafka KafkaRaftServer.initializeLogDirs, MetaPropertiesEnsemble; KIP-858 for directory ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.given_log_dir import GivenLogDir
from kafkalog.checking.metadata_checks import controller_ids
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.listing import is_directory
from kafkalog.log.metadata_records import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.small_files import is_there


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
    own = [METADATA_DIR] if is_directory(log_dir.path / METADATA_DIR) else []
    own += [BOOTSTRAP_FILE] if is_there(log_dir.path / BOOTSTRAP_FILE) else []
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
    own = [each for each in with_log if each.node == log_dir.node]
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
        node = log_dir.node
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
