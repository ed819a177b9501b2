"""Partition directories of several nodes against the metadata: stray, missing, twice; and their
leader epochs.

A broker goes by topic ids: a directory of another id, or of a partition that is not the node's, is
a stray. Directory ids tell in which log dir of a node a replica lives (KIP-858); where none is
known yet a replica is missing only if all log dirs of its node were given.

Source: Kafka LogManager.isStrayReplica, AssignmentsManager; KIP-858, KIP-320.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kafkalog.checking.cluster_view import ClusterView
from kafkalog.checking.finding import Finding
from kafkalog.checking.finding_kind import Severity
from kafkalog.cluster.moments import Row
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import parse_leader_epoch_checkpoint
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.small_files import read_small_file

Place = tuple[int | None, str, int]


def check_directories(view: ClusterView) -> Iterator[Finding]:
    """Every live directory, then what should be there and is not."""
    states = {(state["topic"], state["partition"]): state for state in view.states}
    there: dict[Place, list[PartitionInventory]] = {}
    for partition in view.partitions:
        name = partition.topic_partition
        if partition.kind is not PartitionKind.LIVE or name.topic == CLUSTER_METADATA_TOPIC:
            continue
        state = states.get((name.topic, name.partition))
        stray = _why_stray(view, partition, state)
        if stray is not None:
            kind, text = stray
            yield _placed(view, kind, text, partition)
        elif state is not None:
            node = view.metas[partition.log_dir].node_id
            there.setdefault((node, name.topic, name.partition), []).append(partition)
            yield from _epochs(view, partition, state)
    for same in there.values():
        for partition in same[1:]:
            text = f"the same node has this partition in {same[0].path} as well"
            yield _placed(view, "partition-twice", text, partition)
    yield from _missing(view, there)


def _why_stray(
    view: ClusterView, partition: PartitionInventory, state: Row | None
) -> tuple[str, str] | None:
    """(kind, text) of a directory that is not this node's; None for one that is."""
    if state is None:
        return "not-assigned", "the cluster has no such partition"
    if partition.topic_id is not None and partition.topic_id != state["topicId"]:
        text = f"{partition.topic_id}, the cluster's is {state['topicId']}"
        return "topic-id-foreign", text
    meta = view.metas[partition.log_dir]
    if meta.node_id not in state["replicas"]:
        return "not-assigned", f"it is on nodes {state['replicas']}, this is node {meta.node_id}"
    assigned = state["directories"][state["replicas"].index(meta.node_id)]
    if not is_reserved_directory_id(assigned) and meta.directory_id not in (None, assigned):
        text = f"this log dir is {meta.directory_id}, the partition is assigned to {assigned}"
        return "directory-id-foreign", text
    return None


def _missing(view: ClusterView, there: Iterable[Place]) -> Iterator[Finding]:
    found = set(there)
    given: dict[int, dict[str, str]] = {}
    for log_dir, meta in view.metas.items():
        if meta.node_id is not None and meta.directory_id is not None:
            given.setdefault(meta.node_id, {})[meta.directory_id] = log_dir
    for state in view.states:
        for node, assigned in zip(state["replicas"], state["directories"], strict=False):
            own = given.get(node, {})
            if not own or (node, state["topic"], state["partition"]) in found:
                continue
            registered = set(view.brokers.get(node, {}).get("logDirs") or ())
            is_known = assigned in own
            has_all = is_reserved_directory_id(assigned) and registered and registered <= set(own)
            if is_known or has_all:
                where = own[assigned] if is_known else ", ".join(sorted(own.values()))
                is_needed = node in state["isr"]
                yield view.finding(
                    "partition-missing",
                    f"of node {node}, which is {'' if is_needed else 'not '}in sync",
                    state,
                    path=where,
                    log_dir=where,
                    severity=None if is_needed else Severity.WARNING,
                )


def _epochs(view: ClusterView, partition: PartitionInventory, state: Row) -> Iterator[Finding]:
    path = Path(partition.path, LEADER_EPOCH_CHECKPOINT_FILE)
    try:
        entries = parse_leader_epoch_checkpoint(read_small_file(path), str(path))
    except (KafkaLogError, OSError):
        return  # what is wrong with the file itself is `verify`'s
    beyond = [epoch for epoch, _ in entries if epoch > state["leaderEpoch"]]
    if beyond:
        text = f"epoch {beyond[-1]}, the partition is in {state['leaderEpoch']}"
        yield _placed(view, "leader-epoch-unknown", text, partition, str(path))


def _placed(
    view: ClusterView, kind: str, text: str, partition: PartitionInventory, path: str | None = None
) -> Finding:
    name = partition.topic_partition
    return view.finding(
        kind,
        text,
        {"topic": name.topic, "partition": name.partition},
        path=path or partition.path,
        log_dir=partition.log_dir,
    )
